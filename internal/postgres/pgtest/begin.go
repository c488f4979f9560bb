package pgtest

import (
	"testing"

	"github.com/jmoiron/sqlx"

	"drawbridge/internal/postgres"
)

// Begin starts a transaction with a statement and leaves it open, with the locks and the snapshot
// of the statement, until the caller or the end of the test ends it.
func Begin(t testing.TB, db *postgres.DB, statement string, args ...any) *sqlx.Tx {
	t.Helper()
	tx, err := db.BeginTxx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback() }) // ended already, unless the test failed
	if _, err := tx.ExecContext(t.Context(), statement, args...); err != nil {
		t.Fatal(err)
	}
	return tx
}
