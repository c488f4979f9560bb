package retention

import (
	"context"
	"time"

	"drawbridge/internal/postgres"
)

// feedBatch is how many positions of the feed are removed in one statement.
const feedBatch = 5000

// placesBefore returns the batch that removes the positions of removed events, wherever in the feed
// they are: an event that was numbered at an upgrade comes after younger ones. The feed's head
// keeps the newest removed position.
func placesBefore(cutoff time.Time) batch {
	return func(ctx context.Context, tx *postgres.Tx) (int, bool, error) {
		count, err := postgres.Affected(tx.ExecContext(ctx, `
			DELETE FROM feed
			 WHERE position = ANY (ARRAY(
			           SELECT f.position
			             FROM feed f
			            WHERE f.occurred_at < $1
			              AND NOT EXISTS (
			                      SELECT FROM events e
			                       WHERE e.event_uid = f.event_uid
			                         AND e.occurred_at = f.occurred_at)
			            LIMIT $2))`, cutoff, feedBatch))
		return count, count == feedBatch, err
	}
}
