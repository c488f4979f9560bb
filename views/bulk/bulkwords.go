package bulk

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/webhook/bulk"
	"drawbridge/internal/webhook/delivery"
	"drawbridge/views/ui"
)

// Title describes in a few words what a bulk re-send contains.
func Title(scope bulk.Scope) string {
	switch scope.Kind {
	case bulk.KindSelection:
		return ui.Plural(len(scope.Deliveries), "chosen delivery", "chosen deliveries")
	case bulk.KindRecover:
		return "Recover what failed"
	case bulk.KindReplay:
		if scope.EventUID != uuid.Nil {
			return "Replay one event"
		}
		return "Replay what was never sent"
	case bulk.KindFilter:
	}
	rest, title := scope.Filter, "Deliveries"
	switch {
	case rest.State != "":
		title, rest.State = ui.DeliveryChip(rest.State).Word+" deliveries", ""
	case rest.Waiting:
		title, rest.Waiting = "Waiting deliveries", false
	}
	words := filterWords(rest)
	switch {
	case len(words) > 0:
		return title + ": " + strings.Join(words, ", ")
	case title == "Deliveries":
		return "All deliveries"
	}
	return title
}

// filterWords describes every condition of a filter except its time range.
func filterWords(f delivery.Filter) []string {
	var words []string
	add := func(given bool, word string) {
		if given {
			words = append(words, word)
		}
	}
	add(f.State != "", "state "+string(f.State))
	add(f.Waiting, "waiting")
	add(f.Open, "not made good")
	add(f.Event != "", "event "+ui.EventWord(string(f.Event)))
	add(f.SubscriptionUID != uuid.Nil, "subscription "+f.SubscriptionUID.String())
	add(f.MerchantUID != uuid.Nil, "merchant "+f.MerchantUID.String())
	add(f.ApplicationUID != uuid.Nil, "application "+f.ApplicationUID.String())
	add(f.EventUID != uuid.Nil, "event "+f.EventUID.String())
	add(f.HTTPStatus != 0, fmt.Sprintf("HTTP %d", f.HTTPStatus))
	add(f.HTTPClass != 0, fmt.Sprintf("HTTP %dxx", f.HTTPClass))
	add(f.ErrorClass != "", "error "+string(f.ErrorClass))
	if f.Test != nil {
		add(*f.Test, "test events")
		add(!*f.Test, "no test events")
	}
	if f.Resend != nil {
		add(*f.Resend, "re-sends")
		add(!*f.Resend, "no re-sends")
	}
	add(f.Slow, "slow")
	return words
}

// scopeWords describes the whole scope, with times in the reader's zone.
func scopeWords(ctx context.Context, scope bulk.Scope) []string {
	from, until := scope.Since, scope.Until
	words := []string{}
	switch scope.Kind {
	case bulk.KindSelection:
		return []string{Title(scope)}
	case bulk.KindFilter:
		from, until = scope.Filter.Since, scope.Filter.Until
		words = filterWords(scope.Filter)
	case bulk.KindRecover:
		words = append(words, "Failed deliveries that did not arrive later")
	case bulk.KindReplay:
		if scope.EventUID != uuid.Nil {
			return []string{"Event " + scope.EventUID.String(), "subscriptions that never got it"}
		}
		words = append(words, "Events that the subscription asks for and never got")
	}
	for _, uid := range scope.Subscriptions {
		words = append(words, "Subscription "+uid.String())
	}
	const layout = "2006-01-02 15:04:05 MST"
	zone := ui.ZoneOf(ctx)
	made := ui.If(scope.Kind == bulk.KindReplay || scope.ByEvent, // these times are the event's
		"occurred ", "created ")
	if !from.IsZero() {
		words = append(words, made+"from "+from.In(zone).Format(layout))
		made = ""
	}
	if !until.IsZero() {
		words = append(words, made+"before "+until.In(zone).Format(layout))
	}
	return words
}

// laneEvents lists the kinds of a target's events with their counts.
func laneEvents(target bulk.PlanTarget) []string {
	words := make([]string, 0, len(target.Events))
	for kind, count := range target.Events {
		words = append(words, kind.Named()+": "+ui.Number(count))
	}
	slices.Sort(words)
	return words
}

// risk is something to consider before confirming.
type risk struct {
	count int
	text  string
}

// risksOf describes the risks to consider before confirming.
func risksOf(risks bulk.Risks) []risk {
	var found []risk
	for _, asked := range []struct {
		count     int
		one, many string // verb and object
		rest      string
	}{
		{
			risks.Delivered, "was delivered already: the partner gets it again.",
			"were delivered already: the partner gets them again.", "",
		},
		{risks.Newer, "was overtaken", "were overtaken", ": a newer event of the same application " +
			"was delivered, and the partner would get the older one after it."},
		{
			risks.Unknown, "may have arrived", "may have arrived",
			": the outcome of an attempt is unknown.",
		},
		{risks.Changed, "was tried", "were tried", " under an older configuration; the re-send " +
			"uses the subscription as it is now."},
		{risks.Failing, "goes", "go", " to an endpoint that is failing at present."},
		{risks.Untried, "goes", "go", " to a URL that nothing was sent to yet; the former one failed."},
		{
			risks.Paused, "goes to a paused subscription, and waits",
			"go to a paused subscription, and wait",
			" until it is resumed.",
		},
	} {
		switch {
		case asked.count == 1:
			found = append(found, risk{1, asked.one + asked.rest})
		case asked.count > 1:
			found = append(found, risk{asked.count, asked.many + asked.rest})
		}
	}
	return found
}

// question is the question of the confirmation.
func (p Draft) question() string {
	return "Re-send " + ui.Plural(p.Total, "delivery", "deliveries") + "?"
}

// consequence says what confirming will do.
func (p Draft) consequence() string {
	return ui.Plural(p.Total, "new delivery goes", "new deliveries go") + " to " +
		ui.Plural(len(p.Targets), "endpoint", "endpoints") +
		" of " + ui.Visible(p.PartnerName) + ", at most " + ui.Number(p.Options.Pace) +
		" a second to each: the same bytes, signed with the current secret, with up to three " +
		"attempts each. The set is fixed now; you can pause or cancel what has not been sent."
}

// takes is how long sending will take.
func (p Draft) takes() string {
	return ui.If(p.Total == 0, "–",
		ui.Duration(max(p.Takes(p.Options.Pace), time.Second).Round(time.Second)))
}

// nothing explains why a plan is empty.
func (p Draft) nothing() string {
	if p.Skips() > 0 {
		return "Everything that matches is left out; the reasons stand below."
	}
	nothing := "Nothing matches now: there was nothing, or it has been re-sent since."
	if p.Scope.Kind == bulk.KindRecover && !p.Scope.ByEvent {
		nothing += " Deliveries go by when they were created, which may be long before they failed."
	}
	return nothing
}

const cancelQuestion = "Cancel what has not been sent?"

// cancelConsequence says what cancelling will do.
func (p Progress) cancelConsequence() string {
	return ui.Plural(p.Counts.Waiting, "delivery is withdrawn", "deliveries are withdrawn") +
		", as of now. Those that were sent go on. A cancelled bulk re-send cannot be resumed."
}
