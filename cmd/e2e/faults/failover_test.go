package faults

import (
	"io"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"drawbridge/cmd/e2e/e2etest"
	"drawbridge/internal/postgres"
	"drawbridge/internal/postgres/pgtest"
	"drawbridge/internal/waittest"
)

// takeover is how soon after the promotion requests must be confirmed again.
const takeover = 10 * time.Second

// probe requests /readyz and returns the status and the text.
func probe(s *e2etest.Server) (int, string) {
	answer, err := http.Get(s.URL + "/readyz")
	if err != nil {
		return 0, err.Error()
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return 0, err.Error()
	}
	return answer.StatusCode, string(text)
}

// underLoad is a service on a primary and a standby, with a load of tasks and draws while a test
// makes them fail over.
type underLoad struct {
	*pair
	*borrowers

	w     *e2etest.Harness
	s     *e2etest.Server
	r     *recordingReceiver
	tasks sync.WaitGroup
	loans *lives
	// gone is when the primary was lost, promoted when the promotion of the standby began.
	gone, promoted time.Time
}

// newUnderLoad returns once half of the tasks have been added.
func newUnderLoad(t *testing.T, pg *pair) *underLoad {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	u := &underLoad{pair: pg, r: newRecordingReceiver(t, seed), w: e2etest.NewOn(t, pg.url())}
	u.borrowers = newBorrowers(u.w, u.r)
	u.patient = true
	u.w.Subscribe(u.w.DemoData(), u.r.url,
		"--event", "disbursement.funding.status-changed", "--auth", "none")
	u.s = u.w.Serve()
	u.use(u.s)
	events := scaled(200, 5_000)
	u.tasks.Go(func() { u.run(events) })
	u.reached(u.r, events/2)
	return u
}

// draws starts requesting draws until the end, and returns once that has begun.
func (u *underLoad) draws() {
	u.w.T.Helper()
	u.loans = u.startLives()
	waittest.Within(u.w.T, time.Minute, "loans have moved on", func() bool {
		return u.steps.Load() >= 4*callers
	})
}

// stranded waits until the process says that it is not ready, and why.
func (u *underLoad) stranded() {
	t := u.w.T
	t.Helper()
	waittest.Within(t, time.Minute, "the process is not ready", func() bool {
		status, text := probe(u.s)
		return status == http.StatusServiceUnavailable && strings.Contains(text, "database")
	})
	if got := gauge(t, u.s, `drawbridge_not_ready{reason="database_unwritable"}`,
		`drawbridge_not_ready{reason="database_away"}`); got != 1 {
		t.Errorf("%v reasons in the metrics, want 1", got)
	}
}

// takesOver promotes the standby and waits until requests are confirmed by it.
func (u *underLoad) takesOver() {
	t := u.w.T
	t.Helper()
	u.promoted = time.Now()
	u.promote()
	before := u.accepted.Load() + u.steps.Load()
	waittest.Within(t, time.Minute, "a call is confirmed by the promoted server", func() bool {
		return u.accepted.Load()+u.steps.Load() > before
	})
	after := time.Since(u.promoted)
	t.Logf("the next call was confirmed %s after the promotion began, %s after the loss",
		after.Round(time.Millisecond), time.Since(u.gone).Round(time.Millisecond))
	if after > takeover {
		t.Errorf("that is later than %s", takeover)
	}
	waittest.Within(t, time.Minute, "the process is ready again", func() bool {
		status, _ := probe(u.s)
		return status == http.StatusOK
	})
}

// settled lets all tasks be added and delivered by the promoted server.
func (u *underLoad) settled() *postgres.DB {
	u.tasks.Wait()
	db := opened(u.w.T, u.standby)
	waitUntilSettled(u.w.T, db, 3*time.Minute)
	return db
}

// nothingLost compares everything that was confirmed with the promoted server.
func (u *underLoad) nothingLost() *postgres.DB {
	t := u.w.T
	t.Helper()
	u.tasks.Wait()
	loans := u.loans.end()
	db := u.settled()
	failed := u.failed.Load()
	if failed == nil {
		t.Fatal("no call failed: nothing was tested")
	}
	after := failed.Sub(u.promoted)
	t.Logf("the last call failed %s after the promotion began", after.Round(time.Millisecond))
	if after > takeover+postgres.DefaultTimeout { // an earlier request may take as long as its timeout
		t.Errorf("a call failed %s after the promotion began", after)
	}
	found := audit(t, db, u.r, u.confirmed())
	if found.unknown > 0 {
		t.Errorf("a living process lost outcomes: %+v", found)
	}
	checkLoans(t, db, loans)
	u.repeatAll()
	ended := pgtest.Count(t, db, `
		SELECT count(*)
		  FROM deliveries d JOIN applications a USING (application_uid)
		 WHERE a.external_reference LIKE 'draws-%'
		   AND d.status = 'FUNDING_REQUESTED'
		   AND (d.state = 'delivered' OR d.state = 'failed' AND d.attempt_count = 3)`)
	if ended != 3*loans {
		t.Errorf("%d deliveries of %d draws ended", ended, 3*loans)
	}
	u.w.Env["DATABASE_URL"] = u.standby
	checkConsole(u.w, found)
	t.Logf("%+v, %d draws, calls without a confirmation %d, of draws %d",
		found, 3*loans, u.errors.Load(), u.lost.Load())
	return db
}

// TestFaultFailOver kills the primary under load: all confirmed changes are on the promoted
// synchronous standby and their webhooks are sent from there, each draw was made once, and
// requests are confirmed again soon after.
func TestFaultFailOver(t *testing.T) {
	t.Parallel()
	pg := newPair(t)
	pg.synchronise()
	u := newUnderLoad(t, pg)
	u.draws()
	u.gone = time.Now()
	pg.stop(syscall.SIGQUIT)
	u.stranded()
	u.takesOver()
	u.nothingLost()
}

// TestFaultSwitchover demotes the primary under load, as the manual says: it is shut down and
// restarted as a standby, so that for a while neither server accepts writes, before the other is
// promoted. Nothing is lost, though the servers do not wait for each other at each commit, and
// the old primary follows the new one.
func TestFaultSwitchover(t *testing.T) {
	t.Parallel()
	pg := newPair(t)
	u := newUnderLoad(t, pg)
	u.draws()
	u.gone = time.Now()
	demoted := opened(t, pg.demote())
	u.stranded()
	u.takesOver()
	promoted := u.nothingLost()
	const attempts = `SELECT count(*) FROM attempts`
	waittest.Within(t, time.Minute, "the old primary has what the new one has", func() bool {
		return pgtest.Count(t, demoted, attempts) == pgtest.Count(t, promoted, attempts)
	})
}

// TestFaultReadOnlyPrimary makes the primary read-only without cutting a connection, and
// promotes the other: the process says that it is not ready and why, and finds the writable
// server by itself.
func TestFaultReadOnlyPrimary(t *testing.T) {
	t.Parallel()
	pg := newPair(t)
	pg.synchronise()
	u := newUnderLoad(t, pg)
	u.draws()
	u.gone = time.Now()
	query(t, pg.server.URL(), `ALTER SYSTEM SET default_transaction_read_only = on`)
	query(t, pg.server.URL(), `SELECT pg_reload_conf()`)
	u.stranded()
	u.takesOver()
	u.nothingLost()
}
