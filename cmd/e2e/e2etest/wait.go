package e2etest

import (
	"fmt"
	"testing"
	"time"

	"drawbridge/internal/postgres"
	"drawbridge/internal/postgres/pgtest"
	"drawbridge/internal/waittest"
)

// WaitForCount waits until the query returns n.
func WaitForCount(t *testing.T, db *postgres.DB, n int, query string) {
	t.Helper()
	waittest.Within(t, 2*time.Minute, fmt.Sprintf("it counts %d: %s", n, query), func() bool {
		return pgtest.Count(t, db, query) == n
	})
}

// WantSilence fails the test if a request arrives.
func (e *Endpoint) WantSilence(t *testing.T) {
	t.Helper()
	select {
	case request := <-e.Requests:
		t.Errorf("a request came: %v", request.Header)
	case <-time.After(time.Second):
	}
}
