package webhook_test

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
	"drawbridge/internal/webhook"
)

func TestEventsAreListedWithWhatBecameOfThem(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	good, bad := newReceiver(t, nil), newReceiver(t, answering(500))
	h.subscribe(t, good.URL, nil)
	h.subscribe(t, bad.URL, nil)
	h.subscribe(t, good.URL, func(s *webhook.Settings) { s.Events = []string{"document.sent"} })
	event := h.publish(t)
	h.work(t)
	for _, delivery := range h.list(t) {
		if delivery.State == webhook.DeliveryDelivered {
			h.do(t, func(ctx context.Context, tx *postgres.Tx) error {
				_, err := h.Resend(ctx, tx, []uuid.UUID{delivery.UID}, "support", "asked for")
				return err
			})
		}
	}
	page, err := h.Events(t.Context(), webhook.EventFilter{Limit: 10})
	if err != nil || len(page.Events) != 1 {
		t.Fatalf("%d events, %v", len(page.Events), err)
	}
	want := webhook.FanOut{Delivered: 1, Open: 1, PassedOver: 1, Resends: 1}
	if got := page.Events[0]; got.UID != event.UID || got.FanOut != want || got.Test ||
		got.PartnerName != "Solar Partners" || *got.MerchantName != "Sunny Roofs" {
		t.Errorf("event %+v", got)
	}
	detail, err := h.EventByUID(t.Context(), event.UID)
	if err != nil || !bytes.Equal(detail.Body, event.Body) || len(detail.Ledger) != 3 ||
		len(detail.Deliveries) != 3 || detail.FanOut != want {
		t.Errorf("detail %+v, %v", detail, err)
	}
	_, err = h.EventByUID(t.Context(), uuid.New())
	wantRefusal(t, err, lending.CodeNotFound)
}

func TestEventsAreFilteredAndPaged(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	subscription, _ := h.subscribe(t, "https://hooks.example/in", nil)
	start := h.clock.now()
	var events []published
	for range 3 {
		h.clock.move(time.Minute)
		events = append(events, h.publish(t))
	}
	h.clock.move(time.Minute)
	h.do(t, func(ctx context.Context, tx *postgres.Tx) error {
		_, err := h.Test(ctx, tx, subscription.UID, lending.EventDocumentSent)
		return err
	})
	for _, test := range []struct {
		name   string
		filter webhook.EventFilter
		want   int
	}{
		{"all", webhook.EventFilter{}, 4},
		{"kind", webhook.EventFilter{Kind: lending.EventTaskCreated}, 3},
		{"partner", webhook.EventFilter{PartnerUID: h.partner}, 4},
		{"other partner", webhook.EventFilter{PartnerUID: uuid.New()}, 0},
		{"merchant", webhook.EventFilter{MerchantUID: h.merchant}, 3},
		{"application", webhook.EventFilter{ApplicationUID: h.application}, 3},
		{"tests", webhook.EventFilter{
			ApplicationUID: uuid.MustParse(lending.SampleApplicationUID),
		}, 1},
		{"since", webhook.EventFilter{Since: events[1].OccurredAt}, 3},
		{"until", webhook.EventFilter{Until: events[1].OccurredAt}, 1},
		{"range", webhook.EventFilter{Since: start, Until: events[2].OccurredAt}, 2},
	} {
		seen := 0
		for filter := test.filter; ; {
			filter.Limit = 1
			page, err := h.Events(t.Context(), filter)
			if err != nil {
				t.Fatal(err)
			}
			seen += len(page.Events)
			if filter.Cursor = page.Next; page.Next.IsZero() {
				break
			}
		}
		count, err := h.CountEvents(t.Context(), test.filter, 100)
		if err != nil || seen != test.want || count != test.want {
			t.Errorf("%s: %d listed, %d counted, want %d, %v", test.name, seen, count, test.want, err)
		}
	}
	_, err := h.Events(t.Context(), webhook.EventFilter{})
	wantRefusal(t, err, lending.CodeValidation, "limit")
}
