package ui

import (
	"slices"
	"strings"
	"time"

	"github.com/a-h/templ"
	"github.com/google/uuid"

	"drawbridge/internal/operator"
)

// SessionTable lists sessions, each except the current one with a button that ends it.
func SessionTable(
	caption string, sessions []operator.Session, current uuid.UUID, end func(operator.Session) string,
) TableProps[operator.Session] {
	table := TableProps[operator.Session]{
		Caption: caption, Rows: sessions,
		RowID: func(s operator.Session) string { return "session-" + s.UID.String() },
		Columns: []Column[operator.Session]{
			{Title: "Device", Header: true, Cell: func(s operator.Session) templ.Component {
				return sessionDeviceCell(s, s.UID == current)
			}},
			{Title: "Network address", Class: "col-b w-third", Cell: sessionAddressCell},
			Times("Signed in", "col-a w-time",
				func(s operator.Session) time.Time { return s.StartedAt }).Titled(),
			Times("Last used", "w-time", func(s operator.Session) time.Time { return s.SeenAt }).Titled(),
		},
	}
	if slices.ContainsFunc(sessions, func(s operator.Session) bool { return s.UID != current }) {
		table.Columns = append(table.Columns, Column[operator.Session]{
			Title: "Action", Class: "w-act end", Cell: func(s operator.Session) templ.Component {
				if s.UID == current {
					return templ.NopComponent
				}
				return endSessionCell(end(s), s)
			},
		})
	}
	return table
}

// Device names a browser and its operating system as far as the user agent reveals them:
// "Firefox on Linux".
func Device(agent string) string {
	browser := firstOf(agent, [][2]string{
		{"Edg/", "Edge"},
		{"OPR/", "Opera"},
		{"Firefox/", "Firefox"},
		{"HeadlessChrome", "Chromium"},
		{"Chrome/", "Chrome"},
		{"Safari/", "Safari"},
		{"curl/", "curl"},
	})
	system := firstOf(agent, [][2]string{
		{"iPhone", "iPhone"},
		{"iPad", "iPad"},
		{"Android", "Android"},
		{"Windows", "Windows"},
		{"Mac OS X", "macOS"},
		{"CrOS", "ChromeOS"},
		{"Linux", "Linux"},
	})
	switch {
	case browser != "" && system != "":
		return browser + " on " + system
	case browser+system != "":
		return browser + system
	case agent == "":
		return "A device that does not say what it is"
	}
	return agent
}

// firstOf returns the name of the first pair whose mark the text contains.
func firstOf(text string, names [][2]string) string {
	for _, pair := range names {
		if strings.Contains(text, pair[0]) {
			return pair[1]
		}
	}
	return ""
}
