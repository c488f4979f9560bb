//go:build chaos

package main

import (
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestFaultStoppedWhileTheDatabaseIsAway stops a process that knows outcomes which the
// database does not take: it tries until its grace ends, and then leaves.
func TestFaultStoppedWhileTheDatabaseIsAway(t *testing.T) {
	t.Parallel()
	const tasks, grace = 10, 30 * time.Second
	pg, r := newOwnPostgres(t), newRecordingReceiver(t, uint64(time.Now().UnixNano()))
	r.linger(0)
	w := newWorldOn(t, pg.url())
	w.vars["DRAWBRIDGE_WEBHOOK_TIMEOUT"] = "1m"
	l := w.newLoad(r)
	s := w.serve()
	l.use(s)
	l.getKnown(w.open(t), s)
	release, before := r.hold(), r.deliveries()
	l.createTasks(tasks)
	until(t, time.Minute, "all requests are under way", func() bool {
		return r.deliveries()-before == tasks
	})
	pg.stop(syscall.SIGINT)
	release()
	until(t, time.Minute, "the outcomes are known and not written", func() bool {
		return strings.Count(s.logged(), "trying on") >= tasks
	})
	asked := time.Now()
	s.stop()
	if took := time.Since(asked); took < grace {
		t.Errorf("it left after %s", took)
	}
	pg.start()
	w.serve("--roles", "worker")
	db := w.open(t)
	waitUntilSettled(t, db, 2*time.Minute)
	found := audit(t, db, r, l.confirmed())
	if found.unknown != tasks {
		t.Errorf("%d outcomes went with the process: %+v", tasks, found)
	}
	t.Logf("%+v", found)
}
