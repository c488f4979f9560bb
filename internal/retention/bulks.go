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

// dueBulks selects the bulk re-sends that ended before $1 and contain no application under a legal
// hold: their months are due as well.
const dueBulks = `bulk_resends b
		 WHERE b.ended_at < $1
		   AND NOT EXISTS (
		       SELECT 1
		         FROM bulk_resend_items i
		        WHERE i.bulk_uid = b.bulk_uid
		          AND i.application_uid IN (` + legallyHeld + `))`

// bulksBefore returns the batch that removes the next lines of a bulk re-send that ended before
// cutoff, and with the last lines the bulk re-send itself; only that is counted.
func bulksBefore(cutoff time.Time) batch {
	return func(ctx context.Context, tx *postgres.Tx) (whole int, more bool, err error) {
		var bulk uuid.UUID
		err = tx.GetContext(ctx, &bulk,
			`SELECT b.bulk_uid FROM `+dueBulks+` ORDER BY b.ended_at LIMIT 1`, cutoff)
		if postgres.IsNoRows(err) {
			return 0, false, nil
		}
		if err != nil {
			return 0, false, fmt.Errorf("choosing the next one: %w", err)
		}
		lines, err := postgres.Affected(tx.ExecContext(ctx, `
			DELETE FROM bulk_resend_items
			 WHERE bulk_uid = $1
			   AND position IN (
			       SELECT position
			         FROM bulk_resend_items
			        WHERE bulk_uid = $1
			        ORDER BY position
			        LIMIT $2)`, bulk, bulkBatch))
		if err != nil {
			return 0, false, fmt.Errorf("removing lines of %s: %w", bulk, err)
		}
		if lines == bulkBatch {
			return 0, true, nil
		}
		_, err = tx.ExecContext(ctx, `
			WITH lanes AS (DELETE FROM bulk_resend_lanes WHERE bulk_uid = $1)
			DELETE FROM bulk_resends WHERE bulk_uid = $1`, bulk)
		if err != nil {
			return 0, false, fmt.Errorf("removing %s: %w", bulk, err)
		}
		return 1, true, nil
	}
}
