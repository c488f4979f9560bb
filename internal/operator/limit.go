package operator

import (
	"context"
	"fmt"
	"time"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
)

// AuditLimited writes an entry like Audit, unless its actor has entries of the
// same action for limit times within the window already: then it answers
// RATE_LIMITED. The count is that of the log itself, so it holds across
// processes and the refused use case leaves nothing behind.
func AuditLimited(
	ctx context.Context, tx *postgres.Tx, entry Entry, limit int, window time.Duration,
) error {
	// Two at once take turns, so that they cannot both be the last one.
	if _, err := tx.ExecContext(ctx,
		`SELECT pg_advisory_xact_lock(hashtextextended($1, 0))`,
		entry.Action+" "+entry.Actor); err != nil {
		return fmt.Errorf("waiting for other uses of %s: %w", entry.Action, err)
	}
	var uses int
	err := tx.GetContext(ctx, &uses, `
		SELECT count(*)
		  FROM (SELECT 1
		          FROM audit_log
		         WHERE actor = $1
		           AND action = $2
		           AND at > $3
		         LIMIT $4) AS recent`, entry.Actor, entry.Action, tx.Now.Add(-window), limit)
	if err != nil {
		return fmt.Errorf("counting uses of %s: %w", entry.Action, err)
	}
	if uses >= limit {
		return lending.NewError(lending.CodeRateLimited,
			"this may be done %d times in %s; try again later", limit, window)
	}
	return Audit(ctx, tx, entry)
}
