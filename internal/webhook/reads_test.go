package webhook_test

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
	"drawbridge/internal/webhook"
)

func TestCountDeliveries(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.subscribe(t, newReceiver(t, nil).URL, nil)
	for range 5 {
		h.clock.move(time.Second)
		h.publish(t)
	}
	h.work(t)
	list := h.list(t)
	tests := []struct {
		name   string
		filter webhook.DeliveryFilter
		limit  int
		want   int
	}{
		{"all", webhook.DeliveryFilter{}, 100, 5},
		{"at most the limit", webhook.DeliveryFilter{}, 3, 3},
		{"of a state", webhook.DeliveryFilter{State: webhook.DeliveryDelivered}, 100, 5},
		{"of no state", webhook.DeliveryFilter{State: webhook.DeliveryFailed}, 100, 0},
		{"since a time", webhook.DeliveryFilter{Since: list[1].CreatedAt}, 100, 2},
		{"whatever the page", webhook.DeliveryFilter{
			Cursor: postgres.Cursor{At: list[3].CreatedAt, UID: list[3].UID},
		}, 100, 5},
	}
	for _, test := range tests {
		got, err := h.CountDeliveries(t.Context(), test.filter, test.limit)
		if err != nil || got != test.want {
			t.Errorf("%s: %d, %v, want %d", test.name, got, err, test.want)
		}
	}
}

func TestCountNewer(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.subscribe(t, newReceiver(t, nil).URL, nil)
	for range 4 {
		h.clock.move(time.Second)
		h.publish(t)
	}
	for i, delivery := range h.list(t) {
		filter := webhook.DeliveryFilter{
			Event:  lending.EventTaskCreated,
			Cursor: postgres.Cursor{At: delivery.CreatedAt, UID: delivery.UID},
		}
		// A cursor is where the next page begins, so its own row came before.
		if got, err := h.CountNewer(t.Context(), filter, 100); err != nil || got != i+1 {
			t.Errorf("before row %d: %d, %v, want %d", i, got, err, i+1)
		}
		if got, err := h.CountNewer(t.Context(), filter, 1); err != nil || got != 1 {
			t.Errorf("at most one before row %d: %d, %v", i, got, err)
		}
	}
}

func TestResendsOf(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.subscribe(t, newReceiver(t, nil).URL, nil)
	h.publish(t)
	first := h.list(t)[0].UID
	for range 2 {
		h.clock.move(time.Second)
		h.resend(t, first)
	}
	resends, err := h.ResendsOf(t.Context(), first)
	if err != nil || len(resends) != 2 {
		t.Fatalf("%d re-sends, %v, want 2", len(resends), err)
	}
	if !resends[0].CreatedAt.After(resends[1].CreatedAt) {
		t.Error("the re-sends do not come newest first")
	}
	if resends[0].ResendOf == nil || *resends[0].ResendOf != first {
		t.Errorf("re-send of %v, want %s", resends[0].ResendOf, first)
	}
	if none, err := h.ResendsOf(t.Context(), resends[0].UID); err != nil || len(none) != 0 {
		t.Errorf("a re-send has %d re-sends of its own, %v", len(none), err)
	}
}

func TestNewerDelivered(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.subscribe(t, newReceiver(t, answering(500, 200)).URL, nil)
	h.publish(t)
	h.work(t)
	older := h.newest(t).Delivery
	check := func(what string, delivery webhook.Delivery, want bool) {
		t.Helper()
		if got, err := h.NewerDelivered(t.Context(), delivery); err != nil || got != want {
			t.Errorf("%s: %v, %v, want %v", what, got, err, want)
		}
	}
	check("alone", older, false)
	h.clock.move(time.Second)
	h.publish(t)
	check("a newer one is pending", older, false)
	h.work(t)
	check("a newer one was delivered", older, true)
	check("the newer one itself", h.newest(t).Delivery, false)
	other := older
	other.ApplicationUID = uuid.New()
	check("of another application", other, false)
}

func TestIsMasked(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]bool{
		"Bearer [hidden]": true, "[hidden]": true, "application/json": false, "": false,
	} {
		if webhook.IsMasked(value) != want {
			t.Errorf("IsMasked(%q) is wrong", value)
		}
	}
}
