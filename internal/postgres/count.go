package postgres

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/jmoiron/sqlx"
)

// countGrace is how much later than the server the client gives a count up. Only
// then is its connection lost.
const countGrace = time.Second

// CountUpTo counts the rows that from selects, beginning with FROM, in the order that it gives, at
// most limit of them; what names them in errors. It ends as Count does.
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
	late := false
	alive, cancel := context.WithDeadline(context.WithoutCancel(ctx), deadline.Add(countGrace))
	defer cancel()
	defer Waiting(alive)()
	err = db.read(alive, func(alive context.Context, from *sqlx.DB) (err error) {
		count, err = countFor(alive, from, left, query, args)
		if hasState(err, stateCancelled) { // in time: nobody else is asked
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

// countFor counts for so many milliseconds at most.
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
