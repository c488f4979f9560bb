package pgtest

import (
	"testing"

	"drawbridge/internal/postgres"
)

// Exec runs a statement.
func Exec(t testing.TB, db *postgres.DB, statement string, args ...any) {
	t.Helper()
	if _, err := db.ExecContext(t.Context(), statement, args...); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

// Value returns the single value of a query's result.
func Value[T any](t testing.TB, db *postgres.DB, query string, args ...any) (value T) {
	t.Helper()
	if err := db.GetContext(t.Context(), &value, query, args...); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return value
}

// Count returns the single number of a query's result.
func Count(t testing.TB, db *postgres.DB, query string, args ...any) int {
	t.Helper()
	return Value[int](t, db, query, args...)
}
