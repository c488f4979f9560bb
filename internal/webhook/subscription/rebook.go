package subscription

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/postgres"
)

// rebookRound bounds how many deliveries are read at once. It is large so that a delivery
// that books again in the meantime is rarely mistaken for one still to be read.
const rebookRound = 250_000

// rebooking makes deliveries give up their slots and fall due.
var rebooking = backlogChange{
	of:  openDeliveries + ` AND d.slot_at IS NOT NULL AND NOT d.queued`,
	set: `slot_at = NULL, next_attempt_at = found.due_at`,
}

// rebook makes deliveries that have booked a slot fall due at once, in their order, to book
// again at another rate. A line that is too long for one transaction is left to a job.
func (b *Backlogs) rebook(ctx context.Context, tx *postgres.Tx, uid uuid.UUID) error {
	isLong, err := IsLineLong(ctx, tx, uid)
	if err != nil {
		return err
	}
	if !isLong {
		return Rebook(ctx, tx, uid)
	}
	return b.leave(ctx, tx, BacklogArgs{SubscriptionUID: uid, Rebook: true})
}

// IsLineLong reports whether more deliveries of a subscription have booked a slot than
// one transaction rewrites.
func IsLineLong(ctx context.Context, tx *postgres.Tx, uid uuid.UUID) (isLong bool, err error) {
	err = tx.GetContext(ctx, &isLong, `
		SELECT count(*) > $2
		  FROM (SELECT
		          FROM deliveries
		         WHERE subscription_uid = $1
		           AND state IN ('pending', 'retrying')
		           AND slot_at IS NOT NULL
		         LIMIT $2 + 1) AS line`, uid, backlogBatch)
	if err != nil {
		return false, fmt.Errorf("looking at the line of subscription %s: %w", uid, err)
	}
	return isLong, nil
}

// Rebook makes deliveries that have booked a slot fall due at once, in their order, to book
// again: at another rate, or in the place of cancelled ones. The line must not be long.
func Rebook(ctx context.Context, tx *postgres.Tx, uid uuid.UUID) error {
	line, err := beginRebooking(ctx, tx, uid)
	if err != nil {
		return err
	}
	for { // again for deliveries that booked before the slots were locked
		keys, err := line.next(ctx, tx, backlogBatch)
		if err != nil || len(keys) == 0 {
			return err
		}
		if err := changeBacklog(ctx, tx, rebooking, keys); err != nil {
			return err
		}
	}
}

// RebookAll rebooks a line of any length. After an interruption it begins anew. It ends
// if the rate changes meanwhile, since that change rebooks everything itself.
func (b *Backlogs) RebookAll(ctx context.Context, uid uuid.UUID) error {
	var line *line
	var rate int
	err := b.withRate(ctx, uid, func(tx *postgres.Tx, now int) (err error) {
		rate = now
		line, err = beginRebooking(ctx, tx, uid)
		return err
	})
	for err == nil {
		var keys []backlogKey
		if keys, err = line.next(ctx, b.DB, rebookRound); err != nil || len(keys) == 0 {
			break
		}
		for batch := range slices.Chunk(keys, backlogBatch) {
			err = b.withRate(ctx, uid, func(tx *postgres.Tx, now int) error {
				if now != rate {
					return errRateChanged
				}
				return changeBacklog(ctx, tx, rebooking, batch)
			})
			if err != nil {
				break
			}
		}
	}
	if errors.Is(err, errRateChanged) {
		return nil
	}
	return err
}

// errRateChanged ends the rebooking at a rate that is no longer in force.
var errRateChanged = errors.New("the rate has changed")

// withRate runs do in a transaction in which the rate of a subscription, in requests per
// second, does not change.
func (b *Backlogs) withRate(
	ctx context.Context, uid uuid.UUID, do func(tx *postgres.Tx, rate int) error,
) error {
	return b.DB.InTx(ctx, func(tx *postgres.Tx) error {
		row, err := load(ctx, tx, uid, ` FOR SHARE OF s`)
		if err != nil {
			return err
		}
		return do(tx, row.Rate)
	})
}

// line holds the deliveries that had booked slots of a subscription at some time, in slot order.
type line struct {
	uid uuid.UUID
	// begunAt is that time; the slots from after on, up to last, are still to be read.
	begunAt, after, last time.Time
}

// beginRebooking frees all slots of a subscription.
func beginRebooking(ctx context.Context, tx *postgres.Tx, uid uuid.UUID) (*line, error) {
	_, err := tx.ExecContext(ctx, `DELETE FROM subscription_slots WHERE subscription_uid = $1`, uid)
	if err != nil {
		return nil, fmt.Errorf("clearing the slots of subscription %s: %w", uid, err)
	}
	begun := &line{uid: uid, begunAt: tx.Now}
	err = tx.GetContext(ctx, &begun.last, `
		SELECT coalesce(max(slot_at), $2)
		  FROM deliveries
		 WHERE subscription_uid = $1
		   AND state IN ('pending', 'retrying')`, uid, tx.Now)
	if err != nil {
		return nil, fmt.Errorf("reading the last slot of subscription %s: %w", uid, err)
	}
	return begun, nil
}

// next reads at most limit more deliveries of the line. Their due times are spread by a thousandth
// of the distances between their slots: that keeps the order and moves the times little.
func (l *line) next(ctx context.Context, db postgres.Querier, limit int) ([]backlogKey, error) {
	var rows []struct {
		backlogKey
		SlotAt time.Time `db:"slot_at"`
	}
	err := db.SelectContext(ctx, &rows, `
		SELECT delivery_uid, created_at, slot_at,
		       $2::timestamptz - ($4::timestamptz - slot_at) / 1000 AS due_at
		  FROM deliveries
		 WHERE subscription_uid = $1
		   AND state IN ('pending', 'retrying')
		   AND slot_at > $3
		   AND slot_at <= $4
		   AND NOT queued
		 ORDER BY slot_at, delivery_uid
		 LIMIT $5`, l.uid, l.begunAt, l.after, l.last, limit)
	if err != nil {
		return nil, fmt.Errorf("reading the line of subscription %s: %w", l.uid, err)
	}
	keys := make([]backlogKey, len(rows))
	for i, row := range rows {
		keys[i], l.after = row.backlogKey, row.SlotAt
	}
	return keys, nil
}
