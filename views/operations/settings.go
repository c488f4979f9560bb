package operations

import (
	"drawbridge/internal/config"
	"drawbridge/internal/retention"
	"drawbridge/views/ui"
)

func configTable(rows []config.Setting) ui.TableProps[config.Setting] {
	return ui.TableProps[config.Setting]{
		Caption: "Settings of this process", Rows: rows,
		RowID: func(r config.Setting) string { return "config-" + r.Name },
		Columns: []ui.Column[config.Setting]{
			{Title: "Variable", Class: "wrap", Header: true, Cell: configNameCell},
			{Title: "Value", Class: "wrap", Cell: configValueCell},
			ui.Texts("From", "col-c w-id wrap", func(r config.Setting) string { return string(r.Source) }),
		},
	}
}

// planLines says what new settings would remove.
func planLines(plan retention.Plan) []string {
	lines := []string{
		ui.Plural(plan.Events, "event loses its body", "events lose their bodies"),
		ui.Plural(plan.Deliveries, "delivery loses", "deliveries lose") +
			" the headers and bodies of their attempts",
		ui.Plural(plan.Emails, "e-mail loses its text", "e-mails lose their texts"),
		ui.Plural(plan.RequestDays, "day goes", "days go") + " of the log of API requests, with " +
			ui.Plural(plan.Requests, "request", "requests"),
	}
	for _, month := range plan.Months {
		lines = append(lines, "The month "+month.Month+" goes: about "+
			ui.Plural(int(month.Deliveries), "delivery", "deliveries")+", of which "+
			ui.Number(month.LegallyHeld)+" stay under a hold and "+
			ui.Number(month.Open)+" because they are not final")
	}
	if plan.Bulks > 0 {
		lines = append(lines, ui.Plural(plan.Bulks, "bulk re-send goes", "bulk re-sends go")+
			" with its lines")
	}
	return append(lines, ui.Plural(plan.LegalHolds, "application is", "applications are")+
		" under a legal hold and keep everything")
}
