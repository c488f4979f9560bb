package delivery_test

import (
	"context"
	"encoding/json"
	"net/http"
	"sync"
	"testing"
	"time"

	"drawbridge/internal/webhook/delivery"
	"drawbridge/internal/webhook/webhooktest"
)

// A recorded attempt has no job any more, whether recorded alone or with others.
func TestRecordedAttemptEndsItsJob(t *testing.T) {
	t.Parallel()
	h := webhooktest.New(t)
	statuses := []int{http.StatusOK, http.StatusInternalServerError}
	endpoint := webhooktest.NewReceiver(t, func(w http.ResponseWriter, n int) {
		w.WriteHeader(statuses[n%2])
	})
	h.Subscribe(t, endpoint.URL, nil)
	const many = 30
	for range many {
		h.Publish(t)
	}
	jobs := beginRuns(t, h)
	run(t, h, jobs[0], 1)
	if left := h.Count(t, `SELECT count(*) FROM river_job`); left != many-1 {
		t.Errorf("%d jobs are left after the first of %d attempts", left, many)
	}
	var workers sync.WaitGroup
	for _, job := range jobs[1:] {
		workers.Go(func() { run(t, h, job, 1) })
	}
	workers.Wait()
	if left := h.Count(t, `SELECT count(*) FROM river_job`); left != 0 {
		t.Errorf("%d jobs are left after all attempts", left)
	}
	if got := h.Count(t, `SELECT count(*) FROM attempts`); got != many {
		t.Errorf("%d attempts are recorded, want %d", got, many)
	}
}

// holding is an endpoint that signals when its only request has arrived, and holds it
// until released. Then it calls last and answers 200.
func holding(t *testing.T, last func()) (_ *webhooktest.Receiver, arrived, release chan struct{}) {
	t.Helper()
	arrived, release = make(chan struct{}), make(chan struct{})
	return webhooktest.NewReceiver(t, func(http.ResponseWriter, int) {
		close(arrived)
		<-release
		last()
	}), arrived, release
}

// A worker that was taken for dead leaves the job to the run that replaced its own.
func TestLateAttemptLeavesTheJobOfAnotherRun(t *testing.T) {
	t.Parallel()
	h := webhooktest.New(t)
	endpoint, arrived, release := holding(t, func() {})
	h.Subscribe(t, endpoint.URL, nil)
	h.Publish(t)
	late := beginRuns(t, h)[0]
	var frozen sync.WaitGroup
	frozen.Go(func() { run(t, h, late, 1) })
	<-arrived
	job := beginRuns(t, h)[0]
	close(release)
	frozen.Wait()
	if left := h.Count(t, `SELECT count(*) FROM river_job WHERE state = 'running'`); left != 1 {
		t.Fatalf("%d jobs run, want the one of the second run", left)
	}
	run(t, h, job, 2)
	if got := webhooktest.Attempts(h.Newest(t)); got != "delivered after 1: 200" {
		t.Errorf("delivery %s", got)
	}
}

// A server that was promoted without the last commits assigns the keys of jobs again. A
// worker that ends an attempt of a lost job leaves the job that has its key now.
func TestLateAttemptLeavesAnotherJobOfItsKey(t *testing.T) {
	t.Parallel()
	h := webhooktest.New(t)
	arrived, release := make(chan struct{}), make(chan struct{})
	endpoint := webhooktest.NewReceiver(t, func(_ http.ResponseWriter, n int) {
		if n == 1 {
			close(arrived)
			<-release
		}
	})
	h.Subscribe(t, endpoint.URL, nil)
	h.Publish(t)
	lost := beginRuns(t, h)[0]
	var late sync.WaitGroup
	late.Go(func() { run(t, h, lost, 1) })
	<-arrived
	for _, table := range []string{"river_job", "begun_attempts", "deliveries"} {
		h.Exec(t, `DELETE FROM `+table)
	}
	h.Exec(t, `SELECT setval('river_job_id_seq', $1, false)`, lost.ID)
	h.Publish(t)
	job := beginRuns(t, h)[0]
	if job.ID != lost.ID {
		t.Fatalf("the job has the key %d, want %d", job.ID, lost.ID)
	}
	close(release)
	late.Wait()
	if left := h.Count(t, `SELECT count(*) FROM river_job WHERE state = 'running'`); left != 1 {
		t.Fatalf("%d jobs run, want the other one of the key", left)
	}
	run(t, h, job, 1)
	if got := webhooktest.Attempts(h.Newest(t)); got != "delivered after 1: 200" {
		t.Errorf("delivery %s", got)
	}
	if left := h.Count(t, `SELECT count(*) FROM river_job`); left != 0 {
		t.Errorf("%d jobs are left", left)
	}
}

