package e2etest

import (
	"fmt"
	"testing"
	"time"

	"drawbridge/internal/postgres"
	"drawbridge/internal/waittest"
)

// Value is the one value that a query answers with.
func Value[T any](t *testing.T, db *postgres.DB, query string, args ...any) (value T) {
	t.Helper()
	if err := db.GetContext(t.Context(), &value, query, args...); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return value
}

// Count is the number that a query answers with.
func Count(t *testing.T, db *postgres.DB, query string, args ...any) int {
	t.Helper()
	return Value[int](t, db, query, args...)
}

// WaitForCount waits until the query counts n.
func WaitForCount(t *testing.T, db *postgres.DB, n int, query string) {
	t.Helper()
	waittest.Within(t, 2*time.Minute, fmt.Sprintf("it counts %d: %s", n, query), func() bool {
		return Count(t, db, query) == n
	})
}

// WantSilence fails when a request comes.
func (e *Endpoint) WantSilence(t *testing.T) {
	t.Helper()
	select {
	case request := <-e.Requests:
		t.Errorf("a request came: %v", request.Header)
	case <-time.After(time.Second):
	}
}
