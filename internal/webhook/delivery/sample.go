package delivery

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
	"drawbridge/internal/webhook/subscription"
)

// Test sends a sample event of the kind to one subscription, whatever events
// it chose, and returns the delivery. It is marked as a test on the wire and
// counts in no statistics. Errors: NOT_FOUND, VALIDATION_ERROR for an unknown
// kind, INVALID_STATE while the subscription is paused.
func (s *Service) Test(
	ctx context.Context, tx *postgres.Tx, uid uuid.UUID, kind lending.EventKind,
) (uuid.UUID, error) {
	sample, err := lending.SampleEvent(kind)
	if err != nil {
		return uuid.Nil, err
	}
	row, err := subscription.Lock(ctx, tx, uid)
	if err != nil {
		return uuid.Nil, err
	}
	if row.State == subscription.StatePaused {
		return uuid.Nil, lending.NewError(lending.CodeInvalidState,
			"the subscription is paused; resume it to send a test event")
	}
	body, err := sample.Render(tx.Now)
	if err != nil {
		return uuid.Nil, err
	}
	eventUID, deliveryUID := postgres.NewUID(tx.Now), postgres.NewUID(tx.Now)
	_, err = tx.ExecContext(ctx, `
		WITH event AS (
			INSERT INTO events (event_uid, occurred_at, kind, partner_uid, status, body)
			VALUES ($1, $2, $3, $4, $5, $6)
		)
		INSERT INTO deliveries (delivery_uid, created_at, subscription_uid, event_uid, event_at,
		                        event, status, test, state, next_attempt_at, queued)
		VALUES ($7, $2, $8, $1, $2, $3, $5, true, 'pending', $2, true)`,
		eventUID, tx.Now, string(kind), row.PartnerUID, sample.Status, body, deliveryUID, uid)
	if err != nil {
		return uuid.Nil, fmt.Errorf("inserting a test event for subscription %s: %w", uid, err)
	}
	return deliveryUID, s.enqueue(ctx, tx,
		[]Args{{DeliveryUID: deliveryUID, CreatedAt: tx.Now, Number: 1}})
}