// Outcomes that come late replace the unknown ones even in one statement with attempts
// that are not recorded yet.
func TestLateOutcomesAmongNewOnes(t *testing.T) {
	t.Parallel()
	h := webhooktest.New(t)
	const many, late = 30, 4
	var arrived sync.WaitGroup
	arrived.Add(many)
	release := make(chan struct{})
	endpoint := webhooktest.NewReceiver(t, func(w http.ResponseWriter, n int) {
		if n > 1 {
			arrived.Done()
			<-release
		}
		w.WriteHeader(http.StatusOK)
	})
	h.Subscribe(t, endpoint.URL, nil)
	h.GetKnown(t)
	for range many {
		h.Publish(t)
	}
	jobs := beginRuns(t, h)
	var workers sync.WaitGroup
	for _, job := range jobs {
		workers.Go(func() { run(t, h, job, 1) })
	}
	arrived.Wait()
	for _, job := range jobs[:late] {
		var heir queued
		err := h.DB.GetContext(t.Context(), &heir, `
			UPDATE river_job
			   SET attempt = 2, attempted_at = clock_timestamp()
			 WHERE id = $1
			RETURNING id, args, attempted_at`, job.ID)
		if err != nil {
			t.Fatal(err)
		}
		run(t, h, heir, 2)
	}
	if got := h.Count(t, `SELECT count(*) FROM attempts WHERE error_class = 'unknown'`); got != late {
		t.Fatalf("%d outcomes are unknown, want %d", got, late)
	}
	close(release)
	workers.Wait()
	for _, found := range h.List(t) {
		if got := webhooktest.Attempts(h.Detail(t, found.UID)); got != "delivered after 1: 200" {
			t.Errorf("delivery %s", got)
		}
	}
	if left := h.Count(t, `SELECT count(*) FROM river_job`); left != 0 {
		t.Errorf("%d jobs are left", left)
	}
}

// An attempt is noted while its request is under way. If its process dies then, it is
// unknown from its begin, and not sent again, whatever became of its job.
func TestUnknownAttemptShowsWhenItBegan(t *testing.T) {
	t.Parallel()
	h := webhooktest.New(t)
	endpoint, arrived, release := holding(t, func() { panic(http.ErrAbortHandler) })
	h.Subscribe(t, endpoint.URL, nil)
	h.Publish(t)
	job := beginRuns(t, h)[0]
	var dying sync.WaitGroup
	dying.Go(func() { run(t, h, job, 1) })
	<-arrived
	noted := notedAt(t, h)
	if len(noted) != 1 {
		t.Fatalf("%d attempts are noted while one is on its way", len(noted))
	}
	h.Clock.Move(10 * time.Minute)
	if _, err := h.Deliveries.ForgetBegun(t.Context()); err != nil {
		t.Fatal(err)
	}
	heir := beginRuns(t, h)[0]
	run(t, h, heir, 1) // as a new job would
	got := h.Newest(t)
	if webhooktest.Attempts(got) != "retrying after 1: 0?" ||
		!got.Attempts[0].StartedAt.Equal(noted[0]) {
		t.Errorf("delivery %s, begun at %s, want %s", webhooktest.Attempts(got),
			got.Attempts[0].StartedAt, noted[0])
	}
	if left := notedAt(t, h); len(left) > 0 {
		t.Error("the note is left")
	}
	close(release)
	dying.Wait()
	if count := len(endpoint.Requests()); count != 1 {
		t.Errorf("%d requests", count)
	}
}

