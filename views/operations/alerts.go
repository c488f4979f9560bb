package operations

import (
	"time"

	"drawbridge/internal/alert"
	"drawbridge/views/ui"
)

// NoteForm holds the submitted form of an alert, and the error of each field.
type NoteForm struct {
	Note  string
	Wrong map[string]string
	// Refused says why nothing was done, otherwise empty.
	Refused string
	// Seen is a hidden field of the form that resolves the alert.
	Seen ui.HiddenField
}

// AlertTable lists alerts in their state at the given time.
func AlertTable(items []alert.Item, now time.Time) ui.TableProps[alert.Item] {
	return ui.TableProps[alert.Item]{
		Caption: "What needs attention, last opened first",
		RowID:   func(i alert.Item) string { return "item-" + i.UID.String() },
		Rows:    items,
		Columns: []ui.Column[alert.Item]{
			ui.Chips("State", "w-state", func(i alert.Item) ui.ChipProps { return ui.AlertChip(i, now) }),
			{Title: "What", Header: true, Class: "w-what", Cell: alertTitleCell},
			{Title: "Where", Class: "col-b", Text: ui.AlertAbout},
			ui.Texts("Count", "end col-b w-short",
				func(i alert.Item) string { return ui.Number(i.Count) }).Titled(),
			ui.Texts("Owner", "col-a w-id", func(i alert.Item) string { return i.Owner }).Titled(),
			ui.Times("Since", "col-c w-time", func(i alert.Item) time.Time { return i.OpenedAt }),
			ui.Times("Last seen", "w-time end",
				func(i alert.Item) time.Time { return i.LastSeenAt }).Titled(),
		},
	}
}
