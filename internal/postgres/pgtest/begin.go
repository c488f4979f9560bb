package pgtest

import (
	"testing"

	"github.com/jmoiron/sqlx"

	"drawbridge/internal/postgres"
)

// Begin starts a transaction with a statement and leaves it open, with what the statement holds,
// until it is ended or the test ends.
func Begin(t testing.TB, db *postgres.DB, statement string, args ...any) *sqlx.Tx {
	t.Helper()
	tx, err := db.BeginTxx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback() }) // it has been by then, unless the test failed
	if _, err := tx.ExecContext(t.Context(), statement, args...); err != nil {
		t.Fatal(err)
	}
	return tx
}
