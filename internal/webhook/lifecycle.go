package webhook

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
)

// Pause holds back what falls due from now on. Requests in flight go on.
// Pausing a paused subscription changes nothing. Error: NOT_FOUND.
func (s *Service) Pause(
	ctx context.Context, tx *postgres.Tx, uid uuid.UUID, by string,
) (Subscription, error) {
	return s.enter(ctx, tx, uid, StatePaused, by)
}

// Resume lets a paused subscription go on; what waited falls due at once.
// Resuming one that is not paused changes nothing. Error: NOT_FOUND.
func (s *Service) Resume(
	ctx context.Context, tx *postgres.Tx, uid uuid.UUID, by string,
) (Subscription, error) {
	subscription, err := s.enter(ctx, tx, uid, StateActive, by)
	if err != nil {
		return Subscription{}, err
	}
	return subscription, unpark(ctx, tx, uid)
}

// Delete ends a subscription for good and cancels what has not gone out.
// Its log stays. Error: NOT_FOUND.
func (s *Service) Delete(
	ctx context.Context, tx *postgres.Tx, uid uuid.UUID, by string,
) (Subscription, error) {
	subscription, err := s.enter(ctx, tx, uid, StateDeleted, by)
	if err != nil {
		return Subscription{}, err
	}
	_, err = tx.ExecContext(ctx, `
		UPDATE deliveries
		   SET `+cancelled+`
		 WHERE subscription_uid = $1
		   AND state IN ('pending', 'retrying')`, uid, tx.Now)
	if err != nil {
		return Subscription{}, fmt.Errorf("cancelling deliveries of subscription %s: %w", uid, err)
	}
	return subscription, nil
}

func (s *Service) enter(
	ctx context.Context, tx *postgres.Tx, uid uuid.UUID, to State, by string,
) (Subscription, error) {
	row, err := lockSubscription(ctx, tx, uid)
	if err != nil {
		return Subscription{}, err
	}
	// A failing subscription is active to whoever pauses or resumes it.
	if row.State != to && (row.State != StateFailing || to != StateActive) {
		row.State = to
		row.Version++
		row.UpdatedAt = tx.Now
		if err := save(ctx, tx, row, edit{by: by, what: string(to)}); err != nil {
			return Subscription{}, err
		}
	}
	return s.subscription(row)
}

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
	row, err := lockSubscription(ctx, tx, uid)
	if err != nil {
		return uuid.Nil, err
	}
	if row.State == StatePaused {
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
		[]DeliverArgs{{DeliveryUID: deliveryUID, CreatedAt: tx.Now, Number: 1}})
}
