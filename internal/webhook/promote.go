package webhook

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/postgres"
)

// promoteBatch bounds one promotion, so that a large backlog (a subscription
// resumed after days, a bulk re-send) trickles in beside new events.
const promoteBatch = 1000

// Promote enqueues the attempts that have fallen due and returns how many.
//
// The delivery's own row says when its next attempt is due; the queue only
// ever holds attempts that may start now. So a retry neither waits for the
// queue's scheduler, which looks every five seconds, nor is lost with a job.
// Any number of processes may promote at once: each takes other rows.
func (s *Service) Promote(ctx context.Context) (int, error) {
	var count int
	err := s.DB.InTx(ctx, func(tx *postgres.Tx) error {
		jobs, err := takeDue(ctx, tx)
		if err != nil {
			return err
		}
		count = len(jobs)
		return s.enqueue(ctx, tx, jobs)
	})
	return count, err
}

func takeDue(ctx context.Context, tx *postgres.Tx) ([]DeliverArgs, error) {
	var rows []struct {
		UID       uuid.UUID `db:"delivery_uid"`
		CreatedAt time.Time `db:"created_at"`
		Attempts  int       `db:"attempt_count"`
	}
	err := tx.SelectContext(ctx, &rows, `
		WITH due AS (
			SELECT delivery_uid, created_at
			  FROM deliveries
			 WHERE state IN ('pending', 'retrying')
			   AND NOT queued
			   AND NOT parked
			   AND next_attempt_at <= $1
			 ORDER BY next_attempt_at
			 LIMIT $2
			   FOR UPDATE SKIP LOCKED
		)
		UPDATE deliveries d
		   SET queued = true
		  FROM due
		 WHERE d.delivery_uid = due.delivery_uid
		   AND d.created_at = due.created_at
		RETURNING d.delivery_uid, d.created_at, d.attempt_count`, tx.Now, promoteBatch)
	if err != nil {
		return nil, fmt.Errorf("taking the deliveries that are due: %w", err)
	}
	jobs := make([]DeliverArgs, 0, len(rows))
	for _, row := range rows {
		jobs = append(jobs, DeliverArgs{
			DeliveryUID: row.UID, CreatedAt: row.CreatedAt, Number: row.Attempts + 1,
		})
	}
	return jobs, nil
}
