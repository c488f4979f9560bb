package pgtest

import (
	"testing"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"drawbridge/internal/postgres"
)

// Hold keeps a transaction open until the test ends: what is deleted or changed from now on
// is not removed.
func Hold(t testing.TB, db *postgres.DB) {
	t.Helper()
	open, err := db.BeginTxx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = open.Rollback() }) // the end of the context may have been first
	if _, err := open.ExecContext(t.Context(), `SELECT pg_current_xact_id()`); err != nil {
		t.Fatal(err)
	}
}

// Blocks is how many blocks of the tables and their indexes were read, once a pool of one
// connection has told what it did.
func Blocks(t testing.TB, on *sqlx.DB, tables ...string) (count int) {
	t.Helper()
	_, err := on.ExecContext(t.Context(), `SELECT pg_stat_force_next_flush()`)
	if err == nil {
		err = on.GetContext(t.Context(), &count, `
			SELECT sum(heap_blks_read + heap_blks_hit + idx_blks_read + idx_blks_hit)
			  FROM pg_statio_user_tables
			 WHERE relname = ANY ($1)`, pq.Array(tables))
	}
	if err != nil {
		t.Fatal(err)
	}
	return count
}
