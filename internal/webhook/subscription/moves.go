package subscription

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"
)

// Move is a change of a subscription's URL.
type Move struct {
	UID uuid.UUID `db:"subscription_uid"`
	// At is when it got its current URL.
	At time.Time `db:"moved_at"`
	// Untried means that it was failing until then and that no attempt has ended since: its
	// health is still that of the former URL.
	Untried bool `db:"untried"`
}

// Moves returns the last move of each of the subscriptions that ever moved.
func Moves(
	ctx context.Context, from sqlx.QueryerContext, uids ...uuid.UUID,
) (map[uuid.UUID]Move, error) {
	var rows []Move
	err := sqlx.SelectContext(ctx, from, &rows, `
		SELECT s.subscription_uid, min(v.changed_at) AS moved_at,
		       coalesce(h.failing_since IS NOT NULL
		                AND h.last_failure_at < min(v.changed_at), false) AS untried
		  FROM subscriptions s
		  JOIN subscription_versions v USING (subscription_uid)
		  LEFT JOIN subscription_health h USING (subscription_uid)
		 WHERE s.subscription_uid = ANY ($1)
		   AND v.version > (SELECT max(former.version)
		                      FROM subscription_versions former
		                     WHERE former.subscription_uid = s.subscription_uid
		                       AND former.url <> s.url)
		 GROUP BY s.subscription_uid, h.failing_since, h.last_failure_at`, pq.Array(uids))
	if err != nil {
		return nil, fmt.Errorf("looking when %d subscriptions moved: %w", len(uids), err)
	}
	moves := make(map[uuid.UUID]Move, len(rows))
	for _, row := range rows {
		moves[row.UID] = row
	}
	return moves, nil
}
