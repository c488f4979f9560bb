package operator

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/lib/pq"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
)

// AuditLimited writes an entry like Audit, but returns RATE_LIMITED if its actor already has
// limit entries within the window. It counts entries of the same action, or of the actions in
// Together, and if PerSubject is set only those of the same subject. The count is taken from the
// log itself, so it holds across processes, and a refused use case leaves nothing behind.
func AuditLimited(
	ctx context.Context, tx *postgres.Tx, entry Entry, limit int, window time.Duration,
) error {
	if err := CheckLimit(ctx, tx, entry, limit, window); err != nil {
		return err
	}
	return Audit(ctx, tx, entry)
}

// CheckLimit is the check of AuditLimited, for work that should not begin in vain: the entry
// must follow in the same transaction.
func CheckLimit(
	ctx context.Context, tx *postgres.Tx, entry Entry, limit int, window time.Duration,
) error {
	actions := entry.Together
	if len(actions) == 0 {
		actions = []string{entry.Action}
	}
	// Concurrent uses are serialised, so that they cannot both be the last one allowed.
	if _, err := tx.ExecContext(ctx,
		`SELECT pg_advisory_xact_lock(hashtextextended($1, 0))`,
		strings.Join(actions, " ")+" "+entry.Actor); err != nil {
		return fmt.Errorf("waiting for other uses of %s: %w", entry.Action, err)
	}
	subject := "" // of all subjects
	if entry.PerSubject {
		subject = entry.Subject
	}
	var uses []time.Time
	err := tx.SelectContext(ctx, &uses, `
		SELECT at
		  FROM audit_log
		 WHERE actor = $1
		   AND action = ANY ($2)
		   AND at > $3
		   AND ($5 = '' OR subject = $5)
		 ORDER BY at DESC
		 LIMIT $4`, entry.Actor, pq.StringArray(actions), tx.Now.Add(-window), limit, subject)
	if err != nil {
		return fmt.Errorf("counting uses of %s: %w", entry.Action, err)
	}
	if len(uses) < limit {
		return nil
	}
	wait := window - tx.Now.Sub(uses[limit-1])
	refusal := lending.NewError(lending.CodeRateLimited,
		"this may be done at most %d times in %s; try again in %s", limit, inWords(window), inWords(wait))
	refusal.RetryAfter, refusal.Quota = wait, limit
	return refusal
}

// inWords writes a length of time in full, seconds rounded up: 24 h, 59 min 57 s.
func inWords(d time.Duration) string {
	rest := (d + time.Second - 1).Truncate(time.Second)
	var words []string
	for _, unit := range []struct {
		size time.Duration
		name string
	}{{time.Hour, "h"}, {time.Minute, "min"}, {time.Second, "s"}} {
		if n := rest / unit.size; n > 0 {
			words = append(words, fmt.Sprintf("%d %s", n, unit.name))
		}
		rest %= unit.size
	}
	return strings.Join(words, " ")
}
