package subscriptions

import (
	"context"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/lending"
	"drawbridge/internal/operator"
	"drawbridge/internal/postgres"
	"drawbridge/internal/webhook/health"
	"drawbridge/internal/webhook/subscription"
	"drawbridge/views/paths"
	"drawbridge/views/subscriptions"
	"drawbridge/views/ui"
	"drawbridge/web/console/list"
)

// day is the period that the success rates of the list cover.
const day = 24 * time.Hour

// list lists the subscriptions.
func (f *Feature) list() list.Spec[subscriptions.Listed] {
	// What needs a person comes first.
	states := []subscription.State{
		subscription.StateFailing, subscription.StateActive, subscription.StatePaused,
		subscription.StateDeleted,
	}
	tabs := list.Options("All", states, func(state subscription.State) string {
		return ui.SubscriptionChip(state).Word
	})
	return list.Spec[subscriptions.Listed]{
		Name: "console.subscriptions", Path: paths.Subscriptions, Role: operator.RoleSupport,
		Place: place, Saved: true, Buttons: subscriptions.NewButton(),
		Intro: "Which events go to which endpoint, and how that has gone over the last 24 hours.",
		One:   "subscription", Many: "subscriptions", Order: "Newest first",
		Tabs: list.Tabs{Name: "state", Options: tabs},
		Filters: []list.Filter{
			list.Partner,
			{Name: "event", Label: "Receives", Kind: list.Choice, Options: list.EventKinds()},
			{Name: "host", Label: "Part of the host", Chip: "Host contains ", Max: 253},
		},
		Read: func(v *list.Values) list.Source[subscriptions.Listed] {
			return list.Filtered(subscription.SummaryFilter{
				State: list.OneOf(v, "state", states), PartnerUID: v.UID("partner"),
				Event: list.OneOf(v, "event", lending.AllEventKinds()), Host: v.Text("host"),
			}, func(
				ctx context.Context, filter subscription.SummaryFilter, page postgres.Paging,
			) (rows []subscriptions.Listed, next postgres.Cursor, err error) {
				summaries, next, err := f.Webhooks.Subscriptions.Summaries(ctx, filter, page)
				if err != nil {
					return nil, next, err
				}
				var uids []uuid.UUID
				for _, summary := range summaries {
					uids = append(uids, summary.UID)
				}
				state, err := f.health(ctx, day, uids...)
				for _, summary := range summaries {
					rows = append(rows, subscriptions.Listed{
						Summary: summary, Health: state[summary.UID],
					})
				}
				return rows, next, err
			}, f.Webhooks.Subscriptions.CountSummaries)
		},
		Table: subscriptions.Table, EmptyBody: subscriptions.None(),
		NoMatch: ui.EmptyProps{
			Title: "No subscription matches these filters",
			Text:  "Remove a filter. Deleted subscriptions are listed under their own state.",
		},
	}
}

// health returns the health of subscriptions over the last period of the given length.
func (f *Feature) health(
	ctx context.Context, length time.Duration, uids ...uuid.UUID,
) (map[uuid.UUID]health.Health, error) {
	now := f.DB.Now()
	return f.Webhooks.Health.Read(ctx, uids, now.Add(-length+time.Hour), now)
}
