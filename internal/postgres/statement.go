package postgres

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/jmoiron/sqlx"
)

// Statement is SQL that each connection parses and plans once and not on every
// call, which halves the cost of queries as small as those that guard every
// request. It lives as long as the pool. The zero value is ready for use.
type Statement struct {
	prepared atomic.Pointer[sqlx.Stmt]
}

// Prepare returns the statement for any connection of the pool; a transaction
// takes it over by Tx.StmtxContext. All calls must give the same text.
//
// The first call uses a connection. Inside a transaction, which holds one
// already, it could wait for another one for ever: prepare before it begins.
func (s *Statement) Prepare(ctx context.Context, db *DB, text string) (*sqlx.Stmt, error) {
	if prepared := s.prepared.Load(); prepared != nil {
		return prepared, nil
	}
	prepared, err := db.PreparexContext(ctx, text)
	if err != nil {
		return nil, fmt.Errorf("preparing a statement: %w", err)
	}
	// Of first calls at the same time one keeps its own: waiting for each other
	// would tie a request to the connection of a slower one.
	if s.prepared.CompareAndSwap(nil, prepared) {
		return prepared, nil
	}
	defer prepared.Close() // nobody has used it
	return s.prepared.Load(), nil
}
