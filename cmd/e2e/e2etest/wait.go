package e2etest

import (
	"testing"
	"time"

	"drawbridge/internal/postgres"
)

// WaitForCount waits until the query counts n.
func WaitForCount(t *testing.T, db *postgres.DB, n int, query string) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	var got int
	for deadline := time.After(2 * time.Minute); ; {
		if err := db.GetContext(t.Context(), &got, query); err != nil {
			t.Fatal(err)
		}
		if got == n {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("counted %d in the end, want %d", got, n)
		}
	}
}

// Until waits for a condition.
func Until(t *testing.T, limit time.Duration, what string, holds func() bool) {
	t.Helper()
	deadline := time.After(limit)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("waited %s in vain until %s", limit, what)
		}
	}
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
