package retention

import (
	"context"
	"fmt"
	"time"
)

// feedBatch is how many places of the feed are removed in one statement.
const feedBatch = 5000

// removeFromFeed removes the places of events that are gone, in batches, wherever in the feed
// they stand: one that was numbered at an upgrade stands behind younger ones. The feed's head
// keeps the newest that went.
func (s *Service) removeFromFeed(ctx context.Context, cutoff time.Time) error {
	for {
		began := time.Now()
		result, err := s.DB.ExecContext(ctx, `
			DELETE FROM feed
			 WHERE position = ANY (ARRAY(
			           SELECT f.position
			             FROM feed f
			            WHERE f.occurred_at < $1
			              AND NOT EXISTS (
			                      SELECT FROM events e
			                       WHERE e.event_uid = f.event_uid
			                         AND e.occurred_at = f.occurred_at)
			            LIMIT $2))`, cutoff, feedBatch)
		if err != nil {
			return fmt.Errorf("removing old entries of the feed: %w", err)
		}
		removed, err := result.RowsAffected()
		if err != nil || removed < feedBatch || !s.rest(ctx, time.Since(began)) {
			return err
		}
	}
}
