package postgres

import (
	"context"
	"fmt"
	"strconv"
	"time"
)

// countGrace is how much later than the server the client gives a count up. Only
// then is its connection lost.
const countGrace = time.Second

// Count returns the number that a query asks for. When the deadline of ctx passes
// first, the error is context.DeadlineExceeded: the server ends the query by
// itself, so that the connection lives on, with the statements it keeps.
func (db *DB) Count(ctx context.Context, query string, args ...any) (count int, err error) {
	deadline, bounded := ctx.Deadline()
	if !bounded {
		err = db.GetContext(ctx, &count, query, args...)
		return count, err
	}
	left := time.Until(deadline).Milliseconds()
	if left < 1 {
		return 0, context.DeadlineExceeded
	}
	alive, cancel := context.WithDeadline(context.WithoutCancel(ctx), deadline.Add(countGrace))
	defer cancel()
	tx, err := db.BeginTxx(alive, nil)
	if err != nil {
		return 0, fmt.Errorf("beginning to count: %w", err)
	}
	defer func() { _ = tx.Rollback() }() // it only reads
	_, err = tx.ExecContext(alive, `SELECT set_config('statement_timeout', $1, true)`,
		strconv.FormatInt(left, 10))
	if err != nil {
		return 0, fmt.Errorf("limiting the time of a count: %w", err)
	}
	err = tx.GetContext(alive, &count, query, args...)
	if isCancelled(err) {
		return 0, context.DeadlineExceeded
	}
	return count, err
}
