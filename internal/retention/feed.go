package retention

import (
	"context"
	"fmt"
	"time"
)

// feedBatch is how many entries of the feed are looked at in one statement.
const feedBatch = 5000

// removeFromFeed removes the places of events that are gone, in batches from the oldest on.
func (s *Service) removeFromFeed(ctx context.Context, cutoff time.Time) error {
	position := int64(0)
	for {
		began := time.Now()
		var seen struct {
			Count int    `db:"count"`
			Last  *int64 `db:"last"`
		}
		err := s.DB.GetContext(ctx, &seen, `
			WITH old AS (
				SELECT position, event_uid, occurred_at
				  FROM (SELECT * FROM feed WHERE position > $1 ORDER BY position LIMIT $3) AS next
				 WHERE occurred_at < $2
			), removed AS (
				DELETE FROM feed f
				 USING old
				 WHERE f.position = old.position
				   AND NOT EXISTS (
				           SELECT FROM events e
				            WHERE e.event_uid = old.event_uid AND e.occurred_at = old.occurred_at)
			)
			SELECT count(*) AS count, max(position) AS last FROM old`, position, cutoff, feedBatch)
		if err != nil {
			return fmt.Errorf("removing old entries of the feed: %w", err)
		}
		if seen.Count == 0 || !s.rest(ctx, time.Since(began)) {
			return nil
		}
		position = *seen.Last
	}
}
