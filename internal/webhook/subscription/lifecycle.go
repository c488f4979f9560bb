package subscription

import (
	"context"

	"github.com/google/uuid"

	"drawbridge/internal/postgres"
)

// Pause makes deliveries that fall due from now on wait. Requests in flight go on.
// Pausing a paused subscription changes nothing. Error: NOT_FOUND.
func (s *Service) Pause(
	ctx context.Context, tx *postgres.Tx, uid uuid.UUID, by string,
) (Subscription, error) {
	return s.enter(ctx, tx, uid, StatePaused, by)
}

// Resume resumes a paused subscription; deliveries that waited fall due at once. Resuming
// one that is not paused changes nothing. Error: NOT_FOUND.
func (s *Service) Resume(
	ctx context.Context, tx *postgres.Tx, uid uuid.UUID, by string,
) (Subscription, error) {
	return s.enter(ctx, tx, uid, StateActive, by)
}

// Delete ends a subscription for good and cancels its open deliveries. Its log stays.
// Error: NOT_FOUND.
func (s *Service) Delete(
	ctx context.Context, tx *postgres.Tx, uid uuid.UUID, by string,
) (Subscription, error) {
	return s.enter(ctx, tx, uid, StateDeleted, by)
}

func (s *Service) enter(
	ctx context.Context, tx *postgres.Tx, uid uuid.UUID, to State, by string,
) (Subscription, error) {
	row, err := Lock(ctx, tx, uid)
	if err != nil {
		return Subscription{}, err
	}
	// To pause and resume, a failing subscription counts as active.
	if row.State != to && (row.State != StateFailing || to != StateActive) {
		row.State = to
		row.Version++
		row.UpdatedAt = tx.Now
		if err := Save(ctx, tx, row, Edit{By: by, What: string(to)}); err != nil {
			return Subscription{}, err
		}
	}
	return s.subscription(row), s.Backlogs.follow(ctx, tx, row)
}

// Cancelled are the assignments that cancel a delivery at the time $2.
const Cancelled = `
	state = 'cancelled', next_attempt_at = NULL, queued = false, parked = false, held = false,
	finished_at = $2`
