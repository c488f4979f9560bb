package webhooktest

import (
	"context"
	"testing"

	"github.com/google/uuid"

	"drawbridge/internal/postgres"
	"drawbridge/internal/webhook/subscription"
)

// Pause pauses a subscription.
func (h *Harness) Pause(t testing.TB, uid uuid.UUID) subscription.Subscription {
	t.Helper()
	return h.ChangeState(t, uid, h.Subscriptions.Pause)
}

// Resume resumes a subscription.
func (h *Harness) Resume(t testing.TB, uid uuid.UUID) subscription.Subscription {
	t.Helper()
	return h.ChangeState(t, uid, h.Subscriptions.Resume)
}

// Delete deletes a subscription.
func (h *Harness) Delete(t testing.TB, uid uuid.UUID) subscription.Subscription {
	t.Helper()
	return h.ChangeState(t, uid, h.Subscriptions.Delete)
}

// ChangeState changes the state of a subscription.
func (h *Harness) ChangeState(
	t testing.TB, uid uuid.UUID, change StateChange,
) subscription.Subscription {
	t.Helper()
	var changed subscription.Subscription
	h.Do(t, func(ctx context.Context, tx *postgres.Tx) (err error) {
		changed, err = change(ctx, tx, uid, "operator")
		return err
	})
	return changed
}
