package views

import (
	"strings"

	"github.com/a-h/templ"
)

// sessionTable lists sessions, each with the button that ends it.
func sessionTable(
	caption string, sessions []SessionView, end func(SessionView) string,
) TableProps[SessionView] {
	return TableProps[SessionView]{
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
			{Title: "Action", Class: "w-act end", Cell: func(s SessionView) templ.Component {
				return sessionActCell(end(s), s)
			}},
		},
	}
}

func joinLines(lines []string) string { return strings.Join(lines, "\n") }
