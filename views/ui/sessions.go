package ui

import (
	"slices"
	"strings"
	"time"

	"github.com/a-h/templ"
)

// SessionView is one sign-in of a user.
type SessionView struct {
	UID     string
	Device  string
	Address string
	// Provider tells that the sign-in came through the provider.
	Provider bool
	Started  time.Time
	Seen     time.Time
	// Current marks the session of this very request.
	Current bool
}

// SessionTable lists sessions, each with the button that ends it unless it is
// the reader's own.
func SessionTable(
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

// Device names a browser and its system as people call them, as far as the
// browser's own description tells: "Firefox on Linux".
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

// firstOf returns the name of the first mark that text contains.
func firstOf(text string, names [][2]string) string {
	for _, pair := range names {
		if strings.Contains(text, pair[0]) {
			return pair[1]
		}
	}
	return ""
}
