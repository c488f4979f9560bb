package bulk

import (
	"time"

	"drawbridge/internal/webhook/subscription"
	"drawbridge/views/paths"
	"drawbridge/views/ui"
)

// Progress is the page of a bulk re-send that was confirmed.
type Progress struct {
	Facts
	Total int
	// Waiting, Sent and so on count its items by state.
	Waiting, Sent, Delivered, Failed, Cancelled, Skipped int
	// Remaining is how long sending will still take at the pace.
	Remaining time.Duration
	Lanes     []LaneRow
	// Outcomes are the views of the results by state.
	Outcomes []ui.Tab
	// Outcome is the one that is shown, empty for all.
	Outcome string
	Items   []ItemRow
	// First and More are the results' neighbouring pages, empty where there is none.
	First, More string
	// StreamURL and PollURL bring the region up to date.
	StreamURL, PollURL string
	// Asking shows the question before cancelling on the page.
	Asking bool
}

// Done is how many items have ended.
func (p Progress) Done() int { return p.Delivered + p.Failed + p.Cancelled }

// holdable tells whether there is something left to hold back.
func (p Progress) holdable() bool {
	return p.Waiting > 0 && (p.State == "running" || p.State == "paused")
}

// headline says how far it has come.
func (p Progress) headline() string {
	switch {
	case p.State == "cancelled":
		return "Cancelled: " +
			ui.Plural(p.Cancelled, "delivery was withdrawn", "deliveries were withdrawn")
	case p.State == "finished":
		return "All have ended"
	case p.State == "paused":
		return "Paused: " + ui.Plural(p.Waiting, "delivery waits", "deliveries wait")
	case p.Waiting == 0:
		return "All sent; " + ui.Plural(p.Sent, "outcome is", "outcomes are") + " still open"
	}
	return "Sending"
}

// remaining says how long sending will still take.
func (p Progress) remaining() string {
	if p.State != "running" || p.Waiting == 0 {
		return ""
	}
	return "about " + ui.Duration(p.Remaining.Round(time.Second)) + " of sending left"
}

// manyFailed is from how many failures on it is said that nothing arrives.
const manyFailed = 5

// allFail tells that it would be better to stop for now.
func (p Progress) allFail() bool {
	return p.State == "running" && p.Delivered == 0 && p.Failed >= manyFailed
}

// ItemRow is one result of a bulk re-send.
type ItemRow struct {
	Position int
	State    string
	Event    string
	Status   string
	// Application is empty for a test event.
	Application string
	subscription.Endpoint
	// New is the delivery that was made, Old the one that it re-sends.
	New, Old string
	EventUID string
	Skip     string
	// HTTPStatus and ErrorClass are the last attempt's.
	HTTPStatus int
	ErrorClass string
	Occurred   time.Time
}

// href leads to the new delivery, or what there is of it.
func (r ItemRow) href() string {
	switch {
	case r.New != "":
		return paths.To(paths.Delivery, r.New)
	case r.Old != "":
		return paths.To(paths.Delivery, r.Old)
	}
	return paths.To(paths.Event, r.EventUID)
}

// result names the outcome in a word or two.
func (r ItemRow) result() string {
	switch {
	case r.Skip != "":
		return SkipWord(r.Skip)
	case r.HTTPStatus != 0 || r.ErrorClass != "":
		return ui.OutcomeWord(r.HTTPStatus, r.ErrorClass)
	}
	return ""
}

func itemTable(rows []ItemRow) ui.TableProps[ItemRow] {
	return ui.TableProps[ItemRow]{
		Caption: "Results in the order of sending",
		RowID:   func(r ItemRow) string { return "item-" + ui.Number(r.Position) },
		Rows:    rows,
		Columns: []ui.Column[ItemRow]{
			{Title: "State", Class: "w-state", Cell: itemStateCell},
			{Title: "Event", Header: true, Cell: itemEventCell},
			{Title: "Application", Class: "col-b w-id mono", Cell: itemApplicationCell},
			{Title: "Destination", Class: "col-b w-sixth", Cell: itemPlaceCell},
			{Title: "Result", Class: "col-a w-result", Cell: itemResultCell},
			{Title: "New delivery", Class: "col-b w-id mono", Cell: itemNewCell},
			{Title: "Occurred", Class: "w-time end", Cell: itemTimeCell},
		},
	}
}
