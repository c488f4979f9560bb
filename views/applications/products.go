package applications

import (
	"strings"

	"drawbridge/internal/catalog"
	"drawbridge/internal/lending"
	"drawbridge/views/ui"
)

// ProductTable lists products.
func ProductTable(rows []catalog.Product, may bool) ui.TableProps[catalog.Product] {
	percent := func(of func(catalog.Product) lending.Percent) func(catalog.Product) string {
		return func(p catalog.Product) string { return of(p).String() + "\u00a0%" }
	}
	table := ui.TableProps[catalog.Product]{
		Caption: "Products by code",
		RowID:   func(p catalog.Product) string { return "product-" + p.UID },
		Rows:    rows,
		Columns: []ui.Column[catalog.Product]{
			ui.Chips("State", "w-state", func(p catalog.Product) ui.ChipProps {
				if p.Active {
					return ui.ChipProps{Icon: "circle-check", Word: "On offer", Tone: ui.Good}
				}
				return ui.ChipProps{Icon: "pause", Word: "Not offered", Tone: ui.Mute}
			}),
			{Title: "Product", Header: true, Class: "wrap", Cell: productNameCell},
			{Title: "Schedule", Class: "col-a w-range", Named: true, Text: shares},
			{
				Title: "Lends", Class: "col-b w-range end", Named: true, Cell: lendsCell,
				Money: func(p catalog.Product) *lending.Money { return &p.Max },
			},
			ui.Texts("Months", "col-b w-short end",
				func(p catalog.Product) string { return p.Term }).Titled(),
			ui.Texts("Rate", "col-b w-short end",
				percent(func(p catalog.Product) lending.Percent { return p.InterestRate })).Titled(),
			ui.Texts("Fee", "col-b w-short end",
				percent(func(p catalog.Product) lending.Percent { return p.MerchantFeePercentage })).Titled(),
		},
	}
	if may {
		table.Columns = append(table.Columns,
			ui.Column[catalog.Product]{
				Title: "Draws", Class: "col-b w-switch end", Cell: productOverdueCell,
			},
			ui.Column[catalog.Product]{Title: "Change", Class: "w-switch end", Cell: productSwitchCell})
	}
	return table
}

// shares formats the percentages of the schedule.
func shares(p catalog.Product) string {
	return strings.ReplaceAll(p.Schedule.String(), ",", " / ") + "\u00a0%"
}
