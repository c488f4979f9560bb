package delivery_test

import (
	"net/http"
	"sync"
	"testing"

	"drawbridge/internal/waittest"
	"drawbridge/internal/webhook/subscription"
	"drawbridge/internal/webhook/webhooktest"
)

func TestBusyEndpointHoldsTheRestAndGetsItLater(t *testing.T) {
	t.Parallel()
	h := webhooktest.New(t)
	const events, bound = 200, 40
	answer := make(chan struct{})
	release := sync.OnceFunc(func() { close(answer) })
	r := webhooktest.NewReceiver(t, func(w http.ResponseWriter, number int) {
		if number > 1 {
			<-answer
		}
		w.WriteHeader(http.StatusOK)
	})
	t.Cleanup(release) // before the receiver closes, which waits for hanging requests
	h.Subscribe(t, r.URL, nil)
	h.GetKnown(t)
	for range events - 1 {
		h.Publish(t)
	}
	var group sync.WaitGroup
	h.DeliverAll(t, t.Context(), &group)
	waittest.Until(t, "all that find no slot are held", func() bool {
		return h.Count(t, `SELECT count(*) FROM deliveries WHERE held`) == events-1-bound
	})
	if got := len(r.Requests()); got > 1+bound {
		t.Errorf("%d requests are in flight, want at most %d", got-1, bound)
	}
	if got := h.EnqueueDue(t); got != 0 {
		t.Errorf("%d held deliveries were enqueued: that is polling", got)
	}
	// The endpoint answers: attempts that end release the held-back deliveries.
	release()
	group.Wait()
	waittest.Until(t, "everything has arrived", func() bool {
		h.DeliverAll(t, t.Context(), &group)
		group.Wait()
		if err := h.Deliveries.ReleaseIdle(t.Context()); err != nil {
			t.Error(err)
		}
		return h.Count(t, `SELECT count(*) FROM deliveries WHERE state = 'delivered'`) == events
	})
	if got := len(r.Requests()); got != events {
		t.Errorf("%d requests arrived for %d events", got, events)
	}
	for _, delivery := range h.List(t) {
		if delivery.AttemptCount != 1 {
			t.Errorf("delivery %s took %d attempts", delivery.UID, delivery.AttemptCount)
		}
	}
}

// Deliveries held back by a process that died are released by another process, even while
// another delivery of the subscription is still in the queue.
func TestBackpressureOfADeadProcessIsReleasedByAnother(t *testing.T) {
	t.Parallel()
	h := webhooktest.New(t)
	r := webhooktest.NewReceiver(t, nil)
	h.Subscribe(t, r.URL, nil)
	for range 6 {
		h.Publish(t)
	}
	h.Exec(t, `
		UPDATE deliveries
		   SET queued = false, held = true
		 WHERE delivery_uid <> $1`, h.List(t)[0].UID)
	h.Exec(t, `
		DELETE FROM river_job
		 WHERE args ->> 'delivery_uid' <> $1::text`, h.List(t)[0].UID)
	other := webhooktest.NewServices(t, h.DB, h.Clock)
	if err := other.Deliveries.ReleaseIdle(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := h.Count(t, `SELECT count(*) FROM deliveries WHERE held`); got != 5 {
		t.Fatalf("%d are held before another process knows of them, want 5", got)
	}
	adopted, err := other.Deliveries.AdoptBackpressured(t.Context())
	if err != nil || adopted != 1 {
		t.Fatalf("adopted of %d subscriptions, %v", adopted, err)
	}
	waittest.Until(t, "all are worked, one after the other", func() bool {
		if err := other.Deliveries.ReleaseIdle(t.Context()); err != nil {
			t.Error(err)
		}
		h.Work(t)
		return h.Count(t, `SELECT count(*) FROM deliveries WHERE state = 'delivered'`) == 6
	})
	if got := len(r.Requests()); got != 6 {
		t.Errorf("%d requests arrived, want 6", got)
	}
}

func TestRetriesQueueBehindFirstAttempts(t *testing.T) {
	t.Parallel()
	h := webhooktest.New(t)
	r := webhooktest.NewReceiver(t, webhooktest.Answering(http.StatusInternalServerError))
	h.Subscribe(t, r.URL, nil)
	h.Publish(t)
	h.Work(t)
	h.Clock.Move(subscription.DefaultOverlap)
	if got := h.EnqueueDue(t); got != 1 {
		t.Fatalf("%d retries fell due, want 1", got)
	}
	h.Publish(t)
	var order []int
	err := h.DB.SelectContext(t.Context(), &order, `
		SELECT (args ->> 'number')::integer
		  FROM river_job
		 ORDER BY priority, id`)
	if err != nil || len(order) != 2 || order[0] != 1 || order[1] != 2 {
		t.Errorf("the queue works attempts %v in this order, %v", order, err)
	}
}
