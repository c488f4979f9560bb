package bulk

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/postgres"
	"drawbridge/internal/webhook/subscription"
)

// settle records the outcomes of sent deliveries that have ended.
func settle(ctx context.Context, tx *postgres.Tx, uid uuid.UUID) error {
	_, err := tx.ExecContext(ctx, `
		WITH ended AS (
			UPDATE bulk_resend_items i
			   SET state = d.state
			  FROM deliveries d
			 WHERE i.bulk_uid = $1
			   AND i.state = 'sent'
			   AND d.delivery_uid = i.new_uid
			   AND d.created_at = i.new_created_at
			   AND d.state IN ('delivered', 'failed', 'cancelled')
			RETURNING i.subscription_uid, i.state
		), counted AS (
			SELECT subscription_uid,
			       count(*) AS ended,
			       count(*) FILTER (WHERE state = 'delivered') AS delivered,
			       count(*) FILTER (WHERE state = 'failed') AS failed,
			       count(*) FILTER (WHERE state = 'cancelled') AS cancelled
			  FROM ended
			 GROUP BY 1
		), target AS (
			UPDATE bulk_resend_lanes l
			   SET sent = l.sent - c.ended, delivered = l.delivered + c.delivered,
			       failed = l.failed + c.failed, cancelled = l.cancelled + c.cancelled,
			       moved_at = $2
			  FROM counted c
			 WHERE l.bulk_uid = $1
			   AND l.subscription_uid = c.subscription_uid
		)
		UPDATE bulk_resends
		   SET settled_at = $2
		 WHERE bulk_uid = $1`, uid, tx.Now)
	if err != nil {
		return fmt.Errorf("looking how deliveries ended: %w", err)
	}
	return nil
}

// rest returns when to go on, or finishes a bulk re-send that has nothing left to do.
func (r row) rest(ctx context.Context, tx *postgres.Tx, targets []Target) (time.Duration, error) {
	waiting, sent, sending, moved := 0, 0, false, time.Time{}
	for _, target := range targets {
		waiting += target.Waiting
		sent += target.Sent
		sending = sending || target.Waiting > 0 && target.State != subscription.StatePaused
		if target.MovedAt.After(moved) {
			moved = target.MovedAt
		}
	}
	switch {
	case waiting+sent == 0:
		return 0, finish(ctx, tx, r.UID)
	case sending && r.State == StateRunning:
		return advanceInterval, nil
	case sent == 0 && r.State != StateRunning:
		return 0, nil // resuming brings a new job
	}
	// The longer nothing has changed, the longer the wait until the next check.
	return min(max(tx.Now.Sub(moved)/10, advanceInterval), longestRest), nil
}

// finish closes a running or paused bulk re-send; a cancelled one has ended already.
func finish(ctx context.Context, tx *postgres.Tx, uid uuid.UUID) error {
	_, err := tx.ExecContext(ctx, `
		UPDATE bulk_resends
		   SET state = 'finished', ended_at = $2
		 WHERE bulk_uid = $1
		   AND state IN ('running', 'paused')`, uid, tx.Now)
	if err != nil {
		return fmt.Errorf("finishing bulk re-send %s: %w", uid, err)
	}
	return nil
}

const (
	// maxWithoutJob is how long a bulk re-send may be without a job.
	maxWithoutJob = time.Minute
	// draftLife is how long an unconfirmed draft is kept.
	draftLife = 7 * 24 * time.Hour
)

// Revive adds a new job for bulk re-sends that lost theirs, and deletes old unconfirmed
// drafts; it returns how many were revived.
func (s *Service) Revive(ctx context.Context) (int, error) {
	count := 0
	err := s.DB.InTx(ctx, func(tx *postgres.Tx) error {
		count = 0
		_, err := tx.ExecContext(ctx,
			`DELETE FROM bulk_resends WHERE state = 'draft' AND created_at < $1`,
			tx.Now.Add(-draftLife))
		if err != nil {
			return fmt.Errorf("forgetting old drafts: %w", err)
		}
		var lost []uuid.UUID // bulk re-sends that need a job and have none
		err = tx.SelectContext(ctx, &lost, `
			SELECT b.bulk_uid
			  FROM bulk_resends b
			 WHERE b.confirmed_at < $1
			   AND EXISTS (SELECT 1 FROM bulk_resend_lanes l
			                WHERE l.bulk_uid = b.bulk_uid
			                  AND (l.sent > 0 OR l.waiting > 0 AND b.state = 'running'))
			   AND NOT EXISTS (
			           SELECT 1
			             FROM river_job j
			            WHERE j.kind = $2
			              AND j.queue = $3
			              AND j.args ->> 'bulk_uid' = b.bulk_uid::text
			              AND j.args ->> 'run' = b.run::text
			              AND j.state IN ('available', 'pending', 'retryable', 'running', 'scheduled'))
			   FOR NO KEY UPDATE OF b SKIP LOCKED`, tx.Now.Add(-maxWithoutJob), Args{}.Kind(), Queue)
		if err != nil {
			return fmt.Errorf("looking for bulk re-sends without a job: %w", err)
		}
		var errs []error
		for _, uid := range lost {
			errs = append(errs, s.restart(ctx, tx, uid))
		}
		count = len(lost)
		return errors.Join(errs...)
	})
	return count, err
}
