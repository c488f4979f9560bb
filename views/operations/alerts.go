package operations

import (
	"time"

	"drawbridge/internal/alert"
	"drawbridge/views/ui"
)

// NoteForm is the form about an alert as it was typed, and what is wrong with each field.
type NoteForm struct {
	Note  string
	Wrong map[string]string
	// Refused says why nothing was done, empty for nothing to say.
	Refused string
	// Seen is sent along by the form that resolves the alert.
	Seen ui.HiddenField
}

// AlertTable lists alerts as they stand at a time.
func AlertTable(items []alert.Item, now time.Time) ui.TableProps[alert.Item] {
	return ui.TableProps[alert.Item]{
		Caption: "What needs attention, last opened first",
		RowID:   func(i alert.Item) string { return "item-" + i.UID.String() },
		Rows:    items,
		Columns: []ui.Column[alert.Item]{
			{
				Title: "State", Class: "w-state",
				Chip: func(i alert.Item) ui.ChipProps { return ui.AlertChip(i, now) },
			},
			{Title: "What", Header: true, Class: "w-what", Cell: alertTitleCell},
			{Title: "Where", Class: "col-b", Text: ui.AlertAbout},
			{
				Title: "Count", Class: "end col-b w-short", Named: true,
				Text: func(i alert.Item) string { return ui.Number(i.Count) },
			},
			{
				Title: "Owner", Class: "col-a w-id", Named: true,
				Text: func(i alert.Item) string { return i.Owner },
			},
			{
				Title: "Since", Class: "col-c w-time",
				Time: func(i alert.Item) time.Time { return i.OpenedAt },
			},
			{
				Title: "Last seen", Class: "w-time end", Named: true,
				Time: func(i alert.Item) time.Time { return i.LastSeenAt },
			},
		},
	}
}
