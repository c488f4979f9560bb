//go:build upgrade

package faults

import (
	"testing"
	"time"

	"drawbridge/cmd/e2e/e2etest"
	"drawbridge/internal/secret"
	"drawbridge/internal/waittest"
)

// TestUpgradeUnderLoad takes loans through their lives while the schema is migrated under
// the previous release, its processes are replaced one by one, and one of the new ones by
// an old one again. No request is lost or refused, and every response is repeated for its
// key by either release, whichever gave it first.
func TestUpgradeUnderLoad(t *testing.T) {
	t.Parallel()
	r := newRecordingReceiver(t, 1)
	r.linger(0)
	w := e2etest.New(t)
	w.Env["DRAWBRIDGE_SECRETS_KEY"] = secret.GenerateKey()
	w.Execute(w.Open(t), `DROP SCHEMA public CASCADE; CREATE SCHEMA public`)
	old := *w
	old.Program = buildPrevious(t)
	ok(&old, "migrate", "up")
	b := newBorrowers(&old, r)
	serving := []*e2etest.Server{old.Serve(), old.Serve()}
	b.use(serving...)
	begun := time.Now()
	lives := b.startLives()
	b.goOn(200)
	ok(w, "migrate", "up")
	b.goOn(200)
	t.Logf("%.0f calls a second", float64(b.steps.Load())/time.Since(begun).Seconds())
	replace := func(i int, by *e2etest.Harness) {
		next := by.Serve()
		b.use(append(serving, next)...) // three for a while
		b.goOn(100)
		gone := serving[i]
		serving[i] = next
		b.use(serving...)
		b.goOn(100) // requests already routed to the old process have been sent
		if status := gone.Stop(); status != 0 {
			t.Errorf("a process ended with %d", status)
		}
	}
	replace(0, w)
	replace(1, w)
	replace(0, &old) // back again
	b.use(serving[0])
	b.repeatAll()
	b.use(serving...)
	replace(0, w)
	loans := lives.end()
	b.repeatAll()

	if lost, first := b.lost.Load(), b.firstLost.Load(); lost > 0 {
		t.Errorf("%d calls were lost or refused, the first: %s", lost, *first)
	}
	checkLoans(t, w.Open(t), loans)
	waitUntilSettled(t, w.Open(t), 2*time.Minute)
	t.Logf("%d loans, %d calls answered", loans, b.steps.Load())
}

// goOn waits until steps more requests have been answered.
func (b *borrowers) goOn(steps int64) {
	b.t.Helper()
	point := b.steps.Load() + steps
	waittest.Within(b.t, 5*time.Minute, "calls are answered", func() bool {
		return b.steps.Load() >= point
	})
}
