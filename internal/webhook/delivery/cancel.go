package delivery

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/lib/pq"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
	"drawbridge/internal/webhook/subscription"
)

// Cancel ends deliveries that still wait for an attempt and returns those that
// it ended; the others of uids had ended before. An attempt that is under way
// goes on, and if it succeeds the delivery counts as delivered after all.
// Error: VALIDATION_ERROR when uids are none or more than postgres.MaxPage.
func (s *Service) Cancel(
	ctx context.Context, tx *postgres.Tx, uids []uuid.UUID,
) ([]uuid.UUID, error) {
	if len(uids) < 1 || len(uids) > postgres.MaxPage {
		return nil, lending.Invalid("delivery", "choose from 1 to %d deliveries", postgres.MaxPage)
	}
	var ended []uuid.UUID
	err := tx.SelectContext(ctx, &ended, `
		WITH chosen AS (
			SELECT delivery_uid, created_at
			  FROM deliveries
			 WHERE delivery_uid = ANY ($1::uuid[])
			   AND state IN ('pending', 'retrying')
			 ORDER BY delivery_uid
			   FOR UPDATE
		)
		UPDATE deliveries d
		   SET `+subscription.Cancelled+`
		  FROM chosen c
		 WHERE d.delivery_uid = c.delivery_uid
		   AND d.created_at = c.created_at
		RETURNING d.delivery_uid`, pq.Array(uids), tx.Now)
	if err != nil {
		return nil, fmt.Errorf("cancelling deliveries: %w", err)
	}
	return ended, nil
}

// ByUIDs returns the deliveries that have one of the ids, newest first;
// ids that nothing has are left out. Error: VALIDATION_ERROR when uids are none
// or more than postgres.MaxPage.
func (l *Log) ByUIDs(ctx context.Context, uids []uuid.UUID) ([]Delivery, error) {
	if err := postgres.CheckLimit(len(uids)); err != nil {
		return nil, err
	}
	var rows []Delivery
	err := l.DB.SelectContext(ctx, &rows, `SELECT `+deliveryColumns+deliveryTables+`
		WHERE d.delivery_uid = ANY ($1::uuid[])`+newestFirst, pq.Array(uids))
	if err != nil {
		return nil, fmt.Errorf("loading chosen deliveries: %w", err)
	}
	return rows, nil
}

// CountOpen counts the deliveries of until a time that are not final, those among them that
// the outbox has yet to make.
func (l *Log) CountOpen(ctx context.Context, until time.Time) (int, error) {
	var count int
	err := l.DB.GetContext(ctx, &count, `
		SELECT (SELECT count(*)
		          FROM deliveries
		         WHERE state IN ('pending', 'retrying')
		           AND created_at <= $1)
		     + (SELECT coalesce(sum(cardinality(owed)), 0)
		          FROM outbox
		         WHERE recorded_at <= $1)`, until)
	if err != nil {
		return 0, fmt.Errorf("counting open deliveries: %w", err)
	}
	return count, nil
}

// CancelOpen ends every delivery of until a time that is not final, made or not, and pauses
// the bulk re-sends that would make more. It returns how many deliveries those
// were. It is for a database that was restored, while no worker runs: they may
// have been sent after the backup. Each can be sent again by hand.
func (s *Service) CancelOpen(
	ctx context.Context, tx *postgres.Tx, until time.Time,
) (int, error) {
	result, err := tx.ExecContext(ctx, `
		WITH owed AS MATERIALIZED (
			SELECT o.event_uid, o.occurred_at, o.recorded_at, o.kind, o.status, o.application_uid,
			       s.subscription_uid, s.delivery_uid
			  FROM outbox o
			 CROSS JOIN LATERAL unnest(o.owed, o.delivery_uids) AS s (subscription_uid, delivery_uid)
			 WHERE o.recorded_at <= $1
		), settled AS (
			UPDATE outbox
			   SET owed = '{}', delivery_uids = '{}'
			 WHERE recorded_at <= $1
		), stopped AS (
			UPDATE deliveries d
			   SET `+subscription.Cancelled+`
			 WHERE d.state IN ('pending', 'retrying')
			   AND d.created_at <= $1
			RETURNING d.delivery_uid
		), made AS (
			INSERT INTO deliveries (delivery_uid, created_at, subscription_uid, event_uid, event_at,
			                        event, application_uid, status, state, finished_at, queued)
			SELECT delivery_uid, recorded_at, subscription_uid, event_uid, occurred_at, kind,
			       application_uid, status, 'cancelled', $2, false
			  FROM owed
			RETURNING delivery_uid
		)
		SELECT delivery_uid FROM stopped UNION ALL SELECT delivery_uid FROM made`, until, tx.Now)
	if err != nil {
		return 0, fmt.Errorf("cancelling open deliveries: %w", err)
	}
	if _, err := tx.ExecContext(ctx,
		`UPDATE bulk_resends SET state = 'paused' WHERE state = 'running'`); err != nil {
		return 0, fmt.Errorf("pausing bulk re-sends: %w", err)
	}
	count, err := result.RowsAffected()
	return int(count), err
}
