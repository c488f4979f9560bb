//go:build chaos

package faults

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"drawbridge/cmd/e2e/e2etest"
	"drawbridge/internal/waittest"
)

// TestFaultStoppedWhileTheDatabaseIsAway stops a process that cannot write outcomes to the
// database: it tries until its grace period ends, and then exits.
func TestFaultStoppedWhileTheDatabaseIsAway(t *testing.T) {
	t.Parallel()
	const tasks, grace = 10, 30 * time.Second
	pg, r := newOwnPostgres(t), newRecordingReceiver(t, uint64(time.Now().UnixNano()))
	r.linger(0)
	w := e2etest.NewOn(t, pg.url())
	w.Env["DRAWBRIDGE_WEBHOOK_TIMEOUT"] = "1m"
	l := newLoad(w, r)
	s := w.Serve()
	l.use(s)
	l.getKnown(w.Open(t), s)
	release, before := r.hold(), r.deliveries()
	l.createTasks(tasks)
	waittest.Within(t, time.Minute, "all requests are under way", func() bool {
		return r.deliveries()-before == tasks
	})
	pg.stop(syscall.SIGINT)
	release()
	waittest.Within(t, time.Minute, "the outcomes are known and not written", func() bool {
		return strings.Count(s.Logged(), "trying on") >= tasks
	})
	asked := time.Now()
	s.Stop()
	if took := time.Since(asked); took < grace {
		t.Errorf("it left after %s", took)
	}
	pg.start()
	w.Serve("--roles", "worker")
	db := w.Open(t)
	waitUntilSettled(t, db, 2*time.Minute)
	found := audit(t, db, r, l.confirmed())
	if found.unknown != tasks {
		t.Errorf("%d outcomes went with the process: %+v", tasks, found)
	}
	t.Logf("%+v", found)
}
