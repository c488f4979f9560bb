package delivery_test

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
	"drawbridge/internal/webhook/delivery"
	"drawbridge/internal/webhook/sender"
	"drawbridge/internal/webhook/webhooktest"
)

func TestCountDeliveries(t *testing.T) {
	t.Parallel()
	h := webhooktest.New(t)
	h.Subscribe(t, webhooktest.NewReceiver(t, nil).URL, nil)
	for range 5 {
		h.Clock.Move(time.Second)
		h.Publish(t)
	}
	h.Work(t)
	list := h.List(t)
	tests := []struct {
		name   string
		filter delivery.Filter
		limit  int
		want   int
	}{
		{"all", delivery.Filter{}, 100, 5},
		{"at most the limit", delivery.Filter{}, 3, 3},
		{"of a state", delivery.Filter{State: delivery.StateDelivered}, 100, 5},
		{"of no state", delivery.Filter{State: delivery.StateFailed}, 100, 0},
		{"since a time", delivery.Filter{Since: list[1].CreatedAt}, 100, 2},
	}
	for _, test := range tests {
		got, err := h.Deliveries.Count(t.Context(), test.filter, test.limit)
		if err != nil || got != test.want {
			t.Errorf("%s: %d, %v, want %d", test.name, got, err, test.want)
		}
	}
}

func TestCountNewer(t *testing.T) {
	t.Parallel()
	h := webhooktest.New(t)
	h.Subscribe(t, webhooktest.NewReceiver(t, nil).URL, nil)
	for range 4 {
		h.Clock.Move(time.Second)
		h.Publish(t)
	}
	for i, found := range h.List(t) {
		filter := delivery.Filter{Event: lending.EventTaskCreated}
		page := postgres.Paging{From: found.Place(), Limit: 100}
		// A page begins at its cursor, so the cursor's own row came before.
		if got, err := h.Deliveries.CountNewer(t.Context(), filter, page); err != nil || got != i+1 {
			t.Errorf("before row %d: %d, %v, want %d", i, got, err, i+1)
		}
		page.Limit = 1
		if got, err := h.Deliveries.CountNewer(t.Context(), filter, page); err != nil || got != 1 {
			t.Errorf("at most one before row %d: %d, %v", i, got, err)
		}
	}
}

func TestResendsOf(t *testing.T) {
	t.Parallel()
	h := webhooktest.New(t)
	h.Subscribe(t, webhooktest.NewReceiver(t, nil).URL, nil)
	h.Publish(t)
	first := h.List(t)[0].UID
	for range 2 {
		h.Clock.Move(time.Second)
		h.Resend(t, first)
	}
	resends, err := h.Deliveries.ResendsOf(t.Context(), first)
	if err != nil || len(resends) != 2 {
		t.Fatalf("%d re-sends, %v, want 2", len(resends), err)
	}
	if !resends[0].CreatedAt.After(resends[1].CreatedAt) {
		t.Error("the re-sends do not come newest first")
	}
	if resends[0].ResendOf == nil || *resends[0].ResendOf != first {
		t.Errorf("re-send of %v, want %s", resends[0].ResendOf, first)
	}
	if none, err := h.Deliveries.ResendsOf(t.Context(), resends[0].UID); err != nil || len(none) != 0 {
		t.Errorf("a re-send has %d re-sends of its own, %v", len(none), err)
	}
}

func TestNewerDelivered(t *testing.T) {
	t.Parallel()
	h := webhooktest.New(t)
	h.Subscribe(t, webhooktest.NewReceiver(t, webhooktest.Answering(500, 200)).URL, nil)
	h.Publish(t)
	h.Work(t)
	older := h.Newest(t).Delivery
	check := func(what string, found delivery.Delivery, want bool) {
		t.Helper()
		if got, err := h.Deliveries.NewerDelivered(t.Context(), found); err != nil || got != want {
			t.Errorf("%s: %v, %v, want %v", what, got, err, want)
		}
	}
	check("alone", older, false)
	h.Clock.Move(time.Second)
	h.Publish(t)
	check("a newer one is pending", older, false)
	h.Work(t)
	check("a newer one was delivered", older, true)
	check("the newer one itself", h.Newest(t).Delivery, false)
	other := older
	other.ApplicationUID = uuid.New()
	check("of another application", other, false)
}

func TestIsMasked(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]bool{
		"Bearer [hidden]": true, "[hidden]": true, "application/json": false, "": false,
	} {
		if sender.IsMasked(value) != want {
			t.Errorf("IsMasked(%q) is wrong", value)
		}
	}
}
