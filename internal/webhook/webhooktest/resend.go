package webhooktest

import (
	"context"
	"testing"

	"github.com/google/uuid"

	"drawbridge/internal/postgres"
)

// Resend sends a delivery again.
func (h *Harness) Resend(t testing.TB, uids ...uuid.UUID) []uuid.UUID {
	t.Helper()
	var made []uuid.UUID
	h.Do(t, func(ctx context.Context, tx *postgres.Tx) (err error) {
		made, err = h.Deliveries.Resend(ctx, tx, uids, "support@example.com", "partner lost it")
		return err
	})
	return made
}
