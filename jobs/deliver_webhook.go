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

// infrastructurePause is how long a delivery waits when our own side, not the
// partner's, kept it from being sent.
const infrastructurePause = time.Second

// DeliverWebhook makes one attempt of one delivery.
type DeliverWebhook struct {
	river.WorkerDefaults[delivery.Args]

	Webhooks *webhook.Services
	// Limit bounds a job: the request and what has to be read and written before it.
	Limit time.Duration
	// DB has the clock.
	DB *postgres.DB
}

// Timeout bounds the job.
func (w *DeliverWebhook) Timeout(*river.Job[delivery.Args]) time.Duration { return w.Limit }

// NextRetry runs a job whose process died again at once: being noticed has
// taken long enough.
func (w *DeliverWebhook) NextRetry(*river.Job[delivery.Args]) time.Time { return w.DB.Now() }

// Work makes the attempt. Its record takes the job out of the queue, so that the
// queue finds nothing to do for it any more.
func (w *DeliverWebhook) Work(ctx context.Context, job *river.Job[delivery.Args]) error {
	err := w.Webhooks.Deliveries.Deliver(ctx, job.Args, delivery.Run{
		JobID: job.ID, Number: job.Attempt, ClaimedAt: *job.AttemptedAt, // set when it is taken
	})
	if errors.Is(err, delivery.ErrNotSent) {
		slog.WarnContext(ctx, "delivery put off",
			"delivery", job.Args.DeliveryUID, "attempt", job.Args.Number, "error", err)
		// Putting off does not count as a run.
		return river.JobSnooze(infrastructurePause)
	}
	return err
}

// quickRetry runs failed jobs again soon: our own faults are short, and the
// schedules that partners and borrowers see are the services' own.
type quickRetry struct{ db *postgres.DB }

// NextRetry waits a second per run, at most half a minute.
func (r quickRetry) NextRetry(job *rivertype.JobRow) time.Time {
	return r.db.Now().Add(min(time.Duration(job.Attempt)*time.Second, 30*time.Second))
}
