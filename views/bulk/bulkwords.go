package bulk

import (
	"context"
	"time"

	"drawbridge/views/ui"
)

// zoneHint says in which zone a form's times are.
func zoneHint(ctx context.Context) string {
	return "In the time zone " + ui.ZoneOf(ctx).String() + "."
}

// question asks for the decision.
func (p Draft) question() string {
	return "Re-send " + ui.Plural(p.Total, "delivery", "deliveries") + "?"
}

// consequence names what confirming will do.
func (p Draft) consequence() string {
	return ui.Number(p.Total) + " new deliveries go to " +
		ui.Plural(len(p.Lanes), "endpoint", "endpoints") +
		" of " + ui.Visible(p.Partner) + ", at most " + ui.Number(p.Pace) +
		" a second to each: the same bytes, signed with the current secret, with up to three " +
		"attempts each. The set is fixed now; you can pause or cancel what has not been sent."
}

// takes is how long sending lasts.
func (p Draft) takes() string {
	if p.Total == 0 {
		return "–"
	}
	return ui.Duration(max(p.Takes, time.Second).Round(time.Second))
}

// takesNote qualifies how long sending lasts.
func (p Draft) takesNote() string {
	if p.Total == 0 {
		return "nothing is sent"
	}
	return "at least"
}

func (p Draft) paceNote() string { return "at most " + ui.Number(p.Pace) + " a second each" }

// nothing explains an empty plan.
func (p Draft) nothing() string {
	if p.Skips > 0 {
		return "Everything that matches is left out; the reasons stand below."
	}
	return "No delivery or event matches any more. It may have been sent again meanwhile."
}

func (f Facts) paceWord() string {
	return "at most " + ui.Number(f.Pace) + " a second to one endpoint"
}

func (p Progress) cancelQuestion() string { return "Cancel what has not been sent?" }

// cancelConsequence names what cancelling will do.
func (p Progress) cancelConsequence() string {
	return ui.Plural(p.Waiting, "delivery is withdrawn", "deliveries are withdrawn") +
		", as of now. Those that were sent go on. A cancelled bulk re-send cannot be resumed."
}
