package webhook_test

import (
	"context"
	"encoding/json"
	"net/http"
	"sync"
	"testing"
	"time"

	"drawbridge/internal/webhook"
)

// queued is a job as the queue has it.
type queued struct {
	ID        int64     `db:"id"`
	Args      []byte    `db:"args"`
	ClaimedAt time.Time `db:"attempted_at"`
}

// beginRuns counts a run of every job, as the queue does before it starts one.
func (h *house) beginRuns(t *testing.T) []queued {
	t.Helper()
	var jobs []queued
	if err := h.DB.SelectContext(t.Context(), &jobs, `
		UPDATE river_job
		   SET state = 'running', attempt = attempt + 1, attempted_at = now()
		RETURNING id, args, attempted_at`); err != nil {
		t.Fatal(err)
	}
	return jobs
}

// run makes the attempt of a job in a run of that number.
func (h *house) run(t *testing.T, job queued, number int) {
	t.Helper()
	var args webhook.DeliverArgs
	if err := json.Unmarshal(job.Args, &args); err != nil {
		t.Error(err)
		return
	}
	err := h.Deliver(context.WithoutCancel(t.Context()), args,
		webhook.Run{JobID: job.ID, Number: number, ClaimedAt: job.ClaimedAt})
	if err != nil {
		t.Error(err)
	}
}

// An attempt that is recorded has no job any more, alone or in company.
func TestRecordedAttemptEndsItsJob(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	statuses := []int{http.StatusOK, http.StatusInternalServerError}
	endpoint := newReceiver(t, func(w http.ResponseWriter, n int) { w.WriteHeader(statuses[n%2]) })
	h.subscribe(t, endpoint.URL, nil)
	const many = 30
	for range many {
		h.publish(t)
	}
	jobs := h.beginRuns(t)
	h.run(t, jobs[0], 1)
	if left := h.count(t, `SELECT count(*) FROM river_job`); left != many-1 {
		t.Errorf("%d jobs are left after the first of %d attempts", left, many)
	}
	var workers sync.WaitGroup
	for _, job := range jobs[1:] {
		workers.Go(func() { h.run(t, job, 1) })
	}
	workers.Wait()
	if left := h.count(t, `SELECT count(*) FROM river_job`); left != 0 {
		t.Errorf("%d jobs are left after all attempts", left)
	}
	if got := h.count(t, `SELECT count(*) FROM attempts`); got != many {
		t.Errorf("%d attempts are recorded, want %d", got, many)
	}
}

// A worker that was taken for dead leaves the job to the run that replaced its own.
func TestLateAttemptLeavesTheJobOfAnotherRun(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	arrived, release := make(chan struct{}), make(chan struct{})
	endpoint := newReceiver(t, func(w http.ResponseWriter, _ int) {
		close(arrived)
		<-release
		w.WriteHeader(http.StatusOK)
	})
	h.subscribe(t, endpoint.URL, nil)
	h.publish(t)
	late := h.beginRuns(t)[0]
	var frozen sync.WaitGroup
	frozen.Go(func() { h.run(t, late, 1) })
	<-arrived
	job := h.beginRuns(t)[0]
	close(release)
	frozen.Wait()
	if left := h.count(t, `SELECT count(*) FROM river_job WHERE state = 'running'`); left != 1 {
		t.Fatalf("%d jobs run, want the one of the second run", left)
	}
	h.run(t, job, 2)
	if got := attempts(h.newest(t)); got != "delivered after 1: 200" {
		t.Errorf("delivery %s", got)
	}
}

// Outcomes that come late replace the unknown ones also in the company of attempts
// that nobody has written yet.
func TestLateOutcomesAmongNewOnes(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	const many, late = 30, 4
	var arrived sync.WaitGroup
	arrived.Add(many)
	release := make(chan struct{})
	endpoint := newReceiver(t, func(w http.ResponseWriter, n int) {
		if n > 1 {
			arrived.Done()
			<-release
		}
		w.WriteHeader(http.StatusOK)
	})
	h.subscribe(t, endpoint.URL, nil)
	h.getKnown(t)
	for range many {
		h.publish(t)
	}
	jobs := h.beginRuns(t)
	var workers sync.WaitGroup
	for _, job := range jobs {
		workers.Go(func() { h.run(t, job, 1) })
	}
	arrived.Wait()
	for _, job := range jobs[:late] {
		if _, err := h.DB.ExecContext(t.Context(), `
			UPDATE river_job SET attempt = 2, attempted_at = NULL WHERE id = $1`, job.ID); err != nil {
			t.Fatal(err)
		}
		h.run(t, job, 2)
	}
	if got := h.count(t, `SELECT count(*) FROM attempts WHERE error_class = 'unknown'`); got != late {
		t.Fatalf("%d outcomes are unknown, want %d", got, late)
	}
	close(release)
	workers.Wait()
	for _, delivery := range h.list(t) {
		if got := attempts(h.detail(t, delivery.UID)); got != "delivered after 1: 200" {
			t.Errorf("delivery %s", got)
		}
	}
	if left := h.count(t, `SELECT count(*) FROM river_job`); left != 0 {
		t.Errorf("%d jobs are left", left)
	}
}

