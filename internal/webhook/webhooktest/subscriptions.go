package webhooktest

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/postgres"
	"drawbridge/internal/secret"
	"drawbridge/internal/webhook/health"
	"drawbridge/internal/webhook/sender"
	"drawbridge/internal/webhook/subscription"
)

// Subscribe adds a subscription of the partner to every event. change, which
// may be nil, adapts its settings.
func (h *Harness) Subscribe(
	t testing.TB, url string, change func(*subscription.Settings),
) (subscription.Subscription, secret.String) {
	t.Helper()
	settings := subscription.Settings{
		URL: url, Auth: sender.AuthHMAC, Events: []string{subscription.AllEvents},
	}
	if change != nil {
		change(&settings)
	}
	var value secret.String
	made := act(t, h, func(
		ctx context.Context, tx *postgres.Tx,
	) (made subscription.Subscription, err error) {
		made, value, err = h.Subscriptions.Subscribe(ctx, tx, h.Partner, settings, "operator")
		return made, err
	})
	return made, value
}

// StateChange is a method that changes a subscription's state.
type StateChange func(
	ctx context.Context, tx *postgres.Tx, uid uuid.UUID, by string,
) (subscription.Subscription, error)

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
	return act(t, h, func(ctx context.Context, tx *postgres.Tx) (subscription.Subscription, error) {
		return change(ctx, tx, uid, "operator")
	})
}

// Reopen opens the secrets of stopped subscriptions again.
func (h *Harness) Reopen(t testing.TB, s subscription.Subscription) subscription.Subscription {
	t.Helper()
	return act(t, h, func(ctx context.Context, tx *postgres.Tx) (subscription.Subscription, error) {
		return h.Subscriptions.Reopen(ctx, tx, s.UID)
	})
}

// Amend changes a subscription and returns it with its new secret, if any.
func (h *Harness) Amend(
	t testing.TB, uid uuid.UUID, patch subscription.Patch,
) (subscription.Subscription, secret.String) {
	t.Helper()
	h.Clock.Move(time.Minute)
	changed, value, err := h.TryAmend(uid, patch)
	return must(changed, err)(t), value
}

// TryAmend changes a subscription, or returns the refusal.
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

// Tally moves every outcome into the summaries and returns the trouble found.
func (h *Harness) Tally(t testing.TB) []health.Trouble {
	t.Helper()
	var found []health.Trouble
	for more := true; more; {
		h.Do(t, func(ctx context.Context, tx *postgres.Tx) error {
			tallied, err := h.Health.Tally(ctx, tx)
			found, more = append(found, tallied.Trouble...), tallied.More
			return err
		})
	}
	return found
}

// HealthOf returns the health of one subscription over the last day.
func (h *Harness) HealthOf(t testing.TB, uid uuid.UUID) health.Health {
	t.Helper()
	now := h.Clock.Now()
	return must(h.Health.Read(t.Context(), []uuid.UUID{uid}, now.Add(-23*time.Hour), now))(t)[uid]
}
