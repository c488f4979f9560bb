// Package waittest waits in tests for what something else does, without a fixed pause.
package waittest

import (
	"testing"
	"time"
)

// Patience tells what never comes from what a busy machine is late with. It is no promise of
// the product: those have bounds of their own.
const Patience = 3 * time.Minute

// Until waits until a condition holds. The text says which, after "until".
func Until(t testing.TB, what string, holds func() bool) {
	t.Helper()
	Within(t, Patience, what, holds)
}

// Within waits like Until, and no longer than a limit.
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

// Receive returns what a channel gives next. The text names it.
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
