package webhook_test

import (
	"context"
	"net/http"
	"sync"
	"testing"

	"drawbridge/internal/webhook"
)

// deliverAll works every job of the queue at once, as many workers do, until
// the queue is empty.
func (h *house) deliverAll(t *testing.T, ctx context.Context, group *sync.WaitGroup) {
	t.Helper()
	for {
		jobs := h.jobs(t)
		if len(jobs) == 0 {
			return
		}
		for _, job := range jobs {
			group.Go(func() {
				if err := h.Deliver(ctx, job, first); err != nil {
					t.Errorf("delivering %s: %v", job.DeliveryUID, err)
				}
			})
		}
	}
}

// getKnown lets every endpoint answer an event: until then it gets one at a time.
func (h *house) getKnown(t *testing.T) {
	t.Helper()
	h.publish(t)
	h.work(t)
}

func (h *house) held(t *testing.T) int {
	t.Helper()
	return h.count(t, `SELECT count(*) FROM deliveries WHERE held`)
}

func TestBusyEndpointHoldsTheRestAndGetsItLater(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	const events, bound = 200, 40
	answer := make(chan struct{})
	release := sync.OnceFunc(func() { close(answer) })
	r := newReceiver(t, func(w http.ResponseWriter, number int) {
		if number > 1 {
			<-answer
		}
		w.WriteHeader(http.StatusOK)
	})
	t.Cleanup(release) // before the receiver closes, which waits for what hangs
	h.subscribe(t, r.URL, nil)
	h.getKnown(t)
	for range events - 1 {
		h.publish(t)
	}
	var group sync.WaitGroup
	h.deliverAll(t, t.Context(), &group)
	waitUntil(t, "all that find no place are held", func() bool {
		return h.held(t) == events-1-bound
	})
	if got := len(r.requests()); got > 1+bound {
		t.Errorf("%d requests are in flight, want at most %d", got-1, bound)
	}
	if got := h.promote(t); got != 0 {
		t.Errorf("%d held deliveries were promoted: that is polling", got)
	}
	// The endpoint answers: what ends brings back what was held.
	release()
	group.Wait()
	waitUntil(t, "everything has arrived", func() bool {
		h.deliverAll(t, t.Context(), &group)
		group.Wait()
		if err := h.ReleaseIdle(t.Context()); err != nil {
			t.Error(err)
		}
		return h.count(t, `SELECT count(*) FROM deliveries WHERE state = 'delivered'`) == events
	})
	if got := len(r.requests()); got != events {
		t.Errorf("%d requests arrived for %d events", got, events)
	}
	for _, delivery := range h.list(t) {
		if delivery.AttemptCount != 1 {
			t.Errorf("delivery %s took %d attempts", delivery.UID, delivery.AttemptCount)
		}
	}
}

// What a process held and did not live to release is released by another one, also
// while something of the subscription is still in the queue.
func TestHeldByADeadProcessIsReleasedByAnother(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	r := newReceiver(t, nil)
	h.subscribe(t, r.URL, nil)
	for range 6 {
		h.publish(t)
	}
	h.exec(t, `
		UPDATE deliveries
		   SET queued = false, held = true
		 WHERE delivery_uid <> $1`, h.list(t)[0].UID)
	h.exec(t, `
		DELETE FROM river_job
		 WHERE args ->> 'delivery_uid' <> $1::text`, h.list(t)[0].UID)
	other := newService(t, h.DB, h.clock)
	if err := other.ReleaseIdle(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := h.count(t, `SELECT count(*) FROM deliveries WHERE held`); got != 5 {
		t.Fatalf("%d are held before another process knows of them, want 5", got)
	}
	adopted, err := other.AdoptHeld(t.Context())
	if err != nil || adopted != 1 {
		t.Fatalf("adopted of %d subscriptions, %v", adopted, err)
	}
	waitUntil(t, "all are worked, one after the other", func() bool {
		if err := other.ReleaseIdle(t.Context()); err != nil {
			t.Error(err)
		}
		h.work(t)
		return h.count(t, `SELECT count(*) FROM deliveries WHERE state = 'delivered'`) == 6
	})
	if got := len(r.requests()); got != 6 {
		t.Errorf("%d requests arrived, want 6", got)
	}
}

func TestRetriesQueueBehindFirstAttempts(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	r := newReceiver(t, answering(http.StatusInternalServerError))
	h.subscribe(t, r.URL, nil)
	h.publish(t)
	h.work(t)
	h.clock.move(webhook.DefaultOverlap)
	if got := h.promote(t); got != 1 {
		t.Fatalf("%d retries fell due, want 1", got)
	}
	h.publish(t)
	var order []int
	err := h.DB.SelectContext(t.Context(), &order, `
		SELECT (args ->> 'number')::integer
		  FROM river_job
		 ORDER BY priority, id`)
	if err != nil || len(order) != 2 || order[0] != 1 || order[1] != 2 {
		t.Errorf("the queue works attempts %v in this order, %v", order, err)
	}
}
