package partner

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/jmoiron/sqlx"

	"drawbridge/internal/postgres"
)

// statement is a query that the database parses and plans once per connection
// and not on every call, which halves the cost of queries as small as those that
// guard each request. It lives as long as the pool.
type statement struct {
	prepared atomic.Pointer[sqlx.Stmt]
}

// get reads one row into dest. Each statement is for one text only.
func (s *statement) get(
	ctx context.Context, db *postgres.DB, dest any, text string, args ...any,
) error {
	prepared, err := s.prepare(ctx, db, text)
	if err != nil {
		return fmt.Errorf("preparing a statement: %w", err)
	}
	return prepared.GetContext(ctx, dest, args...)
}

// prepare prepares the statement on first use. Requests that come first together
// each prepare it, and one keeps it, so that none waits for another's connection.
func (s *statement) prepare(
	ctx context.Context, db *postgres.DB, text string,
) (*sqlx.Stmt, error) {
	if prepared := s.prepared.Load(); prepared != nil {
		return prepared, nil
	}
	prepared, err := db.PreparexContext(ctx, text)
	if err != nil {
		return nil, err
	}
	if !s.prepared.CompareAndSwap(nil, prepared) {
		_ = prepared.Close() // nobody has used it
	}
	return s.prepared.Load(), nil
}
