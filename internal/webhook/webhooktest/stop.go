package webhooktest

import (
	"context"
	"testing"

	"drawbridge/internal/postgres"
	"drawbridge/internal/webhook/subscription"
)

// Reopen opens the secrets of stopped subscriptions again.
func (h *Harness) Reopen(
	t *testing.T, s subscription.Subscription,
) (after subscription.Subscription) {
	t.Helper()
	h.Do(t, func(ctx context.Context, tx *postgres.Tx) (err error) {
		after, err = h.Subscriptions.Reopen(ctx, tx, s.UID)
		return err
	})
	return after
}

// Parked counts the deliveries that wait for their subscription.
func (h *Harness) Parked(t *testing.T) int {
	t.Helper()
	return h.Count(t, `SELECT count(*) FROM deliveries WHERE parked AND NOT queued`)
}
