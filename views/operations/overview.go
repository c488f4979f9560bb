// Package operations renders what runs the console: the overview, what needs attention,
// queues, system, settings, audit log, search, and the pages for development.
package operations

import (
	"strings"
	"time"

	"github.com/a-h/templ"

	"drawbridge/internal/alert"
	"drawbridge/internal/processes"
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
	// Begun is what was begun in the time.
	Begun []Begun
}

// Figure is a headline: a number with its course, and what it was a week before.
type Figure struct {
	ui.Tile
	Spark ui.SparklineProps
}

// Begun are things of a kind that were begun in the time, by state.
type Begun struct {
	// Kind is "draw", Title "Draws requested".
	Kind, Title string
	Counts      []processes.StateCount
	// Word is what a state is called, List where those in it are listed.
	Word, List func(state string) string
}

func (b Begun) table() ui.TableProps[processes.StateCount] {
	return ui.TableProps[processes.StateCount]{
		Caption: b.Title + " by status",
		RowID: func(r processes.StateCount) string {
			return b.Kind + "-state-" + strings.ReplaceAll(r.State, " ", "-")
		},
		Rows: b.Counts,
		Columns: []ui.Column[processes.StateCount]{
			{
				Title: "Status", Header: true,
				Cell: func(r processes.StateCount) templ.Component {
					return countStateCell(b.List(r.State), b.Word(r.State))
				},
			},
			ui.Texts("Count", "end", func(r processes.StateCount) string { return UpTo(r.Count) }),
		},
	}
}

// MaxCount is the highest number that the overview shows exactly.
const MaxCount = 10_000

// UpTo writes a count that goes up to ten thousand.
func UpTo(count int) string {
	return ui.If(count >= MaxCount, ui.Number(MaxCount)+"+", ui.Number(count))
}