// The request of an attempt may have arrived although its delivery was cancelled
// meanwhile and its process died: the attempt is in the log, and counts, once.
func TestUnknownAttemptOfACancelledDelivery(t *testing.T) {
	t.Parallel()
	h := webhooktest.New(t)
	endpoint, arrived, release := holding(t, func() { panic(http.ErrAbortHandler) })
	made, _ := h.Subscribe(t, endpoint.URL, nil)
	h.Publish(t)
	h.Publish(t) // whose attempt is not begun
	runs := beginRuns(t, h)
	var dying sync.WaitGroup
	dying.Go(func() { run(t, h, runs[0], 1) })
	<-arrived
	begun := notedAt(t, h)
	h.Delete(t, made.UID)
	h.Clock.Move(10 * time.Minute)
	if count, err := h.Deliveries.ForgetBegun(t.Context()); err != nil || count != 0 {
		t.Errorf("%d notes were forgotten while there is a job (%v)", count, err)
	}
	for _, heir := range beginRuns(t, h) {
		run(t, h, heir, 2)
		run(t, h, heir, 2)
	}
	for _, found := range h.List(t) {
		got, want := h.Detail(t, found.UID), "cancelled after 0:"
		if len(got.Attempts) > 0 {
			want = "cancelled after 1: 0?"
			if !got.Attempts[0].StartedAt.Equal(begun[0]) {
				t.Errorf("the attempt began at %s, want %s", got.Attempts[0].StartedAt, begun[0])
			}
		}
		if webhooktest.Attempts(got) != want {
			t.Errorf("delivery %s, want %s", webhooktest.Attempts(got), want)
		}
	}
	if got := h.Count(t, `SELECT count(*) FROM attempts`); got != 1 {
		t.Errorf("%d attempts are recorded, want the one that began", got)
	}
	if left := notedAt(t, h); len(left) > 0 {
		t.Error("the note is left")
	}
	close(release)
	dying.Wait()
}

// A run that lost its job before it began sends nothing, and neither does one that comes
// second.
func TestRunThatLostItsJobSendsNothing(t *testing.T) {
	t.Parallel()
	h := webhooktest.New(t)
	endpoint := webhooktest.NewReceiver(t, nil)
	h.Subscribe(t, endpoint.URL, nil)
	h.Publish(t)
	lost := beginRuns(t, h)[0]
	h.Exec(t, `UPDATE river_job SET attempt = 0`)
	job := beginRuns(t, h)[0]
	run(t, h, lost, 1)
	if count := len(endpoint.Requests()); count != 0 || len(notedAt(t, h)) > 0 {
		t.Errorf("%d requests of a run without a job", count)
	}
	run(t, h, job, 1)
	run(t, h, lost, 1)
	if got := webhooktest.Attempts(h.Newest(t)); got != "delivered after 1: 200" ||
		len(endpoint.Requests()) != 1 {
		t.Errorf("%d requests, delivery %s", len(endpoint.Requests()), got)
	}
}

// A worker that was frozen while it waited for the endpoint, and wakes when another run
// has its job, leaves the job to that run.
func TestLateHoldLeavesTheJobOfAnotherRun(t *testing.T) {
	t.Parallel()
	h := webhooktest.New(t)
	arrived, release := make(chan struct{}, 10), make(chan struct{})
	endpoint := webhooktest.NewReceiver(t, func(w http.ResponseWriter, _ int) {
		arrived <- struct{}{}
		<-release
		w.WriteHeader(http.StatusOK)
	})
	h.Subscribe(t, endpoint.URL, nil)
	claim := func() (jobs []queued) {
		if err := h.DB.SelectContext(t.Context(), &jobs, `
			UPDATE river_job
			   SET state = 'running', attempt = attempt + 1, attempted_at = clock_timestamp()
			 WHERE state = 'available'
			RETURNING id, args, attempted_at`); err != nil {
			t.Fatal(err)
		}
		return jobs
	}
	h.Publish(t)
	h.Publish(t)
	var sending sync.WaitGroup
	for _, job := range claim() { // as many as an unknown endpoint gets
		sending.Go(func() { run(t, h, job, 1) })
		<-arrived
	}
	h.Publish(t)
	lost := claim()[0]
	h.Exec(t, `UPDATE river_job SET state = 'available', attempt = attempt - 1 WHERE id = $1`, lost.ID)
	next := claim()[0]
	run(t, h, lost, 1)
	if count := h.Count(t, `SELECT count(*) FROM deliveries WHERE held`); count != 0 {
		t.Errorf("%d deliveries are held that another run has in hand", count)
	}
	if count := h.Count(t, `SELECT count(*) FROM river_job WHERE id = $1`, lost.ID); count != 1 {
		t.Error("the job of another run is gone")
	}
	run(t, h, next, 1) // which holds the delivery back, as there is no slot
	if count := h.Count(t, `SELECT count(*) FROM deliveries WHERE held`); count != 1 {
		t.Errorf("%d deliveries are held, want 1", count)
	}
	close(release)
	sending.Wait()
}

