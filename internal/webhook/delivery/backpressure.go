package delivery

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jmoiron/sqlx"
)

// release enqueues up to count deliveries of a subscription that backpressure held back,
// the longest overdue first.
func (s *Service) release(ctx context.Context, uid uuid.UUID, to *endpoint, count int) error {
	var jobs []Args
	before := to.backpressured.Load() // the transaction sees all of their rows
	// The engine's connections plan the statement only once; planning takes longer than running it.
	err := inTx(ctx, s.DB.Engine(), func(tx *sqlx.Tx) error {
		jobs = nil
		err := tx.SelectContext(ctx, &jobs, `
			WITH next AS (
				SELECT delivery_uid, created_at
				  FROM deliveries
				 WHERE subscription_uid = $1
				   AND held
				 ORDER BY next_attempt_at
				 LIMIT $2
				   FOR UPDATE SKIP LOCKED
			)
			UPDATE deliveries d
			   SET held = false,
			       queued = true
			  FROM next
			 WHERE d.delivery_uid = next.delivery_uid
			   AND d.created_at = next.created_at
			RETURNING d.delivery_uid, d.created_at, d.attempt_count + 1 AS number`, uid, count)
		if err != nil {
			return err
		}
		return s.enqueue(ctx, tx.Tx, jobs)
	})
	if err != nil {
		return fmt.Errorf("releasing deliveries of subscription %s: %w", uid, err)
	}
	if len(jobs) < count {
		to.cleared.Store(before)
	}
	return nil
}

// ReleaseIdle enqueues deliveries that were held back and whose endpoint has no request
// in flight in this process any more. An attempt that ends releases the next ones itself;
// this covers deliveries that were held back after the last attempt had ended.
func (s *Service) ReleaseIdle(ctx context.Context) error {
	for uid, count := range s.limiter.idle() {
		if err := s.release(ctx, uid, s.limiter.of(uid), count); err != nil {
			return err
		}
	}
	return nil
}

// AdoptBackpressured makes this process release, too, what any process has held back and
// may have died without releasing, as its slots allow, and returns for how many
// subscriptions. Several processes may release deliveries of the same subscription: none
// takes what another one is taking.
func (s *Service) AdoptBackpressured(ctx context.Context) (int, error) {
	var uids []uuid.UUID
	err := s.DB.SelectContext(ctx, &uids, `
		SELECT s.subscription_uid
		  FROM subscriptions s
		 WHERE EXISTS (SELECT 1 FROM deliveries d
		                WHERE d.subscription_uid = s.subscription_uid AND d.held)`)
	if err != nil {
		return 0, fmt.Errorf("looking for deliveries under backpressure: %w", err)
	}
	for _, uid := range uids {
		s.limiter.of(uid).backpressured.Add(1)
	}
	return len(uids), nil
}
