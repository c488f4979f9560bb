// Package operations renders what runs the console: the overview, what needs attention,
// queues, system, settings, audit log, search, and the pages for development.
package operations

import "drawbridge/views/ui"

// Overview is the console's first page.
type Overview struct {
	ui.Frame
	// Ranges are the times to choose from; Since and Until are the form's values.
	Ranges       []ui.Tab
	Since, Until string
	// Faults are keyed by "since" and "until".
	Faults map[string]string
	// StreamURL and PollURL keep the numbers up to date; empty for a time past.
	StreamURL, PollURL string
	Numbers            OverviewNumbers
	// Unavailable tells that the numbers could not be loaded.
	Unavailable bool
}

// OverviewNumbers are what is kept up to date.
type OverviewNumbers struct {
	// Span words the time that the numbers cover: "last 24 hours".
	Span     string
	Tiles    []ui.Tile
	Outcomes ui.BarPlotProps
	Latency  ui.LinePlotProps
	// Attention lists what needs a human, newest first.
	Attention []ui.AttentionRow
	// Applications and Draws count what was begun, by state.
	Applications, Draws []CountRow
}

// CountRow is a number of things in a state and where they are listed.
type CountRow struct {
	ID    string
	State string
	Count string
	// Href is empty where there is no such list.
	Href string
}

func countTable(caption string, rows []CountRow) ui.TableProps[CountRow] {
	return ui.TableProps[CountRow]{
		Caption: caption,
		RowID:   func(r CountRow) string { return r.ID },
		Rows:    rows,
		Columns: []ui.Column[CountRow]{
			{Title: "Status", Header: true, Cell: countStateCell},
			{Title: "Count", Class: "end", Cell: countNumberCell},
		},
	}
}
