package deliveries

import "drawbridge/views/ui"

// CancelForm asks whether to cancel deliveries.
type CancelForm struct {
	ui.Frame
	UIDs []string
	// Waiting is how many of them still wait for an attempt.
	Waiting int
	// Endpoints is how many endpoints they go to.
	Endpoints int
	// Query is the filter of the list that they were chosen from, Back its address.
	Query, Back string
	// Reason and Fault return what was typed, with what is wrong about it.
	Reason string
	Fault  string
}

func (p CancelForm) title() string {
	return "This cancels " + ui.Plural(p.Waiting, "waiting delivery", "waiting deliveries") + " to " +
		ui.Plural(p.Endpoints, "endpoint", "endpoints")
}

func (p CancelForm) action() string {
	return "Cancel " + ui.Plural(p.Waiting, "delivery", "deliveries")
}
