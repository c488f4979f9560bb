package faults

import (
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"drawbridge/cmd/e2e/e2etest"
	"drawbridge/internal/email/emailtest"
	"drawbridge/internal/postgres/pgtest"
	"drawbridge/internal/processes"
	"drawbridge/internal/waittest"
)

// TestFaultOutcomesWhileTheDatabaseIsAway takes the database away from a process with
// requests and e-mails in flight, and gives it back when the process knows their outcomes:
// no outcome is lost, and nothing is sent again.
func TestFaultOutcomesWhileTheDatabaseIsAway(t *testing.T) {
	t.Parallel()
	const tasks, underWay = 20, 10 // as many e-mails as a process sends at a time
	var mails struct {
		release atomic.Pointer[chan struct{}]
		came    atomic.Int32
	}
	server := emailtest.NewServer(t, emailtest.Options{Data: func(emailtest.Message) error {
		if release := mails.release.Load(); release != nil {
			mails.came.Add(1)
			<-*release
		}
		return nil
	}})
	pg, r := newOwnPostgres(t), newRecordingReceiver(t, uint64(time.Now().UnixNano()))
	r.linger(0)
	w := e2etest.NewOn(t, pg.url())
	w.Env["DRAWBRIDGE_SMTP_URL"] = server.URL()
	w.Env["DRAWBRIDGE_WEBHOOK_TIMEOUT"] = "1m"
	l := newLoad(w, r)
	s := w.Serve()
	l.use(s)
	l.getKnown(w.Open(t), s)
	e2etest.WaitForMails(t, w.Open(t)) // these e-mails, and the demo's own
	for _, fault := range outages(t, pg, w) {
		release, released := r.hold(), make(chan struct{})
		mails.release.Store(&released)
		mails.came.Store(0)
		before, logged := r.deliveries(), strings.Count(s.Logged(), "trying on")
		l.createTasks(tasks)
		waittest.Within(t, time.Minute, "all requests and some mails are under way", func() bool {
			return r.deliveries()-before == tasks && mails.came.Load() == underWay
		})
		back := fault.begin()
		release()
		mails.release.Store(nil)
		close(released)
		waittest.Within(t, time.Minute, "the outcomes are known and not written", func() bool {
			return strings.Count(s.Logged(), "trying on")-logged >= tasks+underWay
		})
		back()
		db := w.Open(t)
		waitUntilSettled(t, db, time.Minute)
		e2etest.WaitForMails(t, db)
		found := audit(t, db, r, l.confirmed())
		if found.unknown+found.late > 0 || found.requests != found.events {
			t.Errorf("%s: outcomes were lost: %+v", fault.name, found)
		}
		if sent, failed := checkMails(t, db, server); failed > 0 || sent < tasks {
			t.Errorf("%s: %d mails were sent and %d failed", fault.name, sent, failed)
		}
	}
}

// outage takes the database away until the function returned by begin is called.
type outage struct {
	name  string
	begin func() (end func())
}

// outages are a stopped database and, with -chaos, locked tables.
func outages(t *testing.T, pg *ownPostgres, w *e2etest.Harness) []outage {
	t.Helper()
	all := []outage{{"stopped", func() func() {
		pg.stop(syscall.SIGINT)
		return pg.start
	}}}
	if *chaos {
		all = append(all, outage{"locked", func() func() {
			tx, err := w.Open(t).Beginx()
			if err != nil {
				t.Fatal(err)
			}
			_, err = tx.ExecContext(t.Context(), `LOCK TABLE attempts, email_attempts`)
			if err != nil {
				t.Fatal(err)
			}
			return func() { _ = tx.Rollback() }
		}})
	}
	return all
}

