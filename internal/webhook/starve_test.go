package webhook_test

import (
	"net/http"
	"sync"
	"testing"
)

// TestSickEndpointsStarveNobody tells every event to an endpoint that hangs, to
// two that fail and to three that are well: those get all of theirs while the
// first has not answered once.
func TestSickEndpointsStarveNobody(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	const events = 80
	answer := make(chan struct{})
	hanging := newReceiver(t, func(http.ResponseWriter, int) { <-answer })
	h.subscribe(t, hanging.URL, nil)
	for range 2 {
		h.subscribe(t, newReceiver(t, answering(500)).URL, nil)
	}
	var well []*receiver
	for range 3 {
		endpoint := newReceiver(t, nil)
		h.subscribe(t, endpoint.URL, nil)
		well = append(well, endpoint)
	}
	release := sync.OnceFunc(func() { close(answer) })
	t.Cleanup(release) // before the receivers close, which wait for what hangs
	for range events {
		h.publish(t)
	}
	var workers sync.WaitGroup
	h.deliverAll(t, t.Context(), &workers)
	waitUntil(t, "the healthy endpoints have everything and the failing ones were tried", func() bool {
		// As the promoter does: what was held just after the last attempt had ended
		// has nothing else that brings it back.
		if err := h.ReleaseIdle(t.Context()); err != nil {
			t.Error(err)
		}
		h.deliverAll(t, t.Context(), &workers)
		return h.count(t, `SELECT count(*) FROM deliveries WHERE state = 'delivered'`) == 3*events &&
			h.count(t, `SELECT count(*) FROM deliveries WHERE state = 'retrying'`) == 2*events
	})
	for i, endpoint := range well {
		if got := len(endpoint.requests()); got != events {
			t.Errorf("healthy endpoint %d got %d requests, want %d", i+1, got, events)
		}
	}
	if got := len(hanging.requests()); got > 40 {
		t.Errorf("%d requests hang at once, want at most 40", got)
	}
	release()
	workers.Wait()
}
