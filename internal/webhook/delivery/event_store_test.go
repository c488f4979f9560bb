package delivery_test

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
	"drawbridge/internal/webhook/delivery"
	"drawbridge/internal/webhook/subscription"
	"drawbridge/internal/webhook/webhooktest"
)

func TestEventsAreListedWithWhatBecameOfThem(t *testing.T) {
	t.Parallel()
	h := webhooktest.New(t)
	good, bad := webhooktest.NewReceiver(t, nil),
		webhooktest.NewReceiver(t, webhooktest.Answering(500))
	h.Subscribe(t, good.URL, nil)
	h.Subscribe(t, bad.URL, nil)
	h.Subscribe(t, good.URL, func(s *subscription.Settings) { s.Events = []string{"document.sent"} })
	event := h.Publish(t)
	h.Work(t)
	for _, found := range h.List(t) {
		if found.State == delivery.StateDelivered {
			h.Do(t, func(ctx context.Context, tx *postgres.Tx) error {
				_, err := h.Deliveries.Resend(ctx, tx, []uuid.UUID{found.UID}, "support", "asked for")
				return err
			})
		}
	}
	found, _, err := h.Deliveries.Events(t.Context(), delivery.EventFilter{},
		postgres.Paging{Limit: 10})
	if err != nil || len(found) != 1 {
		t.Fatalf("%d events, %v", len(found), err)
	}
	want := delivery.FanOut{Delivered: 1, Open: 1, PassedOver: 1, Resends: 1}
	if got := found[0]; got.UID != event.UID || got.FanOut != want || got.Test ||
		got.PartnerName != "Solar Partners" || *got.MerchantName != "Sunny Roofs" {
		t.Errorf("event %+v", got)
	}
	detail, err := h.Deliveries.EventByUID(t.Context(), event.UID)
	if err != nil || !bytes.Equal(detail.Body, event.Body) || len(detail.Ledger) != 3 ||
		len(detail.Deliveries) != 3 || detail.FanOut != want {
		t.Errorf("detail %+v, %v", detail, err)
	}
	_, err = h.Deliveries.EventByUID(t.Context(), uuid.New())
	webhooktest.WantRefusal(t, err, lending.CodeNotFound)
}

func TestEventsAreFilteredAndPaged(t *testing.T) {
	t.Parallel()
	h := webhooktest.New(t)
	subscribed, _ := h.Subscribe(t, "https://hooks.example/in", nil)
	start := h.Clock.Now()
	var events []webhooktest.Published
	for range 3 {
		h.Clock.Move(time.Minute)
		events = append(events, h.Publish(t))
	}
	h.Clock.Move(time.Minute)
	h.Do(t, func(ctx context.Context, tx *postgres.Tx) error {
		_, err := h.Deliveries.Test(ctx, tx, subscribed.UID, lending.EventDocumentSent)
		return err
	})
	for _, test := range []struct {
		name   string
		filter delivery.EventFilter
		want   int
	}{
		{"all", delivery.EventFilter{}, 4},
		{"kind", delivery.EventFilter{Kind: lending.EventTaskCreated}, 3},
		{"partner", delivery.EventFilter{PartnerUID: h.Partner}, 4},
		{"other partner", delivery.EventFilter{PartnerUID: uuid.New()}, 0},
		{"merchant", delivery.EventFilter{MerchantUID: h.Merchant}, 3},
		{"application", delivery.EventFilter{ApplicationUID: h.Application}, 3},
		{"tests", delivery.EventFilter{
			ApplicationUID: uuid.MustParse(lending.SampleApplicationUID),
		}, 1},
		{"since", delivery.EventFilter{Since: events[1].OccurredAt}, 3},
		{"until", delivery.EventFilter{Until: events[1].OccurredAt}, 1},
		{"range", delivery.EventFilter{Since: start, Until: events[2].OccurredAt}, 2},
	} {
		seen := 0
		for page := (postgres.Paging{Limit: 1}); ; {
			found, next, err := h.Deliveries.Events(t.Context(), test.filter, page)
			if err != nil {
				t.Fatal(err)
			}
			seen += len(found)
			if page.From = next; next.IsZero() {
				break
			}
		}
		count, err := h.Deliveries.CountEvents(t.Context(), test.filter, 100)
		if err != nil || seen != test.want || count != test.want {
			t.Errorf("%s: %d listed, %d counted, want %d, %v", test.name, seen, count, test.want, err)
		}
	}
	_, _, err := h.Deliveries.Events(t.Context(), delivery.EventFilter{}, postgres.Paging{})
	webhooktest.WantRefusal(t, err, lending.CodeValidation, "limit")
}