// TestFaultKilledBeforeItBegan kills a worker that has taken far more deliveries than it has
// sent: only those that it began count as attempts, from the time when they began.
func TestFaultKilledBeforeItBegan(t *testing.T) {
	t.Parallel()
	const taken = 100
	events := int64(200)
	if *chaos { // more than one worker takes, so the next one has deliveries to send at once
		events = 1500
	}
	r := newRecordingReceiver(t, uint64(time.Now().UnixNano()))
	release := r.hold()
	w := e2etest.New(t)
	l := newLoad(w, r)
	api := w.Serve("--roles", "api")
	l.use(api)
	l.run(events)
	if status := api.Stop(); status != 0 {
		t.Fatalf("the API ended with %d", status)
	}
	db := w.Open(t)
	victim := w.Serve("--roles", "worker")
	const running = `SELECT count(*) FROM river_job WHERE state = 'running' AND queue = 'webhook'`
	const begunOnes = `SELECT count(*) FROM begun_attempts`
	stopper := w.Open(t)
	var tx *sqlx.Tx
	waittest.Within(t, time.Minute, "much is taken and little sent", func() bool {
		if pgtest.Count(t, db, running) < taken {
			return false
		}
		// From here on it begins as many as it can, and cannot give the others back.
		var err error
		if tx, err = stopper.Beginx(); err == nil {
			_, err = tx.Exec(`LOCK TABLE river_job IN SHARE MODE`)
		}
		if err != nil {
			t.Fatal(err)
		}
		if pgtest.Count(t, db, running) >= taken {
			return true
		}
		if err := tx.Rollback(); err != nil {
			t.Fatal(err)
		}
		return false
	})
	waittest.Within(t, time.Minute, "a request is made", r.holds)
	victim.Kill()
	killed := time.Now()
	w.Execute(db, `
		SELECT pg_terminate_backend(pid)
		  FROM pg_stat_activity
		 WHERE datname = current_database()
		   AND wait_event_type = 'Lock'`)
	if err := stopper.Close(); err != nil {
		t.Fatal(err)
	}
	waittest.Within(t, time.Minute, "what it asked the database for is done", func() bool {
		return pgtest.Count(t, db, `
			SELECT count(*)
			  FROM pg_stat_activity
			 WHERE datname = current_database()
			   AND pid <> pg_backend_pid()`) == 0
	})
	dead := pgtest.Value[string](t, db, `
		SELECT DISTINCT attempted_by[array_upper(attempted_by, 1)]
		  FROM river_job
		 WHERE state = 'running' AND queue = 'webhook'`)
	begun := pgtest.Count(t, db, begunOnes)
	if left := pgtest.Count(t, db, running); begun == 0 || begun >= left {
		t.Fatalf("of %d that were taken %d were begun: nothing is tested", left, begun)
	}
	release()
	heir, before := time.Now(), r.deliveries()
	w.Serve("--roles", "worker")
	waittest.Until(t, "the next worker sends", func() bool { return r.deliveries() > before })
	sent := time.Since(heir)
	// The server has freed the dead process's lock, so there is no wait for a minute of heartbeats.
	waittest.Within(t, time.Minute, "the next worker takes over what the dead one had", func() bool {
		return pgtest.Count(t, db, `
			SELECT count(*)
			  FROM river_job
			 WHERE attempted_by[array_upper(attempted_by, 1)] = $1
			   AND state = 'running'`, dead) == 0
	})
	adopted, bound := time.Since(heir).Round(time.Millisecond), processes.Lost
	if *chaos { // nothing else runs
		bound = 10 * time.Second
		if sent > time.Second {
			t.Errorf("the next worker sent only %s after its start", sent)
		}
	}
	if adopted > bound {
		t.Errorf("what a dead process had taken was taken over %s after the next one started, "+
			"more than %s", adopted, bound)
	}
	waitUntilSettled(t, db, 2*time.Minute)
	found := audit(t, db, r, l.confirmed())
	if found.unknown == 0 || found.unknown > begun {
		t.Errorf("%d attempts were begun and %d are unknown", begun, found.unknown)
	}
	late := pgtest.Count(t, db, `
		SELECT count(*) FROM attempts WHERE error_class = 'unknown' AND started_at > $1`, killed)
	if late > 0 {
		t.Errorf("%d unknown attempts show when they were found", late)
	}
	if left := pgtest.Count(t, db, begunOnes); left > 0 {
		t.Errorf("%d notes are left", left)
	}
	t.Logf("%d begun; %+v, sent %s and taken over %s after the next start, settled %s after the kill",
		begun, found, sent.Round(time.Millisecond), adopted, time.Since(killed).Round(time.Second))
}

// TestFaultDatabaseClockJumps makes the clock of the database jump two minutes ahead while
// requests are in flight: each job stays with the process that makes its request.
func TestFaultDatabaseClockJumps(t *testing.T) {
	t.Parallel()
	const tasks, looks = 20, 8 * time.Second // each worker scans for lost jobs meanwhile
	r := newRecordingReceiver(t, uint64(time.Now().UnixNano()))
	r.linger(0)
	w := e2etest.New(t)
	w.Env["DRAWBRIDGE_WEBHOOK_TIMEOUT"] = "1m"
	l, db := newLoad(w, r), w.Open(t)
	l.use(w.Serve("--roles", "api"))
	l.getKnown(db, w.Serve("--roles", "worker"), w.Serve("--roles", "worker"))
	release, before := r.hold(), r.deliveries()
	ended := pgtest.Count(t, db, `SELECT count(*) FROM attempts`)
	l.createTasks(tasks)
	waittest.Within(t, time.Minute, "all requests are under way", func() bool {
		return r.deliveries()-before == tasks
	})
	for _, statement := range []string{ // make all this two minutes older
		`UPDATE river_job SET attempted_at = attempted_at - interval '2 minutes' WHERE state = 'running'`,
		`UPDATE processes SET last_beat_at = last_beat_at - interval '2 minutes'`,
	} {
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	over := time.After(looks)
	for watching := true; watching; {
		select {
		case <-over:
			watching = false
		case <-time.After(100 * time.Millisecond):
			if gone := pgtest.Count(t, db, `SELECT count(*) FROM attempts`) - ended; gone > 0 {
				t.Fatalf("%d attempts ended while their requests are answered", gone)
			}
		}
	}
	release()
	waitUntilSettled(t, db, time.Minute)
	found := audit(t, db, r, l.confirmed())
	if found.unknown+found.late > 0 || found.requests != found.events {
		t.Errorf("living attempts were handed to another worker: %+v", found)
	}
}
