package main

import (
	"math/rand/v2"
	"sync"
	"syscall"
	"testing"
	"time"

	"drawbridge/internal/postgres"
)

// scaled is a number of the small form, or of the full one under -chaos.
func scaled(small, full int64) int64 {
	if *chaos {
		return full
	}
	return small
}

// settle lets everything end. In the small form the workers stop and start
// again as after an hour, so that what dead processes left is taken up at once.
func (l *load) settle(w *world, workers ...*server) {
	l.t.Helper()
	db := w.open(l.t)
	if !*chaos {
		for _, worker := range workers {
			if status := worker.stop(); status != 0 {
				logged := worker.logged()
				l.t.Errorf("a stopped worker ended with %d: ...%s", status, logged[max(len(logged)-3000, 0):])
			}
		}
		pretendDowntime(l.t, db)
		w.serve("--roles", "worker")
	}
	waitUntilSettled(l.t, db, 5*time.Minute)
}

// committed returns which of the titles have an event.
func committed(t *testing.T, db *postgres.DB, titles []string) []string {
	t.Helper()
	var found []string
	for _, title := range titles {
		var count int
		err := db.GetContext(t.Context(), &count, `SELECT count(*) FROM tasks WHERE title = $1`, title)
		if err != nil {
			t.Fatal(err)
		}
		if count > 0 {
			found = append(found, title)
		}
	}
	return found
}

// TestSeveralProcesses runs two API and two worker processes on one database
// and kills each of them under load.
func TestSeveralProcesses(t *testing.T) {
	t.Parallel()
	events, rounds := scaled(400, 4000), scaled(1, 4)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	chance := rand.New(rand.NewPCG(seed, 2))
	r := newRecordingReceiver(t, seed)
	w := newWorld(t)
	l := w.newLoad(r)
	apis := []*server{w.serve("--roles", "api"), w.serve("--roles", "api")}
	workers := []*server{w.serve("--roles", "worker"), w.serve("--roles", "worker")}
	l.use(apis...)
	var loading sync.WaitGroup
	loading.Go(func() { l.run(events) })
	kills := 4 * rounds
	var killed []*server
	for i := range kills {
		l.reached(r, (i+1)*events*18/10/(kills+1)-chance.Int64N(20))
		if at := i / 2 % 2; i%2 == 0 {
			if unanswered, refused := l.troubles(apis[at]); len(unanswered)+refused > 0 {
				t.Errorf("a living API refused %d calls and left %v unanswered", refused, unanswered)
			}
			apis[at].kill()
			killed = append(killed, apis[at])
			l.use(apis[1-at])
			apis[at] = w.serve("--roles", "api")
			l.use(apis...)
		} else {
			workers[at].kill()
			workers[at] = w.serve("--roles", "worker")
		}
	}
	loading.Wait()
	for _, api := range apis {
		if unanswered, refused := l.troubles(api); len(unanswered)+refused > 0 {
			t.Errorf("a living API refused %d calls and left %v unanswered", refused, unanswered)
		}
	}
	// A caller has one call in flight, so a kill can cost each no more than that.
	lost := 0
	for _, api := range killed {
		unanswered, refused := l.troubles(api)
		if lost += len(unanswered); len(unanswered) > callers || refused > 0 {
			t.Errorf("a killed API refused %d calls and left %d of %d callers without an answer",
				refused, len(unanswered), callers)
		}
	}
	l.settle(w, workers...)
	found := audit(t, w.open(t), r, l.confirmed())
	w.consoleTells(found)
	t.Logf("%d kills: %+v, calls without an answer %d, of which in flight on a killed API %d",
		kills, found, l.errors.Load(), lost)
}

