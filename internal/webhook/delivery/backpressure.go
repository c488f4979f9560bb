package delivery

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jmoiron/sqlx"
)

// release enqueues up to room deliveries of a subscription that backpressure held back, the longest
// overdue first.
func (s *Service) release(ctx context.Context, uid uuid.UUID, to *endpoint, count int) error {
	var jobs []Args
	before := to.backpressured.Load() // whose rows the transaction sees
	// The engine's connections plan the statement once, which takes longer than running it.
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

// ReleaseIdle brings deliveries back that were held back, whose endpoint has nothing in flight
// in this process any more. Attempts that end bring back the next ones by
// themselves; this covers what was held after the last of them had ended.
func (s *Service) ReleaseIdle(ctx context.Context) error {
	for uid, count := range s.limiter.idle() {
		if err := s.release(ctx, uid, s.limiter.of(uid), count); err != nil {
			return err
		}
	}
	return nil
}

// AdoptBackpressured makes what any process has held, and may not have lived to release,
// this one's to release too, as its slots allow, and returns of how many
// subscriptions. Several processes may release of the same subscription: none
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
