package jobs

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"drawbridge/internal/postgres"
	"drawbridge/internal/webhook"
	"drawbridge/internal/webhook/delivery"
)

// infrastructurePause is how long a delivery waits after a failure on our own side, not
// the partner's, kept it from being sent.
const infrastructurePause = time.Second

// DeliverWebhook makes one attempt of one delivery.
type DeliverWebhook struct {
	river.WorkerDefaults[delivery.Args]

	Webhooks *webhook.Services
	// Limit bounds a job: the request and the reads and writes before it.
	Limit time.Duration
	// DB provides the clock.
	DB *postgres.DB
}

// Timeout bounds the job.
func (w *DeliverWebhook) Timeout(*river.Job[delivery.Args]) time.Duration { return w.Limit }

// NextRetry runs a job again at once if its process died: detecting that has taken long
// enough.
func (w *DeliverWebhook) NextRetry(*river.Job[delivery.Args]) time.Time { return w.DB.Now() }

// Work makes the attempt. Recording it deletes the job, so that the queue has nothing
// left to do for it.
func (w *DeliverWebhook) Work(ctx context.Context, job *river.Job[delivery.Args]) error {
	err := w.Webhooks.Deliveries.Deliver(ctx, job.Args, delivery.Run{
		JobID: job.ID, Number: job.Attempt, ClaimedAt: *job.AttemptedAt, // set when it is taken
	})
	if errors.Is(err, delivery.ErrNotSent) {
		slog.WarnContext(ctx, "delivery put off",
			"delivery", job.Args.DeliveryUID, "attempt", job.Args.Number, "error", err)
		// Snoozing does not count as a run.
		return river.JobSnooze(infrastructurePause)
	}
	return err
}

// quickRetry retries failed jobs soon: internal failures are short, and the services
// schedule the retries that partners and borrowers see.
type quickRetry struct{ db *postgres.DB }

// NextRetry waits a second per run, at most half a minute.
func (r quickRetry) NextRetry(job *rivertype.JobRow) time.Time {
	return r.db.Now().Add(min(time.Duration(job.Attempt)*time.Second, 30*time.Second))
}
