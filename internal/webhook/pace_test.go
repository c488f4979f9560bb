package webhook_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
	"drawbridge/internal/webhook"
)

func withRate(rate int) func(*webhook.Settings) {
	return func(s *webhook.Settings) { s.Rate = rate }
}

// TestRateHoldsAcrossProcesses lets two services on one database work off a
// burst: per second the endpoint gets the subscription's rate and no more.
func TestRateHoldsAcrossProcesses(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	endpoint := newReceiver(t, nil)
	h.subscribe(t, endpoint.URL, withRate(5))
	second := h.another(t)
	var sent []string
	const burst = 32
	for range burst {
		sent = append(sent, string(h.publish(t).Body))
	}
	// One request may start at once; every second from then on brings five more.
	for seconds, want := 0, 1; want <= burst; seconds, want = seconds+1, want+5 {
		h.workWith(t, h.Service, second)
		if got := len(endpoint.requests()); got != want {
			t.Fatalf("after %d s %d requests, want %d", seconds, got, want)
		}
		if queued := h.count(t, `SELECT count(*) FROM deliveries WHERE queued`); queued != 0 {
			t.Fatalf("%d deliveries hold a job while they wait", queued)
		}
		// In steps, as time passes: what falls due is enqueued when it does.
		for range 5 {
			h.clock.move(200 * time.Millisecond)
			h.promote(t)
			h.workWith(t, second, h.Service)
		}
	}
	h.clock.move(time.Second)
	h.promote(t)
	h.workWith(t, h.Service, second)
	var got []string
	for _, request := range endpoint.requests() {
		got = append(got, request.body)
	}
	if !slices.Equal(got, sent) {
		t.Errorf("they came in another order than they were made in:\n%q\n%q", got, sent)
	}
	for _, delivery := range h.list(t) {
		if delivery.State != webhook.DeliveryDelivered || delivery.AttemptCount != 1 {
			t.Errorf("a delivery ended %s after %d attempts", delivery.State, delivery.AttemptCount)
		}
	}
}

// another is a second process on the same database.
func (h *house) another(t testing.TB) *webhook.Service {
	t.Helper()
	db, err := postgres.Open(t.Context(), h.DB.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	second := newService(t, db, h.clock)
	second.Keys = h.Keys
	return second
}

// workWith delivers what is in the queue, the services taking turns.
func (h *house) workWith(t testing.TB, services ...*webhook.Service) {
	t.Helper()
	turn := 0
	for jobs := h.jobs(t); len(jobs) > 0; jobs = h.jobs(t) {
		for _, job := range jobs {
			if err := services[turn%len(services)].Deliver(t.Context(), job, first); err != nil {
				t.Fatal(err)
			}
			turn++
		}
	}
}

// TestRateLeavesThreeAttempts puts each attempt of a failing delivery off once:
// being put off is no attempt, and each attempt takes a slot.
func TestRateLeavesThreeAttempts(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	endpoint := newReceiver(t, answering(500))
	h.subscribe(t, endpoint.URL, withRate(1))
	h.publish(t)
	h.publish(t)
	for range 40 {
		h.promote(t)
		h.workWith(t, h.Service)
		h.clock.move(30 * time.Second)
	}
	if got := len(endpoint.requests()); got != 6 {
		t.Errorf("%d requests, want three of each delivery", got)
	}
	for _, delivery := range h.list(t) {
		if delivery.State != webhook.DeliveryFailed || delivery.AttemptCount != 3 {
			t.Errorf("a delivery ended %s after %d attempts", delivery.State, delivery.AttemptCount)
		}
	}
}

// TestMissedSlotsDoNotBurst stops every process while slots pass.
func TestMissedSlotsDoNotBurst(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	endpoint := newReceiver(t, nil)
	h.subscribe(t, endpoint.URL, withRate(2))
	for range 21 {
		h.publish(t)
	}
	h.workWith(t, h.Service)
	h.clock.move(time.Hour)
	h.promote(t)
	h.workWith(t, h.Service)
	// The slots of the two seconds before are still good; none are here.
	if got := len(endpoint.requests()); got > 2 {
		t.Errorf("%d requests at once after an hour without a process", got)
	}
	for range 40 {
		h.clock.move(500 * time.Millisecond)
		h.promote(t)
		h.workWith(t, h.Service)
	}
	if got := len(endpoint.requests()); got != 21 {
		t.Errorf("%d requests in the end, want 21", got)
	}
}

// TestChangedRateHoldsForWhatWaits takes the limit away while deliveries wait.
func TestChangedRateHoldsForWhatWaits(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	endpoint := newReceiver(t, nil)
	made, _ := h.subscribe(t, endpoint.URL, withRate(1))
	var want []string
	for range 9 {
		want = append(want, string(h.publish(t).Body))
	}
	h.workWith(t, h.Service)
	none := 0
	h.do(t, func(ctx context.Context, tx *postgres.Tx) error {
		changed, _, err := h.Amend(ctx, tx, made.UID, webhook.Patch{Rate: &none}, "operator")
		if err == nil && (changed.Rate != 0 || changed.Version != 2) {
			t.Errorf("amended to %+v", changed)
		}
		return err
	})
	h.promote(t)
	h.workWith(t, h.Service)
	var got []string
	for _, request := range endpoint.requests() {
		got = append(got, request.body)
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestRateIsChecked(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	for _, rate := range []int{-1, webhook.MaxRate + 1} {
		err := h.try(func(ctx context.Context, tx *postgres.Tx) error {
			_, _, err := h.Subscribe(ctx, tx, h.partner, webhook.Settings{
				URL: "https://partner.example/hook", Auth: webhook.AuthHMAC,
				Events: []string{webhook.AllEvents}, Rate: rate,
			}, "operator")
			return err
		})
		wantRefusal(t, err, lending.CodeValidation, "rate")
	}
}
