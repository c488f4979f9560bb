package webhooktest

import (
	"context"
	"testing"

	"github.com/google/uuid"

	"drawbridge/internal/postgres"
	"drawbridge/internal/webhook/subscription"
)

func (h *House) Pause(t testing.TB, uid uuid.UUID) subscription.Subscription {
	t.Helper()
	return h.ChangeState(t, uid, h.Subscriptions.Pause)
}

func (h *House) Resume(t testing.TB, uid uuid.UUID) subscription.Subscription {
	t.Helper()
	return h.ChangeState(t, uid, h.Subscriptions.Resume)
}

func (h *House) Delete(t testing.TB, uid uuid.UUID) subscription.Subscription {
	t.Helper()
	return h.ChangeState(t, uid, h.Subscriptions.Delete)
}

func (h *House) ChangeState(
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
