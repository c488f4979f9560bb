package webhooktest

import (
	"context"
	"sync"
	"testing"
)

// DeliverAll works every job of the queue at once, as many workers do, until
// the queue is empty.
func (h *Harness) DeliverAll(t *testing.T, ctx context.Context, group *sync.WaitGroup) {
	t.Helper()
	for {
		jobs := h.Jobs(t)
		if len(jobs) == 0 {
			return
		}
		for _, job := range jobs {
			group.Go(func() {
				if err := h.Deliveries.Deliver(ctx, job, First); err != nil {
					t.Errorf("delivering %s: %v", job.DeliveryUID, err)
				}
			})
		}
	}
}

// GetKnown lets every endpoint answer an event: until then it gets one at a time.
func (h *Harness) GetKnown(t *testing.T) {
	t.Helper()
	h.Publish(t)
	h.Work(t)
}

// Backpressured counts the deliveries that wait for a slot of their endpoint.
func (h *Harness) Backpressured(t *testing.T) int {
	t.Helper()
	return h.Count(t, `SELECT count(*) FROM deliveries WHERE held`)
}
