package applications

import (
	"strings"
	"time"

	"drawbridge/views/ui"
)

// ProductRow is one product. Amounts are written out.
type ProductRow struct {
	UID, Code, Name, Term, Rate, Fee, Schedule, Min, Max string
	Active                                               bool
	Created                                              time.Time
}

func (r ProductRow) chip() ui.ChipProps {
	if r.Active {
		return ui.ChipProps{Icon: "circle-check", Word: "On offer", Tone: ui.Good}
	}
	return ui.ChipProps{Icon: "pause", Word: "Not offered", Tone: ui.Mute}
}

// shares are the schedule's percentages, to be read.
func (r ProductRow) shares() string {
	return strings.ReplaceAll(r.Schedule, ",", " / ") + "\u00a0%"
}

// bounds are the amounts that it lends.
func (r ProductRow) bounds() string { return r.Min + " to " + r.Max }

func (r ProductRow) switchLabel() string {
	if r.Active {
		return "Stop offering"
	}
	return "Offer"
}

// ProductList is the page that lists products.
type ProductList struct {
	ui.Frame
	Rows []ProductRow
}

// ProductForm is the form of a new product with its preview.
type ProductForm struct {
	ui.Frame
	Form ui.AskForm
	// Stages are what a loan of the amount would pay out; empty without a preview.
	Stages        []StageView
	PreviewAmount string
}

func productTable(p ProductList) ui.TableProps[ProductRow] {
	table := ui.TableProps[ProductRow]{
		Caption: "Products by code",
		RowID:   func(r ProductRow) string { return "product-" + r.UID },
		Rows:    p.Rows,
		Columns: []ui.Column[ProductRow]{
			{Title: "State", Class: "w-state", Cell: productStateCell},
			{Title: "Product", Header: true, Cell: productNameCell},
			{Title: "Schedule", Class: "col-a w-range", Cell: productScheduleCell},
			{Title: "Lends", Class: "col-c w-range end", Cell: productBoundsCell},
			{Title: "Months", Class: "col-c w-short end", Cell: productTermCell},
			{Title: "Rate", Class: "col-b w-rate end", Cell: productRateCell},
			{Title: "Fee", Class: "col-c w-rate end", Cell: productFeeCell},
		},
	}
	if p.Allows("admin") {
		table.Columns = append(table.Columns,
			ui.Column[ProductRow]{Title: "Change", Class: "w-switch end", Cell: productSwitchCell})
	}
	return table
}
