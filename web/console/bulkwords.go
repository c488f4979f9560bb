package console

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/webhook"
	bulkview "drawbridge/views/bulk"
	"drawbridge/views/paths"
	"drawbridge/views/ui"
)

// bulkTitle says in a few words what a bulk re-send is made of.
func bulkTitle(scope webhook.BulkScope) string {
	switch scope.Kind {
	case webhook.BulkSelection:
		return counted(len(scope.Deliveries), "chosen delivery", "chosen deliveries")
	case webhook.BulkRecover:
		return "Recover what failed"
	case webhook.BulkReplay:
		if scope.EventUID != uuid.Nil {
			return "Replay one event"
		}
		return "Replay what was never sent"
	case webhook.BulkFilter:
	}
	rest, title := scope.Filter, "Deliveries"
	if rest.State != "" {
		title, rest.State = ui.DeliveryChip(string(rest.State)).Word+" deliveries", ""
	}
	words := filterWords(rest)
	switch {
	case len(words) > 0:
		return title + ": " + strings.Join(words, ", ")
	case scope.Filter.State == "":
		return "All deliveries"
	}
	return title
}

// bulkWords says all of it, with times in the reader's zone.
func bulkWords(ctx context.Context, scope webhook.BulkScope) []string {
	from, until := scope.Since, scope.Until
	words := []string{}
	switch scope.Kind {
	case webhook.BulkSelection:
		return []string{bulkTitle(scope)}
	case webhook.BulkFilter:
		from, until = scope.Filter.Since, scope.Filter.Until
		words = filterWords(scope.Filter)
	case webhook.BulkRecover:
		words = append(words, "Failed deliveries that did not arrive later")
	case webhook.BulkReplay:
		if scope.EventUID != uuid.Nil {
			return []string{"Event " + scope.EventUID.String(), "subscriptions that never got it"}
		}
		words = append(words, "Events that the subscription asks for and never got")
	}
	for _, uid := range scope.Subscriptions {
		words = append(words, "Subscription "+uid.String())
	}
	return append(words, rangeWords(ui.ZoneOf(ctx), from, until)...)
}

func rangeWords(zone *time.Location, from, until time.Time) []string {
	const layout = "2006-01-02 15:04:05 MST"
	var words []string
	if !from.IsZero() {
		words = append(words, "from "+from.In(zone).Format(layout))
	}
	if !until.IsZero() {
		words = append(words, "before "+until.In(zone).Format(layout))
	}
	return words
}

// filterWords names every condition of a filter but its range of time.
func filterWords(f webhook.DeliveryFilter) []string {
	var words []string
	add := func(given bool, word string) {
		if given {
			words = append(words, word)
		}
	}
	add(f.State != "", "state "+string(f.State))
	add(f.Event != "", "event "+string(f.Event))
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

// bulkFactsOf are what the pages of a bulk re-send have in common.
func bulkFactsOf(ctx context.Context, bulk webhook.Bulk) bulkview.Facts {
	facts := bulkview.Facts{
		UID: bulk.UID.String(), State: string(bulk.State), What: bulkTitle(bulk.Scope),
		Words: bulkWords(ctx, bulk.Scope), Partner: bulk.PartnerName, Reason: bulk.Reason,
		By: bulk.CreatedBy, Created: bulk.CreatedAt, ConfirmedBy: bulk.ConfirmedBy,
		Confirmed: bulk.ConfirmedAt, Ended: bulk.EndedAt, Pace: bulk.Options.Pace,
		SkipNewer: bulk.Options.SkipNewer, SkipDelivered: bulk.Options.SkipDelivered,
	}
	if bulk.Scope.EventUID != uuid.Nil {
		facts.Source = paths.To(paths.Event, bulk.Scope.EventUID.String())
	}
	return facts
}
