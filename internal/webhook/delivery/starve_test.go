package delivery_test

import (
	"net/http"
	"sync"
	"testing"

	"drawbridge/internal/waittest"
	"drawbridge/internal/webhook/webhooktest"
)

// TestFailingEndpointsStarveNobody sends every event to an endpoint that hangs, to two that
// fail and to three healthy ones: these get all of theirs while the first has not
// answered once.
func TestFailingEndpointsStarveNobody(t *testing.T) {
	t.Parallel()
	h := webhooktest.New(t)
	const events = 80
	answer := make(chan struct{})
	hanging := webhooktest.NewReceiver(t, func(http.ResponseWriter, int) { <-answer })
	h.Subscribe(t, hanging.URL, nil)
	for range 2 {
		h.Subscribe(t, webhooktest.NewReceiver(t, webhooktest.Answering(500)).URL, nil)
	}
	var well []*webhooktest.Receiver
	for range 3 {
		endpoint := webhooktest.NewReceiver(t, nil)
		h.Subscribe(t, endpoint.URL, nil)
		well = append(well, endpoint)
	}
	release := sync.OnceFunc(func() { close(answer) })
	t.Cleanup(release) // before the receivers close, which wait for hanging requests
	for range events {
		h.Publish(t)
	}
	var workers sync.WaitGroup
	h.DeliverAll(t, t.Context(), &workers)
	waittest.Until(t, "the healthy endpoints have everything and the failing ones were tried",
		func() bool {
			// As the loop that enqueues due deliveries does: nothing else releases a delivery that
			// was held back just after the last attempt had ended.
			if err := h.Deliveries.ReleaseIdle(t.Context()); err != nil {
				t.Error(err)
			}
			h.DeliverAll(t, t.Context(), &workers)
			return h.Count(t, `SELECT count(*) FROM deliveries WHERE state = 'delivered'`) == 3*events &&
				h.Count(t, `SELECT count(*) FROM deliveries WHERE state = 'retrying'`) == 2*events
		})
	for i, endpoint := range well {
		if got := len(endpoint.Requests()); got != events {
			t.Errorf("healthy endpoint %d got %d requests, want %d", i+1, got, events)
		}
	}
	if got := len(hanging.Requests()); got > 40 {
		t.Errorf("%d requests hang at once, want at most 40", got)
	}
	release()
	workers.Wait()
}
