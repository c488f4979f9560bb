package faults

import (
	"math/rand/v2"
	"sync"
	"syscall"
	"testing"
	"time"

	"drawbridge/cmd/e2e/e2etest"
	"drawbridge/internal/postgres"
	"drawbridge/internal/postgres/pgtest"
	"drawbridge/internal/waittest"
)

// scaled is the small number, or the full one with -chaos.
func scaled(small, full int64) int64 {
	if *chaos {
		return full
	}
	return small
}

// committed returns the titles that have an event.
func committed(t *testing.T, db *postgres.DB, titles []string) []string {
	t.Helper()
	var found []string
	for _, title := range titles {
		if pgtest.Count(t, db, `SELECT count(*) FROM tasks WHERE title = $1`, title) > 0 {
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
	w := e2etest.New(t)
	l := newLoad(w, r)
	apis := []*e2etest.Server{w.Serve("--roles", "api"), w.Serve("--roles", "api")}
	workers := []*e2etest.Server{w.Serve("--roles", "worker"), w.Serve("--roles", "worker")}
	l.use(apis...)
	var loading sync.WaitGroup
	loading.Go(func() { l.run(events) })
	kills := 4 * rounds
	var killed []*e2etest.Server
	for i := range kills {
		l.reached(r, (i+1)*events*18/10/(kills+1)-chance.Int64N(20))
		if at := i / 2 % 2; i%2 == 0 {
			if unanswered, refused := l.troubles(apis[at]); len(unanswered)+refused > 0 {
				t.Errorf("a living API refused %d calls and left %v unanswered", refused, unanswered)
			}
			apis[at].Kill()
			killed = append(killed, apis[at])
			l.use(apis[1-at])
			apis[at] = w.Serve("--roles", "api")
			l.use(apis...)
		} else {
			workers[at].Kill()
			workers[at] = w.Serve("--roles", "worker")
		}
	}
	loading.Wait()
	for _, api := range apis {
		if unanswered, refused := l.troubles(api); len(unanswered)+refused > 0 {
			t.Errorf("a living API refused %d calls and left %v unanswered", refused, unanswered)
		}
	}
	// A caller has one request in flight, so a kill can cost each caller no more than that.
	lost := 0
	for _, api := range killed {
		unanswered, refused := l.troubles(api)
		if lost += len(unanswered); len(unanswered) > callers || refused > 0 {
			t.Errorf("a killed API refused %d calls and left %d of %d callers without an answer",
				refused, len(unanswered), callers)
		}
	}
	waitUntilSettled(t, w.Open(t), 5*time.Minute)
	found := audit(t, w.Open(t), r, l.confirmed())
	checkConsole(w, found)
	t.Logf("%d kills: %+v, calls without an answer %d, of which in flight on a killed API %d",
		kills, found, l.errors.Load(), lost)
}

// TestSeveralProcessesStop stops one of two processes of each role by SIGTERM under load:
// every request that it accepted is answered, and every attempt recorded.
func TestSeveralProcessesStop(t *testing.T) {
	t.Parallel()
	events := scaled(400, 4000)
	r := newRecordingReceiver(t, uint64(time.Now().UnixNano()))
	w := e2etest.New(t)
	l := newLoad(w, r)
	apis := []*e2etest.Server{w.Serve("--roles", "api"), w.Serve("--roles", "api")}
	worker := w.Serve("--roles", "worker")
	w.Serve("--roles", "worker")
	l.use(apis...)
	var loading sync.WaitGroup
	loading.Go(func() { l.run(events) })
	l.reached(r, events/2)
	for _, stopped := range []*e2etest.Server{apis[0], worker} {
		began := time.Now()
		if status := stopped.Stop(); status != 0 {
			t.Errorf("SIGTERM ended with %d", status)
		}
		t.Logf("ended %s after SIGTERM", time.Since(began).Round(time.Millisecond))
		l.use(apis[1])
	}
	loading.Wait()
	db := w.Open(t)
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
	checkConsole(w, found)
	t.Logf("%+v", found)
}

// TestFaultFrozenWorker freezes a worker with attempts in flight until it is considered dead
// and another worker takes over, and then wakes it.
func TestFaultFrozenWorker(t *testing.T) {
	t.Parallel()
	events := scaled(300, 2000)
	r := newRecordingReceiver(t, uint64(time.Now().UnixNano()))
	w := e2etest.New(t)
	l := newLoad(w, r)
	if !*chaos { // a minute by default
		w.Env["DATABASE_URL"] += "&idle_in_transaction_session_timeout=10s"
	}
	api, frozen := w.Serve("--roles", "api"), w.Serve("--roles", "worker")
	l.use(api)
	var loading sync.WaitGroup
	loading.Go(func() { l.run(events) })
	l.reached(r, events/2)
	release := r.hold()
	defer release()
	l.createTasks(10) // the earlier ones may all have been delivered by now
	waittest.Within(t, time.Minute, "a request is under way", r.holds)
	if err := frozen.Command.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	release()
	loading.Wait()
	db := w.Open(t)
	if !*chaos {
		pretendDowntime(t, db)
	}
	w.Serve("--roles", "worker")
	waitUntilSettled(t, db, 5*time.Minute)
	before := audit(t, db, r, l.confirmed())
	if before.unknown == 0 {
		t.Error("the frozen worker had no attempt under way: nothing was tested")
	}
	if err := frozen.Command.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if status := frozen.Stop(); status != 0 { // it exits once all attempts that it began are recorded
		t.Errorf("the woken worker ended with %d", status)
	}
	waitUntilSettled(t, db, 5*time.Minute)
	after := audit(t, db, r, l.confirmed())
	// In the small form its attempts have not timed out yet: requests that it was about to
	// send still go out, under a number of their own.
	if more := after.requests - before.requests; *chaos && more > 0 {
		t.Errorf("the woken worker sent %d requests", more)
	}
	checkConsole(w, after)
	t.Logf("before it woke: %+v, after: %+v", before, after)
}

// TestFaultDatabaseConnections resets the service's connections, makes Postgres end them,
// and shuts Postgres down, all under load.
func TestFaultDatabaseConnections(t *testing.T) {
	t.Parallel()
	events := scaled(400, 4000)
	r := newRecordingReceiver(t, uint64(time.Now().UnixNano()))
	pg := newOwnPostgres(t)
	w := e2etest.NewOn(t, pg.url())
	l := newLoad(w, r)
	s := w.Serve()
	l.use(s)
	var loading sync.WaitGroup
	loading.Go(func() { l.run(events) })
	faults := []func(){
		func() { t.Logf("reset %d connections", pg.proxy.cut()) },
		func() {
			var ended int
			db := w.Open(t)
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
		func() { t.Logf("reset %d connections", pg.proxy.cut()) },
	}
	for i, fault := range faults {
		l.reached(r, int64(i+1)*events*18/10/int64(len(faults)+1))
		fault()
	}
	loading.Wait()
	waitUntilSettled(t, w.Open(t), 5*time.Minute)
	found := audit(t, w.Open(t), r, l.confirmed())
	if found.unknown+found.late > 0 {
		t.Errorf("a living process lost outcomes: %+v", found)
	}
	checkConsole(w, found)
	t.Logf("%+v, calls without a confirmation %d", found, l.errors.Load())
}
