package webhook_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
	"drawbridge/internal/webhook"
)

func TestSubscriptionSummaries(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	url := newReceiver(t, nil).URL
	var made []webhook.Subscription
	for i := range 3 {
		h.clock.move(time.Second)
		subscription, _ := h.subscribe(t, url, func(settings *webhook.Settings) {
			if i == 0 {
				settings.Merchants = []uuid.UUID{h.merchant}
				settings.Events = []string{"task.created"}
			}
		})
		made = append(made, subscription)
	}
	first, next, err := h.SubscriptionSummaries(t.Context(), webhook.SummaryFilter{Limit: 2})
	if err != nil || len(first) != 2 || first[0].UID != made[2].UID || first[0].Merchants != 0 {
		t.Fatalf("first page %+v, %v", first, err)
	}
	second, end, err := h.SubscriptionSummaries(t.Context(),
		webhook.SummaryFilter{Cursor: next, Limit: 2})
	if err != nil || len(second) != 1 || !end.IsZero() {
		t.Fatalf("second page %+v, %v", second, err)
	}
	got := second[0]
	if got.UID != made[0].UID || got.Merchants != 1 || got.Events[0] != "task.created" ||
		got.PartnerName != "Solar Partners" || got.State != webhook.StateActive {
		t.Errorf("summary %+v", got)
	}
	_, _, err = h.SubscriptionSummaries(t.Context(), webhook.SummaryFilter{})
	wantRefusal(t, err, lending.CodeValidation, "limit")
}

func TestSummaryFilters(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	other := h.newPartner(t)
	tasks, _ := h.subscribe(t, "https://hooks.sunvolt.example/tasks.php",
		func(settings *webhook.Settings) { settings.Events = []string{"task.created"} })
	h.clock.move(time.Second)
	all, _ := h.subscribe(t, "https://in.other.example:8443/hooks.sunvolt", nil)
	gone, _ := h.subscribe(t, "https://gone.example/", nil)
	h.do(t, func(ctx context.Context, tx *postgres.Tx) error {
		if _, err := h.Pause(ctx, tx, all.UID, "test"); err != nil {
			return err
		}
		_, err := h.Delete(ctx, tx, gone.UID, "test")
		return err
	})
	tests := []struct {
		name   string
		filter webhook.SummaryFilter
		want   []uuid.UUID
	}{
		{"none leaves out the deleted", webhook.SummaryFilter{}, []uuid.UUID{all.UID, tasks.UID}},
		{"deleted", webhook.SummaryFilter{State: webhook.StateDeleted}, []uuid.UUID{gone.UID}},
		{"paused", webhook.SummaryFilter{State: webhook.StatePaused}, []uuid.UUID{all.UID}},
		{
			"an event chosen or among all",
			webhook.SummaryFilter{Event: lending.EventTaskCreated},
			[]uuid.UUID{all.UID, tasks.UID},
		},
		{
			"an event not chosen",
			webhook.SummaryFilter{Event: lending.EventDocumentSent},
			[]uuid.UUID{all.UID},
		},
		{
			"the host, not the path",
			webhook.SummaryFilter{Host: "Hooks.Sunvolt"},
			[]uuid.UUID{tasks.UID},
		},
		{"the port", webhook.SummaryFilter{Host: ":8443"}, []uuid.UUID{all.UID}},
		{"no pattern in the host", webhook.SummaryFilter{Host: "%"}, nil},
		{"partner", webhook.SummaryFilter{PartnerUID: h.partner}, []uuid.UUID{all.UID, tasks.UID}},
		{"another partner", webhook.SummaryFilter{PartnerUID: other}, nil},
	}
	for _, test := range tests {
		test.filter.Limit = 10
		rows, _, err := h.SubscriptionSummaries(t.Context(), test.filter)
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
		if count, err := h.CountSummaries(t.Context(), test.filter, 10); err != nil ||
			count != len(test.want) {
			t.Errorf("%s: %d counted, %v", test.name, count, err)
		}
	}
}
