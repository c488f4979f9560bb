package webhooktest

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/postgres"
	"drawbridge/internal/secret"
	"drawbridge/internal/webhook/subscription"
)

// Amend changes a subscription and returns it with its new secret, if any.
func (h *Harness) Amend(
	t testing.TB, uid uuid.UUID, patch subscription.Patch,
) (changed subscription.Subscription, value secret.String) {
	t.Helper()
	h.Clock.Move(time.Minute)
	h.Do(t, func(ctx context.Context, tx *postgres.Tx) (err error) {
		changed, value, err = h.Subscriptions.Amend(ctx, tx, uid, patch, "olga@lender.example")
		return err
	})
	return changed, value
}

// TryAmend changes a subscription, or is refused.
func (h *Harness) TryAmend(
	uid uuid.UUID, patch subscription.Patch,
) (changed subscription.Subscription, value secret.String, err error) {
	err = h.Try(func(ctx context.Context, tx *postgres.Tx) (err error) {
		changed, value, err = h.Subscriptions.Amend(ctx, tx, uid, patch, "olga@lender.example")
		return err
	})
	return changed, value, err
}

// Restore restores a version of a subscription.
func (h *Harness) Restore(
	t testing.TB, uid uuid.UUID, choice subscription.Choice,
) (subscription.Restoration, error) {
	t.Helper()
	var restored subscription.Restoration
	err := h.Try(func(ctx context.Context, tx *postgres.Tx) (err error) {
		restored, err = h.Subscriptions.Restore(ctx, tx, uid, choice, "olga@lender.example")
		return err
	})
	return restored, err
}