// begun lists when attempts began that are not recorded yet.
func (h *house) begun(t *testing.T) []time.Time {
	t.Helper()
	var times []time.Time
	err := h.DB.SelectContext(t.Context(), &times, `SELECT started_at FROM begun_attempts`)
	if err != nil {
		t.Fatal(err)
	}
	return times
}

// An attempt is noted while its request is on its way. One whose process died then
// is unknown, since it began, and not sent again, whatever became of its job.
func TestUnknownAttemptShowsWhenItBegan(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	arrived, release := make(chan struct{}), make(chan struct{})
	endpoint := newReceiver(t, func(http.ResponseWriter, int) {
		close(arrived)
		<-release
		panic(http.ErrAbortHandler)
	})
	h.subscribe(t, endpoint.URL, nil)
	h.publish(t)
	job := h.beginRuns(t)[0]
	var dying sync.WaitGroup
	dying.Go(func() { h.run(t, job, 1) })
	<-arrived
	noted := h.begun(t)
	if len(noted) != 1 {
		t.Fatalf("%d attempts are noted while one is on its way", len(noted))
	}
	h.clock.move(10 * time.Minute)
	if _, err := h.ForgetBegun(t.Context()); err != nil {
		t.Fatal(err)
	}
	heir := h.beginRuns(t)[0]
	h.run(t, heir, 1) // as a new job would
	got := h.newest(t)
	if attempts(got) != "retrying after 1: 0?" || !got.Attempts[0].StartedAt.Equal(noted[0]) {
		t.Errorf("delivery %s, begun at %s, want %s", attempts(got), got.Attempts[0].StartedAt, noted[0])
	}
	if left := h.begun(t); len(left) > 0 {
		t.Error("the note is left")
	}
	close(release)
	dying.Wait()
	if count := len(endpoint.requests()); count != 1 {
		t.Errorf("%d requests", count)
	}
}

// A run that lost its job before it began sends nothing, and neither does one that
// comes second.
func TestRunThatLostItsJobSendsNothing(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	endpoint := newReceiver(t, nil)
	h.subscribe(t, endpoint.URL, nil)
	h.publish(t)
	lost := h.beginRuns(t)[0]
	if _, err := h.DB.ExecContext(t.Context(), `UPDATE river_job SET attempt = 0`); err != nil {
		t.Fatal(err)
	}
	job := h.beginRuns(t)[0]
	h.run(t, lost, 1)
	if count := len(endpoint.requests()); count != 0 || len(h.begun(t)) > 0 {
		t.Errorf("%d requests of a run without a job", count)
	}
	h.run(t, job, 1)
	h.run(t, lost, 1)
	if got := attempts(h.newest(t)); got != "delivered after 1: 200" || len(endpoint.requests()) != 1 {
		t.Errorf("%d requests, delivery %s", len(endpoint.requests()), got)
	}
}

// A delivery that has two jobs by a mischance is sent once: while one of them is at
// it the other one goes, and one that was about to send looks again.
func TestTwoJobsOfOneAttemptSendOnce(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	arrived, release := make(chan struct{}), make(chan struct{})
	endpoint := newReceiver(t, func(w http.ResponseWriter, _ int) {
		close(arrived)
		<-release
		w.WriteHeader(http.StatusOK)
	})
	h.subscribe(t, endpoint.URL, nil)
	h.publish(t)
	_, err := h.DB.ExecContext(t.Context(), `
		INSERT INTO river_job (args, kind, max_attempts, queue, state)
		SELECT args, kind, max_attempts, queue, state FROM river_job`)
	if err != nil {
		t.Fatal(err)
	}
	jobs := h.beginRuns(t)
	var sending sync.WaitGroup
	sending.Go(func() { h.run(t, jobs[0], 1) })
	<-arrived
	h.run(t, jobs[1], 1)
	if got := h.newest(t); got.State != webhook.DeliveryPending || got.AttemptCount != 0 {
		t.Errorf("while the first job is at it: %s", attempts(got))
	}
	release <- struct{}{}
	sending.Wait()
	h.run(t, jobs[1], 1)
	if got := attempts(h.newest(t)); got != "delivered after 1: 200" || len(endpoint.requests()) != 1 {
		t.Errorf("%d requests, delivery %s", len(endpoint.requests()), got)
	}
}

// What is noted is forgotten once nothing can ask for it.
func TestForgetBegun(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.subscribe(t, newReceiver(t, nil).URL, nil)
	h.publish(t)
	_, err := h.DB.ExecContext(t.Context(), `
		INSERT INTO begun_attempts
		SELECT delivery_uid, created_at, 1, 7, now(), now() FROM deliveries
		 UNION ALL
		SELECT gen_random_uuid(), now(), 1, 7, now(), now()`)
	if err != nil {
		t.Fatal(err)
	}
	if count, err := h.ForgetBegun(t.Context()); err != nil || count != 1 {
		t.Errorf("%d notes were forgotten, want that of no delivery (%v)", count, err)
	}
	if _, err := h.DB.ExecContext(t.Context(), `
		UPDATE deliveries SET state = 'cancelled', next_attempt_at = NULL`); err != nil {
		t.Fatal(err)
	}
	if count, err := h.ForgetBegun(t.Context()); err != nil || count != 1 {
		t.Errorf("%d notes were forgotten, want that of the cancelled one (%v)", count, err)
	}
}
