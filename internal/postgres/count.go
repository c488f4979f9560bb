package postgres

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/jmoiron/sqlx"
)

// countGrace is how much later than the server the client gives up a count. Only then is its
// connection lost.
const countGrace = time.Second

// CountUpTo counts at most limit of the rows selected by from, which begins with FROM and may
// include an order; what names the rows in errors. It has the time limit of Count.
func (db *DB) CountUpTo(
	ctx context.Context, limit int, what, from string, args []any,
) (int, error) {
	c := Conditions{Args: args}
	text := `SELECT count(*) FROM (SELECT ` + from + ` LIMIT ` + c.Bind(limit) + `) AS matching`
	count, err := db.Count(ctx, text, c.Args...)
	if err != nil {
		return 0, fmt.Errorf("counting %s: %w", what, err)
	}
	return count, nil
}

// Count returns the result of a counting query. When the deadline of ctx passes first, the error is
// context.DeadlineExceeded: the server cancels the query itself, so the connection and its prepared
// statements survive.
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
	late := false
	alive, cancel := context.WithDeadline(context.WithoutCancel(ctx), deadline.Add(countGrace))
	defer cancel()
	defer Waiting(alive)()
	err = db.read(alive, func(alive context.Context, from *sqlx.DB) (err error) {
		count, err = countFor(alive, from, left, query, args)
		if hasState(err, stateCancelled) { // in time: the primary is not asked as well
			count, late = 0, true
			return nil
		}
		return err
	})
	if late {
		return 0, context.DeadlineExceeded
	}
	return count, err
}

// countFor counts for at most limit milliseconds.
func countFor(
	ctx context.Context, from *sqlx.DB, limit int64, query string, args []any,
) (count int, err error) {
	tx, err := from.BeginTxx(ctx, nil)
	if err != nil {
		return 0, fmt.Errorf("beginning to count: %w", err)
	}
	defer func() { _ = tx.Rollback() }() // it only reads
	_, err = tx.ExecContext(ctx, `SELECT set_config('statement_timeout', $1, true)`,
		strconv.FormatInt(limit, 10))
	if err != nil {
		return 0, fmt.Errorf("limiting the time of a count: %w", err)
	}
	err = tx.GetContext(ctx, &count, query, args...)
	return count, err
}
