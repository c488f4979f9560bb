package webhooktest

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/postgres"
	"drawbridge/internal/webhook/health"
)

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

// HealthOf is that of one subscription over the last day.
func (h *Harness) HealthOf(t testing.TB, uid uuid.UUID) health.Health {
	t.Helper()
	now := h.Clock.Now()
	found, err := h.Health.Read(t.Context(), []uuid.UUID{uid}, now.Add(-23*time.Hour), now)
	if err != nil {
		t.Fatal(err)
	}
	return found[uid]
}

// Finish makes every attempt of what was published, as they fall due.
func (h *Harness) Finish(t testing.TB) {
	t.Helper()
	for range 3 {
		h.Work(t)
		h.Clock.Move(12 * time.Minute)
		h.EnqueueDue(t)
	}
	h.Work(t)
}
