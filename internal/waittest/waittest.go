// Package waittest waits in tests for asynchronous results, without a fixed pause.
package waittest

import (
	"testing"
	"time"
)

// Patience is long enough to distinguish a result that never comes from a late one on a busy
// machine. It is no promise of the product: those have their own limits.
const Patience = 3 * time.Minute

// Until waits until a condition holds. The text describes it, to follow "until".
func Until(t testing.TB, what string, holds func() bool) {
	t.Helper()
	Within(t, Patience, what, holds)
}

// Within is Until with a time limit.
func Within(t testing.TB, limit time.Duration, what string, holds func() bool) {
	t.Helper()
	late := time.After(limit)
	for pause := time.Millisecond; !holds(); pause = min(2*pause, 32*time.Millisecond) {
		select {
		case <-time.After(pause):
		case <-late:
			t.Fatalf("waited %s in vain until %s", limit, what)
		}
	}
}

// Receive returns the next value of a channel. The text names it.
func Receive[T any](t testing.TB, what string, from <-chan T) T {
	t.Helper()
	var got T
	select {
	case got = <-from:
	case <-time.After(Patience):
		t.Fatalf("waited %s in vain for %s", Patience, what)
	}
	return got
}
