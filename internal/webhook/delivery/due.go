package delivery

import (
	"context"
	"fmt"
	"time"

	"drawbridge/internal/postgres"
)

// DueBatch bounds one batch of EnqueueDue, so that a large backlog (a subscription
// resumed after days, a bulk re-send) trickles in alongside new events.
const DueBatch = 1000

// maxScanRest is the longest rest between two scans for due deliveries.
const maxScanRest = 3 * time.Second

// DuePoller scans for due deliveries repeatedly in one process. It is for one caller at a
// time.
type DuePoller struct {
	Deliveries *Service

	pace postgres.Throttle
	rest time.Time
}

// Enqueue is EnqueueDue, except that where scans are expensive they take a fiftieth of the
// time at most, unless that would put the next one off beyond maxScanRest. Scans get expensive
// because each passes over all that fell due since the oldest open transaction began.
func (l *DuePoller) Enqueue(ctx context.Context) error {
	began := time.Now()
	if began.Before(l.rest) {
		return nil
	}
	count, scanned, err := l.Deliveries.enqueueDue(ctx)
	if count < DueBatch {
		l.rest = began.Add(min(l.pace.Rest(scanned), maxScanRest))
	}
	return err
}

// EnqueueDue enqueues the attempts that have fallen due and returns how many.
//
// The delivery's own row says when its next attempt is due; the queue only ever holds
// attempts that may start now. So a retry neither waits for the queue's scheduler, which
// polls every five seconds, nor is lost with a job. Any number of processes may enqueue
// at once: each takes different rows.
func (s *Service) EnqueueDue(ctx context.Context) (int, error) {
	count, _, err := s.enqueueDue(ctx)
	return count, err
}

// enqueueDue also returns how long it took to find them, excluding the time spent
// yielding to API requests and enqueuing.
func (s *Service) enqueueDue(ctx context.Context) (count int, scanned time.Duration, err error) {
	s.Gate.Yield(ctx)
	err = s.DB.InTx(ctx, func(tx *postgres.Tx) error {
		var jobs []Args // the longest overdue first
		began := time.Now()
		err := tx.SelectContext(ctx, &jobs, `
			WITH due AS (
				SELECT delivery_uid, created_at
				  FROM deliveries
				 WHERE state IN ('pending', 'retrying')
				   AND NOT queued
				   AND NOT parked
				   AND NOT held
				   AND next_attempt_at <= $1
				 ORDER BY next_attempt_at
				 LIMIT $2
				   FOR UPDATE SKIP LOCKED
			), taken AS (
				UPDATE deliveries d
				   SET queued = true
				  FROM due
				 WHERE d.delivery_uid = due.delivery_uid
				   AND d.created_at = due.created_at
				RETURNING d.delivery_uid, d.created_at, d.attempt_count, d.next_attempt_at
			)
			SELECT delivery_uid, created_at, attempt_count + 1 AS number
			  FROM taken
			 ORDER BY next_attempt_at, delivery_uid`, tx.Now, DueBatch)
		scanned = time.Since(began)
		if err != nil {
			return fmt.Errorf("taking the deliveries that are due: %w", err)
		}
		count = len(jobs)
		return s.enqueue(ctx, tx.Tx.Tx, jobs)
	})
	return count, scanned, err
}

const (
	// orphanLock is the advisory lock of MarkOrphans. Its value has no meaning.
	orphanLock = 7_305_140_441
	// orphanBatch bounds one scan for orphans. The queue works the oldest jobs first, so
	// deliveries that lost theirs come to the head of the list.
	orphanBatch = 10_000
)

// MarkOrphans hands back to EnqueueDue the deliveries that are marked as queued, have
// been due for longer than patience and have no job, and returns how many: the queue gave
// their job up, somebody deleted it, or a backup was restored without it. Only one
// process scans at a time: two could both find a delivery whose new job is visible to
// neither yet.
func (s *Service) MarkOrphans(ctx context.Context, patience time.Duration) (int, error) {
	var count int
	err := s.DB.InTx(ctx, func(tx *postgres.Tx) error {
		var alone bool
		err := tx.GetContext(ctx, &alone, `SELECT pg_try_advisory_xact_lock($1)`, orphanLock)
		if err != nil || !alone {
			return err
		}
		// Both lists are grouped, and the groups without a job are kept, because the planner
		// takes the queue for empty, its statistics being of another moment, and would join the
		// lists by a nested loop. Testing queued in a CASE, as the record of an attempt does
		// for the state, takes a quarter of the time to plan.
		count, err = postgres.Affected(tx.ExecContext(ctx, `
			WITH overdue AS MATERIALIZED (
				SELECT delivery_uid::text AS uid, created_at
				  FROM deliveries
				 WHERE queued
				   AND next_attempt_at < $1
				 ORDER BY next_attempt_at
				 LIMIT $2
			), orphans AS (
				SELECT uid::uuid AS delivery_uid, max(created_at) AS created_at
				  FROM (SELECT uid, created_at
				          FROM overdue
				         UNION ALL
				        SELECT args ->> 'delivery_uid', NULL
				          FROM river_job
				         WHERE EXISTS (SELECT FROM overdue)
				           AND kind = $3
				           AND queue = $4
				           AND state IN ('available', 'pending', 'retryable', 'running', 'scheduled'))
				       AS known
				 GROUP BY uid
				HAVING count(*) = count(created_at)
			), chosen AS MATERIALIZED (
				SELECT d.delivery_uid, d.created_at
				  FROM orphans
				  JOIN deliveries d USING (delivery_uid, created_at)
				 WHERE CASE WHEN d.queued THEN true ELSE false END
				 ORDER BY d.delivery_uid
				   FOR UPDATE OF d
			)
			UPDATE deliveries d
			   SET queued = false
			  FROM chosen c
			 WHERE d.delivery_uid = c.delivery_uid
			   AND d.created_at = c.created_at`,
			tx.Now.Add(-patience), orphanBatch, Args{}.Kind(), Queue))
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("looking for deliveries without a job: %w", err)
	}
	return count, nil
}

// ForgetBegun removes the notes of attempts that are no longer needed: those whose number
// was recorded by a process of an earlier release, whose delivery was removed, or whose
// delivery has ended and whose job is gone. It returns how many.
func (s *Service) ForgetBegun(ctx context.Context) (int64, error) {
	result, err := s.DB.ExecContext(ctx, `
		DELETE FROM begun_attempts b
		 WHERE NOT EXISTS (
		           SELECT 1
		             FROM deliveries d
		            WHERE d.delivery_uid = b.delivery_uid
		              AND d.created_at = b.created_at
		              AND d.attempt_count < b.number
		              AND (d.state IN ('pending', 'retrying')
		                   OR EXISTS (
		                       SELECT 1
		                         FROM river_job
		                        WHERE id = b.job_id
		                          AND args ->> 'delivery_uid' = b.delivery_uid::text
		                          AND state IN ('available', 'pending', 'retryable', 'running',
		                                        'scheduled'))))`)
	if err != nil {
		return 0, fmt.Errorf("removing notes of attempts that are over: %w", err)
	}
	return result.RowsAffected()
}