// A delivery that has two jobs by mistake is sent once: while one of them is being
// worked, the other one ends, and one that was about to send checks again.
func TestTwoJobsOfOneAttemptSendOnce(t *testing.T) {
	t.Parallel()
	h := webhooktest.New(t)
	endpoint, arrived, release := holding(t, func() {})
	h.Subscribe(t, endpoint.URL, nil)
	h.Publish(t)
	h.Exec(t, `
		INSERT INTO river_job (args, kind, max_attempts, queue, state)
		SELECT args, kind, max_attempts, queue, state FROM river_job`)
	jobs := beginRuns(t, h)
	var sending sync.WaitGroup
	sending.Go(func() { run(t, h, jobs[0], 1) })
	<-arrived
	run(t, h, jobs[1], 1)
	if got := h.Newest(t); got.State != delivery.StatePending || got.AttemptCount != 0 {
		t.Errorf("while the first job is at it: %s", webhooktest.Attempts(got))
	}
	release <- struct{}{}
	sending.Wait()
	run(t, h, jobs[1], 1)
	if got := webhooktest.Attempts(h.Newest(t)); got != "delivered after 1: 200" ||
		len(endpoint.Requests()) != 1 {
		t.Errorf("%d requests, delivery %s", len(endpoint.Requests()), got)
	}
}

// Notes are deleted once nothing needs them any more.
func TestForgetBegun(t *testing.T) {
	t.Parallel()
	h := webhooktest.New(t)
	h.Subscribe(t, webhooktest.NewReceiver(t, nil).URL, nil)
	h.Publish(t)
	h.Exec(t, `
		INSERT INTO begun_attempts
		SELECT delivery_uid, created_at, 1, 7, now(), now() FROM deliveries
		 UNION ALL
		SELECT gen_random_uuid(), now(), 1, 7, now(), now()`)
	if count, err := h.Deliveries.ForgetBegun(t.Context()); err != nil || count != 1 {
		t.Errorf("%d notes were forgotten, want that of no delivery (%v)", count, err)
	}
	h.Exec(t, `
		UPDATE deliveries SET state = 'cancelled', next_attempt_at = NULL`)
	if count, err := h.Deliveries.ForgetBegun(t.Context()); err != nil || count != 1 {
		t.Errorf("%d notes were forgotten, want that of the cancelled one (%v)", count, err)
	}
}

// queued is a job as stored in the queue.
type queued struct {
	ID        int64     `db:"id"`
	Args      []byte    `db:"args"`
	ClaimedAt time.Time `db:"attempted_at"`
}

// beginRuns counts a run of every job, as the queue does before it starts one.
func beginRuns(t *testing.T, h *webhooktest.Harness) []queued {
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

// run makes the attempt of a job in the run with that number.
func run(t *testing.T, h *webhooktest.Harness, job queued, number int) {
	t.Helper()
	var args delivery.Args
	if err := json.Unmarshal(job.Args, &args); err != nil {
		t.Error(err)
		return
	}
	err := h.Deliveries.Deliver(context.WithoutCancel(t.Context()), args,
		delivery.Run{JobID: job.ID, Number: number, ClaimedAt: job.ClaimedAt})
	if err != nil {
		t.Error(err)
	}
}

// notedAt lists when the attempts began that are not recorded yet.
func notedAt(t *testing.T, h *webhooktest.Harness) []time.Time {
	t.Helper()
	var times []time.Time
	err := h.DB.SelectContext(t.Context(), &times, `SELECT started_at FROM begun_attempts`)
	if err != nil {
		t.Fatal(err)
	}
	return times
}
