package webhook_test

import (
	"context"
	"encoding/json"
	"net/http"
	"sync"
	"testing"

	"drawbridge/internal/webhook"
)

// queued is a job as the queue has it.
type queued struct {
	ID   int64  `db:"id"`
	Args []byte `db:"args"`
}

// beginRuns counts a run of every job, as the queue does before it starts one.
func (h *house) beginRuns(t *testing.T) []queued {
	t.Helper()
	var jobs []queued
	if err := h.DB.SelectContext(t.Context(), &jobs, `
		UPDATE river_job
		   SET state = 'running', attempt = attempt + 1, attempted_at = now()
		RETURNING id, args`); err != nil {
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
		webhook.Run{JobID: job.ID, Number: number})
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
	h.subscribe(t, newReceiver(t, nil).URL, nil)
	h.publish(t)
	h.beginRuns(t)
	job := h.beginRuns(t)[0]
	h.run(t, job, 1)
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
