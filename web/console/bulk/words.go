package bulk

import (
	"context"

	resend "drawbridge/internal/webhook/bulk"

	"github.com/google/uuid"

	"drawbridge/views/bulk"
	"drawbridge/views/paths"
	"drawbridge/views/ui"
)

// scopeWords says all of it, with times in the reader's zone.
func scopeWords(ctx context.Context, scope resend.Scope) []string {
	from, until := scope.Since, scope.Until
	words := []string{}
	switch scope.Kind {
	case resend.KindSelection:
		return []string{bulk.Title(scope)}
	case resend.KindFilter:
		from, until = scope.Filter.Since, scope.Filter.Until
		words = bulk.FilterWords(scope.Filter)
	case resend.KindRecover:
		words = append(words, "Failed deliveries that did not arrive later")
	case resend.KindReplay:
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
	if !from.IsZero() {
		words = append(words, "from "+from.In(zone).Format(layout))
	}
	if !until.IsZero() {
		words = append(words, "before "+until.In(zone).Format(layout))
	}
	return words
}

// factsOf are what the pages of a bulk re-send have in common.
func factsOf(ctx context.Context, of resend.Resend) bulk.Facts {
	facts := bulk.Facts{
		UID: of.UID.String(), State: string(of.State), What: bulk.Title(of.Scope),
		Words: scopeWords(ctx, of.Scope), Partner: of.PartnerName, Reason: of.Reason,
		By: of.CreatedBy, Created: of.CreatedAt, ConfirmedBy: of.ConfirmedBy,
		Confirmed: of.ConfirmedAt, Ended: of.EndedAt, Pace: of.Options.Pace,
		SkipNewer: of.Options.SkipNewer, SkipDelivered: of.Options.SkipDelivered,
	}
	if of.Scope.EventUID != uuid.Nil {
		facts.Source = paths.To(paths.Event, of.Scope.EventUID.String())
	}
	return facts
}
