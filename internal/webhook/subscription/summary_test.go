package subscription_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
	"drawbridge/internal/webhook/subscription"
	"drawbridge/internal/webhook/webhooktest"
)

func TestSubscriptionSummaries(t *testing.T) {
	t.Parallel()
	h := webhooktest.New(t)
	url := webhooktest.NewReceiver(t, nil).URL
	var made []subscription.Subscription
	for i := range 3 {
		h.Clock.Move(time.Second)
		subscribed, _ := h.Subscribe(t, url, func(settings *subscription.Settings) {
			if i == 0 {
				settings.Merchants = []uuid.UUID{h.Merchant}
				settings.Events = []string{"task.created"}
			}
		})
		made = append(made, subscribed)
	}
	first, next, err := h.Subscriptions.Summaries(t.Context(), subscription.SummaryFilter{},
		postgres.Paging{Limit: 2})
	if err != nil || len(first) != 2 || first[0].UID != made[2].UID || first[0].Merchants != 0 {
		t.Fatalf("first page %+v, %v", first, err)
	}
	second, end, err := h.Subscriptions.Summaries(t.Context(),
		subscription.SummaryFilter{}, postgres.Paging{From: next, Limit: 2})
	if err != nil || len(second) != 1 || !end.IsZero() {
		t.Fatalf("second page %+v, %v", second, err)
	}
	got := second[0]
	if got.UID != made[0].UID || got.Merchants != 1 || got.Events[0] != "task.created" ||
		got.PartnerName != "Solar Partners" || got.State != subscription.StateActive {
		t.Errorf("summary %+v", got)
	}
	_, _, err = h.Subscriptions.Summaries(t.Context(), subscription.SummaryFilter{}, postgres.Paging{})
	webhooktest.WantRefusal(t, err, lending.CodeValidation, "limit")
}

func TestSummaryFilters(t *testing.T) {
	t.Parallel()
	h := webhooktest.New(t)
	other := h.NewPartner(t)
	tasks, _ := h.Subscribe(t, "https://hooks.sunvolt.example/tasks.php",
		func(settings *subscription.Settings) { settings.Events = []string{"task.created"} })
	h.Clock.Move(time.Second)
	all, _ := h.Subscribe(t, "https://in.other.example:8443/hooks.sunvolt", nil)
	gone, _ := h.Subscribe(t, "https://gone.example/", nil)
	h.Do(t, func(ctx context.Context, tx *postgres.Tx) error {
		if _, err := h.Subscriptions.Pause(ctx, tx, all.UID, "test"); err != nil {
			return err
		}
		_, err := h.Subscriptions.Delete(ctx, tx, gone.UID, "test")
		return err
	})
	tests := []struct {
		name   string
		filter subscription.SummaryFilter
		want   []uuid.UUID
	}{
		{"none leaves out the deleted", subscription.SummaryFilter{}, []uuid.UUID{all.UID, tasks.UID}},
		{"deleted", subscription.SummaryFilter{State: subscription.StateDeleted}, []uuid.UUID{gone.UID}},
		{"paused", subscription.SummaryFilter{State: subscription.StatePaused}, []uuid.UUID{all.UID}},
		{
			"an event chosen or among all",
			subscription.SummaryFilter{Event: lending.EventTaskCreated},
			[]uuid.UUID{all.UID, tasks.UID},
		},
		{
			"an event not chosen",
			subscription.SummaryFilter{Event: lending.EventDocumentSent},
			[]uuid.UUID{all.UID},
		},
		{
			"the host, not the path",
			subscription.SummaryFilter{Host: "Hooks.Sunvolt"},
			[]uuid.UUID{tasks.UID},
		},
		{"the port", subscription.SummaryFilter{Host: ":8443"}, []uuid.UUID{all.UID}},
		{"no pattern in the host", subscription.SummaryFilter{Host: "%"}, nil},
		{"partner", subscription.SummaryFilter{PartnerUID: h.Partner}, []uuid.UUID{all.UID, tasks.UID}},
		{"another partner", subscription.SummaryFilter{PartnerUID: other}, nil},
	}
	for _, test := range tests {
		rows, _, err := h.Subscriptions.Summaries(t.Context(), test.filter, postgres.Paging{Limit: 10})
		if err != nil {
			t.Fatalf("%s: %v", test.name, err)
		}
		var got []uuid.UUID
		for _, row := range rows {
			got = append(got, row.UID)
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
		if count, err := h.Subscriptions.CountSummaries(t.Context(), test.filter, 10); err != nil ||
			count != len(test.want) {
			t.Errorf("%s: %d counted, %v", test.name, count, err)
		}
	}
}
