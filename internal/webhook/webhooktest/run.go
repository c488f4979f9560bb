package webhooktest

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"drawbridge/internal/webhook/delivery"
)

// BeginRuns counts a run of every job, as the queue does before it starts one.
func (h *Harness) BeginRuns(t *testing.T) []Queued {
	t.Helper()
	var jobs []Queued
	if err := h.DB.SelectContext(t.Context(), &jobs, `
		UPDATE river_job
		   SET state = 'running', attempt = attempt + 1, attempted_at = now()
		RETURNING id, args, attempted_at`); err != nil {
		t.Fatal(err)
	}
	return jobs
}

// Run makes the attempt of a job in a run of that number.
func (h *Harness) Run(t *testing.T, job Queued, number int) {
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

// Begun lists when attempts began that are not recorded yet.
func (h *Harness) Begun(t *testing.T) []time.Time {
	t.Helper()
	var times []time.Time
	err := h.DB.SelectContext(t.Context(), &times, `SELECT started_at FROM begun_attempts`)
	if err != nil {
		t.Fatal(err)
	}
	return times
}
