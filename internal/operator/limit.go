package operator

import (
	"context"
	"fmt"
	"time"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
)

// AuditLimited writes an entry like Audit, unless its actor has entries of the
// same action, and subject if it says so, for limit times within the window already:
// then it answers RATE_LIMITED. The count is that of the log itself, so it holds across
// processes and the refused use case leaves nothing behind.
func AuditLimited(
	ctx context.Context, tx *postgres.Tx, entry Entry, limit int, window time.Duration,
) error {
	if err := CheckLimit(ctx, tx, entry, limit, window); err != nil {
		return err
	}
	return Audit(ctx, tx, entry)
}

// CheckLimit is what AuditLimited refuses by, for work that is best not begun in vain: the
// entry has to follow in the same transaction.
func CheckLimit(
	ctx context.Context, tx *postgres.Tx, entry Entry, limit int, window time.Duration,
) error {
	// Two at once take turns, so that they cannot both be the last one.
	if _, err := tx.ExecContext(ctx,
		`SELECT pg_advisory_xact_lock(hashtextextended($1, 0))`,
		entry.Action+" "+entry.Actor); err != nil {
		return fmt.Errorf("waiting for other uses of %s: %w", entry.Action, err)
	}
	subject := "" // of all
	if entry.PerSubject {
		subject = entry.Subject
	}
	var uses []time.Time
	err := tx.SelectContext(ctx, &uses, `
		SELECT at
		  FROM audit_log
		 WHERE actor = $1
		   AND action = $2
		   AND at > $3
		   AND ($5 = '' OR subject = $5)
		 ORDER BY at DESC
		 LIMIT $4`, entry.Actor, entry.Action, tx.Now.Add(-window), limit, subject)
	if err != nil {
		return fmt.Errorf("counting uses of %s: %w", entry.Action, err)
	}
	if len(uses) >= limit {
		refusal := lending.NewError(lending.CodeRateLimited,
			"this may be done %d times in %s; try again later", limit, window)
		refusal.RetryAfter = window - tx.Now.Sub(uses[limit-1])
		return refusal
	}
	return nil
}
