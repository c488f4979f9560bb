package health_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/postgres"
	"drawbridge/internal/webhook/subscription"
	"drawbridge/internal/webhook/webhooktest"
)

const day = 24 * time.Hour

// judged is the state that its health gives an active subscription.
func judged(t *testing.T, h *webhooktest.Harness, uid uuid.UUID) subscription.State {
	t.Helper()
	h.Tally(t)
	state := subscription.StateActive
	h.Do(t, func(ctx context.Context, tx *postgres.Tx) error {
		change, changed, err := h.Health.Judge(ctx, tx, uid)
		if changed {
			state = change.To
		}
		return err
	})
	return state
}

// A backlog that fails makes a subscription failing, for however long it waited.
func TestBacklogBehindAPauseMakesFailing(t *testing.T) {
	t.Parallel()
	for _, pause := range []time.Duration{3 * day, 9 * day, 60 * day} {
		h := webhooktest.New(t)
		endpoint := webhooktest.NewReceiver(t, webhooktest.Answering(500))
		made, _ := h.Subscribe(t, endpoint.URL, nil)
		h.Pause(t, made.UID)
		for range 10 {
			h.Clock.Move(time.Second)
			h.Publish(t)
		}
		h.Work(t)
		h.Clock.Move(pause)
		h.Resume(t, made.UID)
		h.EnqueueDue(t)
		h.Finish(t)
		if got := judged(t, h, made.UID); got != subscription.StateActive {
			t.Errorf("at once the subscription is %s", got)
		}
		h.Clock.Move(day)
		if got := judged(t, h, made.UID); got != subscription.StateFailing {
			t.Errorf("ten events that failed after %s leave the subscription %s", pause, got)
		}
	}
}
