package bulk

import (
	"time"

	"github.com/a-h/templ"

	"drawbridge/internal/webhook/bulk"
	"drawbridge/views/paths"
	"drawbridge/views/ui"
)

// Progress is the page of a confirmed bulk re-send.
type Progress struct {
	bulk.Resend
	// Remaining is how long sending will still take at the pace.
	Remaining time.Duration
	Targets   []bulk.Target
	// Outcomes are the tabs of the results by state.
	Outcomes []ui.Tab
	// Outcome is the selected state, empty for all.
	Outcome bulk.ItemState
	Items   []bulk.Item
	// First and More link to other pages of the results, empty if there are none.
	First, More string
	// StreamURL and PollURL update the region.
	StreamURL, PollURL string
	// Confirming shows the confirmation of cancelling on the page.
	Confirming bool
}

// holdable reports whether there is something left to pause.
func (p Progress) holdable() bool {
	return p.Counts.Waiting > 0 && (p.State == bulk.StateRunning || p.State == bulk.StatePaused)
}

// headline describes the progress.
func (p Progress) headline() string {
	switch {
	case p.State == bulk.StateCancelled:
		return "Cancelled: " +
			ui.Plural(p.Counts.Cancelled, "delivery was withdrawn", "deliveries were withdrawn")
	case p.State == bulk.StateFinished:
		return "All have ended"
	case p.State == bulk.StatePaused:
		return "Paused: " + ui.Plural(p.Counts.Waiting, "delivery waits", "deliveries wait")
	case p.Counts.Waiting == 0:
		return "All sent; " + ui.Plural(p.Counts.Sent, "outcome is", "outcomes are") + " still open"
	}
	return "Sending"
}

// remaining says how long sending will still take.
func (p Progress) remaining() string {
	if p.State != bulk.StateRunning || p.Counts.Waiting == 0 {
		return ""
	}
	left := max(p.Remaining.Round(time.Second), time.Second)
	return "about " + ui.Duration(left) + " of sending left"
}

// manyFailed is the number of failures from which the page says that nothing arrives.
const manyFailed = 5

// itemHref links to the new delivery or, if there is none, to the old one or else the event.
func itemHref(i bulk.Item) string {
	switch {
	case i.NewUID != nil:
		return paths.To(paths.Delivery, i.NewUID.String())
	case i.DeliveryUID != nil:
		return paths.To(paths.Delivery, i.DeliveryUID.String())
	}
	return paths.To(paths.Event, i.EventUID.String())
}

// result is the outcome in a word or two.
func result(i bulk.Item) string {
	switch status, class := ui.Value(i.HTTPStatus), ui.Value(i.ErrorClass); {
	case i.SkipReason != nil:
		return skipWord(*i.SkipReason)
	case status != 0 || class != "":
		return ui.OutcomeWord(status, class)
	}
	return ""
}

func itemTable(rows []bulk.Item) ui.TableProps[bulk.Item] {
	return ui.TableProps[bulk.Item]{
		Caption: "Results in the order of sending",
		RowID:   func(i bulk.Item) string { return "item-" + ui.Number(i.Position) },
		Rows:    rows,
		Columns: []ui.Column[bulk.Item]{
			ui.Chips("State", "w-state", func(i bulk.Item) ui.ChipProps { return ItemChip(i.State) }),
			{Title: "Event", Header: true, Cell: itemEventCell},
			{Title: "Application", Class: "col-b w-id mono", Cell: itemApplicationCell},
			{
				Title: "Destination", Class: "col-b w-sixth",
				Cell: func(i bulk.Item) templ.Component { return ui.Endpoint(i.Endpoint) },
			},
			{Title: "Result", Class: "col-a w-result", Cell: itemResultCell},
			{Title: "New delivery", Class: "col-b w-id mono", Cell: itemNewCell},
			ui.Times("Occurred", "w-time end", func(i bulk.Item) time.Time { return i.EventAt }),
		},
	}
}