// TestSeveralProcessesStop stops one of two processes of each role by SIGTERM
// under load: every call that it took is answered, and every attempt recorded.
func TestSeveralProcessesStop(t *testing.T) {
	t.Parallel()
	events := scaled(400, 4000)
	r := newRecordingReceiver(t, uint64(time.Now().UnixNano()))
	w := newWorld(t)
	l := w.newLoad(r)
	apis := []*server{w.serve("--roles", "api"), w.serve("--roles", "api")}
	worker := w.serve("--roles", "worker")
	w.serve("--roles", "worker")
	l.use(apis...)
	var loading sync.WaitGroup
	loading.Go(func() { l.run(events) })
	l.reached(r, events/2)
	for _, stopped := range []*server{apis[0], worker} {
		began := time.Now()
		if status := stopped.stop(); status != 0 {
			t.Errorf("SIGTERM ended with %d", status)
		}
		t.Logf("ended %s after SIGTERM", time.Since(began).Round(time.Millisecond))
		l.use(apis[1])
	}
	loading.Wait()
	db := w.open(t)
	for i, api := range apis {
		unanswered, refused := l.troubles(api)
		if refused > 0 || (i == 1 && len(unanswered) > 0) {
			t.Errorf("API %d refused %d calls and left %v unanswered", i, refused, unanswered)
		}
		if done := committed(t, db, unanswered); len(done) > 0 {
			t.Errorf("API %d did %v and did not answer", i, done)
		}
	}
	waitUntilSettled(t, db, 5*time.Minute)
	found := audit(t, db, r, l.confirmed())
	if found.unknown+found.late > 0 {
		t.Errorf("after an orderly stop outcomes were lost or late: %+v", found)
	}
	w.consoleTells(found)
	t.Logf("%+v", found)
}

// TestFaultFrozenWorker freezes a worker with attempts under way until the queue
// takes it for dead and another worker goes on, and then wakes it.
func TestFaultFrozenWorker(t *testing.T) {
	t.Parallel()
	events := scaled(300, 2000)
	r := newRecordingReceiver(t, uint64(time.Now().UnixNano()))
	w := newWorld(t)
	if !*chaos { // a minute by default
		w.vars["DATABASE_URL"] += "&idle_in_transaction_session_timeout=3s"
	}
	l := w.newLoad(r)
	api, frozen := w.serve("--roles", "api"), w.serve("--roles", "worker")
	l.use(api)
	var loading sync.WaitGroup
	loading.Go(func() { l.run(events) })
	l.reached(r, events/2)
	r.linger(300 * time.Millisecond)
	until(t, time.Minute, "a request is under way", r.busy)
	if err := frozen.command.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	loading.Wait()
	db := w.open(t)
	if !*chaos {
		pretendDowntime(t, db)
	}
	w.serve("--roles", "worker")
	waitUntilSettled(t, db, 5*time.Minute)
	before := audit(t, db, r, l.confirmed())
	if before.unknown == 0 {
		t.Error("the frozen worker had no attempt under way: nothing was tested")
	}
	if err := frozen.command.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if status := frozen.stop(); status != 0 { // it ends once all it had begun is recorded
		t.Errorf("the woken worker ended with %d", status)
	}
	waitUntilSettled(t, db, 5*time.Minute)
	after := audit(t, db, r, l.confirmed())
	// In the small form its attempts have not timed out yet: what it was about to
	// send still goes, under a number of its own.
	if more := after.requests - before.requests; *chaos && more > 0 {
		t.Errorf("the woken worker sent %d requests", more)
	}
	w.consoleTells(after)
	t.Logf("before it woke: %+v, after: %+v", before, after)
}

// TestFaultDatabaseConnections resets the service's connections, has Postgres
// end them, and stops Postgres in an orderly way, all under load.
func TestFaultDatabaseConnections(t *testing.T) {
	t.Parallel()
	events := scaled(400, 4000)
	r := newRecordingReceiver(t, uint64(time.Now().UnixNano()))
	pg := newOwnPostgres(t)
	w := newWorldOn(t, pg.url())
	l := w.newLoad(r)
	s := w.serve()
	l.use(s)
	var loading sync.WaitGroup
	loading.Go(func() { l.run(events) })
	faults := []func(){
		func() { t.Logf("reset %d connections", pg.gate.cut()) },
		func() {
			var ended int
			db := w.open(t)
			err := db.GetContext(t.Context(), &ended, `
				SELECT count(pg_terminate_backend(pid))
				  FROM pg_stat_activity
				 WHERE datname = current_database()
				   AND pid <> pg_backend_pid()`)
			if err != nil {
				t.Errorf("ending connections: %v", err)
			}
			t.Logf("ended %d connections", ended)
		},
		func() {
			pg.stop(syscall.SIGINT)
			pg.start()
		},
		func() { t.Logf("reset %d connections", pg.gate.cut()) },
	}
	for i, fault := range faults {
		l.reached(r, int64(i+1)*events*18/10/int64(len(faults)+1))
		fault()
	}
	loading.Wait()
	l.settle(w, s)
	found := audit(t, w.open(t), r, l.confirmed())
	if found.unknown+found.late > 0 {
		t.Errorf("a living process lost outcomes: %+v", found)
	}
	w.consoleTells(found)
	t.Logf("%+v, calls without a confirmation %d", found, l.errors.Load())
}
