package delivery

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/lib/pq"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
	"drawbridge/internal/webhook/subscription"
)

// Cancel ends deliveries that still wait for an attempt and returns those that it ended;
// the others of uids had ended before. If their subscription has a rate, their slots go
// to its other deliveries. An attempt that is under way goes on, and if it succeeds the
// delivery counts as delivered after all. Error: VALIDATION_ERROR when uids is empty or
// has more than postgres.MaxPage.
func (s *Service) Cancel(
	ctx context.Context, tx *postgres.Tx, uids []uuid.UUID,
) ([]uuid.UUID, error) {
	if len(uids) < 1 || len(uids) > postgres.MaxPage {
		return nil, lending.Invalid("delivery", "choose from 1 to %d deliveries", postgres.MaxPage)
	}
	paced, err := lockSlots(ctx, tx, `
		WHERE subscription_uid IN (SELECT subscription_uid
		                             FROM deliveries
		                            WHERE delivery_uid = ANY ($1::uuid[]))`, pq.Array(uids))
	if err != nil {
		return nil, err
	}
	var rows []struct {
		UID          uuid.UUID `db:"delivery_uid"`
		Subscription uuid.UUID `db:"subscription_uid"`
		// Booked means that it had a slot in the future.
		Booked bool `db:"booked"`
	}
	err = tx.SelectContext(ctx, &rows, `
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
		RETURNING d.delivery_uid, d.subscription_uid,
		          coalesce(d.slot_at > $2, false) AS booked`, pq.Array(uids), tx.Now)
	if err != nil {
		return nil, fmt.Errorf("cancelling deliveries: %w", err)
	}
	ended, freed := make([]uuid.UUID, len(rows)), make(map[uuid.UUID]bool)
	for i, row := range rows {
		ended[i] = row.UID
		freed[row.Subscription] = freed[row.Subscription] || row.Booked
	}
	paced = slices.DeleteFunc(paced, func(uid uuid.UUID) bool { return !freed[uid] })
	return ended, rebookAll(ctx, tx, paced)
}

// lockSlots locks the subscriptions selected by a condition. Slots are locked after
// subscriptions, and deliveries after slots; booking and changes of subscriptions use the
// same order. It returns the subscriptions that have slots; one without a rate has none.
func lockSlots(
	ctx context.Context, tx *postgres.Tx, which string, args ...any,
) ([]uuid.UUID, error) {
	var paced []uuid.UUID
	err := tx.SelectContext(ctx, &paced, `
		SELECT subscription_uid
		  FROM subscriptions
		  JOIN subscription_slots USING (subscription_uid)`+which+`
		 ORDER BY subscription_uid
		   FOR NO KEY UPDATE`, args...)
	if err != nil {
		return nil, fmt.Errorf("locking slots: %w", err)
	}
	return paced, nil
}

// rebookAll gives the slots of cancelled deliveries to the remaining ones. A long line
// keeps its slots until it is short: deliveries may be cancelled from it one by one.
func rebookAll(ctx context.Context, tx *postgres.Tx, subscriptions []uuid.UUID) error {
	for _, uid := range subscriptions {
		isLong, err := subscription.IsLineLong(ctx, tx, uid)
		if err == nil && !isLong {
			err = subscription.Rebook(ctx, tx, uid)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// ByUIDs returns the deliveries that have one of the ids, newest first; ids without a
// delivery are left out. Error: VALIDATION_ERROR when uids is empty or has more than
// postgres.MaxPage.
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

// CountOpen counts the deliveries created up to a time that are not final, including
// those that the outbox has yet to create.
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

// CancelOpen ends every delivery created up to a time that is not final, including those that
// the outbox has yet to create, and pauses the running bulk re-sends, which would add more. It
// returns how many deliveries it ended. It is for a restored database, while no worker runs:
// the deliveries may have been sent after the backup. Each can be re-sent by hand.
func (s *Service) CancelOpen(ctx context.Context, tx *postgres.Tx, until time.Time) (int, error) {
	paced, err := lockSlots(ctx, tx, "")
	if err != nil {
		return 0, err
	}
	count, err := postgres.Affected(tx.ExecContext(ctx, `
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
		SELECT delivery_uid FROM stopped UNION ALL SELECT delivery_uid FROM made`, until, tx.Now))
	if err != nil {
		return 0, fmt.Errorf("cancelling open deliveries: %w", err)
	}
	if err := rebookAll(ctx, tx, paced); err != nil {
		return 0, err
	}
	if _, err := tx.ExecContext(ctx,
		`UPDATE bulk_resends SET state = 'paused' WHERE state = 'running'`); err != nil {
		return 0, fmt.Errorf("pausing bulk re-sends: %w", err)
	}
	return count, nil
}
