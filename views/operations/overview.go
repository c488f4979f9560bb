// Package operations renders what runs the console: the overview, what needs attention,
// queues, system, settings, audit log, search, and the pages for development.
package operations

import (
	"strings"
	"time"

	"drawbridge/internal/alert"
	"drawbridge/internal/processes"
	"drawbridge/views/paths"
	"drawbridge/views/ui"
)

// OverviewProps are the console's first page.
type OverviewProps struct {
	// Ranges are the times to choose from; Since and Until are the form's values.
	Ranges       []ui.Tab
	Since, Until string
	// Wrong is keyed by "since" and "until".
	Wrong map[string]string
	// StreamURL and PollURL keep the numbers up to date; empty for a time past.
	StreamURL, PollURL string
	Numbers            Numbers
	// Unavailable tells that the numbers could not be loaded.
	Unavailable bool
}

// Numbers are what is kept up to date.
type Numbers struct {
	At time.Time
	// Span words the time that the numbers cover: "last 24 hours".
	Span string
	// Figures are what matters most of the time, against the week before; Now is how
	// things stand at this moment.
	Figures []Figure
	Now     []ui.Tile
	// Outcomes may be of failures alone; Splits lead to the others.
	Outcomes ui.BarPlotProps
	Splits   []ui.Tab
	Latency  ui.LinePlotProps
	// Alerts are open, newest first.
	Alerts []alert.Item
	// Activity is what was begun in the time, by state; DrawWord names the states of draws.
	Activity processes.Activity
	DrawWord func(state string) string
}

// Figure is a headline: a number with its course, and what it was a week before.
type Figure struct {
	ui.Tile
	Spark ui.SparklineProps
}

// counts are things of a kind by state, and where all of them are listed. No list is of those
// alone that were begun in a time.
type counts struct {
	kind, title string
	rows        []processes.StateCount
	word        func(state string) string
	all, path   string
}

func (n Numbers) counts() []counts {
	same := func(state string) string { return state }
	return []counts{
		{
			"application", "Applications made", n.Activity.Applications, same,
			"All applications", paths.Applications,
		},
		{
			"draw", "Draws requested", n.Activity.Draws, n.DrawWord, "All loans and draws", paths.Loans,
		},
	}
}

func (c counts) table() ui.TableProps[processes.StateCount] {
	return ui.TableProps[processes.StateCount]{
		Caption: c.title + " by status",
		RowID: func(r processes.StateCount) string {
			return c.kind + "-state-" + strings.ReplaceAll(r.State, " ", "-")
		},
		Rows: c.rows,
		Columns: []ui.Column[processes.StateCount]{
			{
				Title: "Status", Header: true,
				Text: func(r processes.StateCount) string { return c.word(r.State) },
			},
			{
				Title: "Count", Class: "end",
				Text: func(r processes.StateCount) string { return UpTo(r.Count) },
			},
		},
	}
}

// MaxCount is the highest number that the overview shows exactly.
const MaxCount = 10_000

// UpTo writes a count that goes up to ten thousand.
func UpTo(count int) string {
	if count >= MaxCount {
		return ui.Number(MaxCount) + "+"
	}
	return ui.Number(count)
}
