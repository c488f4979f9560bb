// Package operations renders the pages about running Drawbridge: the overview, alerts,
// queues, system, settings, audit log and search.
package operations

import (
	"strings"
	"time"

	"github.com/a-h/templ"

	"drawbridge/internal/alert"
	"drawbridge/internal/processes"
	"drawbridge/views/ui"
)

// OverviewProps are the contents of the console's first page.
type OverviewProps struct {
	// Ranges are the predefined periods; Since and Until are the form's values.
	Ranges       []ui.Tab
	Since, Until string
	// Wrong maps "since" and "until" to their errors.
	Wrong map[string]string
	// StreamURL and PollURL keep the numbers up to date; empty for a past period.
	StreamURL, PollURL string
	Numbers            Numbers
	// Unavailable means that the numbers could not be loaded.
	Unavailable bool
}

// Numbers are the part of the overview that is kept up to date.
type Numbers struct {
	At time.Time
	// Span names the period that the numbers cover: "last 24 hours".
	Span string
	// Figures are the main numbers, compared with the week before; Now are the current
	// numbers.
	Figures []Figure
	Now     []ui.Tile
	// Outcomes may show failures only; Splits links to the other plots.
	Outcomes ui.BarPlotProps
	Splits   []ui.Tab
	Latency  ui.LinePlotProps
	// Alerts are the open alerts, newest first.
	Alerts []alert.Item
	// Begun counts what was started in the period.
	Begun []Begun
}

// Figure is a headline: a number with its sparkline, and its value a week before.
type Figure struct {
	ui.Tile
	Spark ui.SparklineProps
}

// Begun counts the things of one kind that were started in the period, by state.
type Begun struct {
	// Kind is "draw", Title "Draws requested".
	Kind, Title string
	Counts      []processes.StateCount
	// Word is a state's name, List the address of the list of that state.
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

// MaxCount is the highest count that the overview shows exactly.
const MaxCount = 10_000

// UpTo formats a count, up to MaxCount.
func UpTo(count int) string {
	return ui.If(count >= MaxCount, ui.Number(MaxCount)+"+", ui.Number(count))
}
