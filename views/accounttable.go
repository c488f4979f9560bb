package views

import (
	"slices"
	"strings"

	"github.com/a-h/templ"
)

// sessionTable lists sessions, each with the button that ends it unless it is
// the reader's own.
func sessionTable(
	caption string, sessions []SessionView, end func(SessionView) string,
) TableProps[SessionView] {
	table := TableProps[SessionView]{
		Caption: caption, Rows: sessions,
		RowID: func(s SessionView) string { return "session-" + s.UID },
		Columns: []Column[SessionView]{
			{Title: "Device", Header: true, Cell: sessionDeviceCell},
			{Title: "Network address", Class: "col-b w-third", Cell: sessionAddressCell},
			{Title: "Signed in", Class: "col-a w-time", Cell: func(s SessionView) templ.Component {
				return Time(s.Started)
			}},
			{Title: "Last used", Class: "w-time", Cell: func(s SessionView) templ.Component {
				return Time(s.Seen)
			}},
		},
	}
	if slices.ContainsFunc(sessions, func(s SessionView) bool { return !s.Current }) {
		table.Columns = append(table.Columns, Column[SessionView]{
			Title: "Action", Class: "w-act end", Cell: func(s SessionView) templ.Component {
				return sessionActCell(end(s), s)
			},
		})
	}
	return table
}

func joinLines(lines []string) string { return strings.Join(lines, "\n") }
