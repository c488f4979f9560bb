package partners

import (
	"strconv"
	"time"

	"drawbridge/internal/lending"
	"drawbridge/internal/statement"
	"drawbridge/views/paths"
	"drawbridge/views/ui"
)

// StatementDetail is one version of a statement, with the list of all versions.
type StatementDetail struct {
	statement.Summary

	// Versions are all versions, newest first.
	Versions []statement.Summary
	// JSON and CSV are the statement's two formats.
	JSON, CSV statement.File
}

// file is the address of a format of the statement, or of the signature over it.
func (d StatementDetail) file(format statement.Format, signature bool) string {
	pairs := []string{"format", string(format), "version", strconv.Itoa(d.Version)}
	if signature {
		pairs = append(pairs, "part", "signature")
	}
	return paths.Where(paths.To(paths.StatementFile, d.MerchantUID.String(), d.Date()), pairs...)
}

func statementHref(s statement.Summary) string {
	return paths.Where(paths.To(paths.Statement, s.MerchantUID.String(), s.Date()),
		"version", strconv.Itoa(s.Version))
}

// StatementTable lists statements, each in its newest version.
func StatementTable(rows []statement.Summary) ui.TableProps[statement.Summary] {
	return ui.TableProps[statement.Summary]{
		Caption: "Daily statements, newest first",
		RowID: func(s statement.Summary) string {
			return "st-" + s.MerchantUID.String() + "-" + s.Date() + "-" + strconv.Itoa(s.Version)
		},
		Rows: rows,
		Columns: []ui.Column[statement.Summary]{
			{Title: "Business day", Header: true, Cell: statementDayCell},
			{Title: "Merchant", Class: "col-a w-third", Cell: statementMerchantCell},
			ui.Texts("Draws", "col-b w-count end",
				func(s statement.Summary) string { return ui.Number(s.Disbursements) }).Titled(),
			ui.Texts("Events", "col-c w-count end",
				func(s statement.Summary) string { return ui.Number(s.Events) }),
			ui.Amounts("Net", "w-amount end",
				func(s statement.Summary) *lending.Money { return &s.Net }).Titled(),
			ui.Times("Frozen", "col-b w-time end",
				func(s statement.Summary) time.Time { return s.FrozenAt }).Titled(),
		},
	}
}

// versionTable lists the versions of one statement.
func versionTable(rows []statement.Summary) ui.TableProps[statement.Summary] {
	table := ui.Without(StatementTable(rows), "Business day", "Merchant")
	table.Caption = "Versions, newest first"
	table.Columns = append([]ui.Column[statement.Summary]{
		{Title: "Version", Header: true, Cell: statementVersionCell},
	}, table.Columns...)
	return table
}
