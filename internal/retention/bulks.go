package retention

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/postgres"
)

// bulkBatch bounds how many lines of a bulk re-send one transaction removes.
const bulkBatch = 2_000

// dueBulks selects the bulk re-sends that ended before $1 and name no application
// under a legal hold: their months are due as well.
const dueBulks = `bulk_resends b
		 WHERE b.ended_at < $1
		   AND NOT EXISTS (
		       SELECT 1
		         FROM bulk_resend_items i
		        WHERE i.bulk_uid = b.bulk_uid
		          AND i.application_uid IN (` + legallyHeld + `))`

// removeBulks removes the bulk re-sends that are due, each in batches of lines.
func (s *Service) removeBulks(ctx context.Context, cutoff time.Time) (removed int, err error) {
	for {
		began := time.Now()
		whole, done, err := s.removeBulkBatch(ctx, cutoff)
		if err != nil {
			return removed, fmt.Errorf("removing bulk re-sends: %w", err)
		}
		if whole {
			removed++
		}
		if done || !s.rest(ctx, time.Since(began)) {
			return removed, nil
		}
	}
}

// removeBulkBatch removes the next lines of a bulk re-send that is due, and with the
// last of them the rest. It tells whether that was all of it, or whether none is due
// any more.
func (s *Service) removeBulkBatch(
	ctx context.Context, cutoff time.Time,
) (whole, done bool, err error) {
	err = s.DB.InTx(ctx, func(tx *postgres.Tx) error {
		whole, done = false, false
		if err := shieldLegalHolds(ctx, tx); err != nil {
			return err
		}
		var bulk uuid.UUID
		err := tx.GetContext(ctx, &bulk,
			`SELECT b.bulk_uid FROM `+dueBulks+` ORDER BY b.ended_at LIMIT 1`, cutoff)
		if postgres.IsNoRows(err) {
			done = true
			return nil
		}
		if err != nil {
			return fmt.Errorf("choosing the next one: %w", err)
		}
		result, err := tx.ExecContext(ctx, `
			DELETE FROM bulk_resend_items
			 WHERE bulk_uid = $1
			   AND position IN (
			       SELECT position
			         FROM bulk_resend_items
			        WHERE bulk_uid = $1
			        ORDER BY position
			        LIMIT $2)`, bulk, bulkBatch)
		if err != nil {
			return fmt.Errorf("removing lines of %s: %w", bulk, err)
		}
		lines, err := result.RowsAffected()
		if err != nil || lines == bulkBatch {
			return err
		}
		for _, table := range []string{"bulk_resend_lanes", "bulk_resends"} {
			_, err := tx.ExecContext(ctx, `DELETE FROM `+table+` WHERE bulk_uid = $1`, bulk)
			if err != nil {
				return fmt.Errorf("removing %s: %w", bulk, err)
			}
		}
		whole = true
		return nil
	})
	return whole, done, err
}
