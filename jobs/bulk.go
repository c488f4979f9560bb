package jobs

import (
	"context"

	"github.com/riverqueue/river"

	"drawbridge/internal/webhook"
	"drawbridge/internal/webhook/bulk"
)

// BulkResend moves bulk re-sends on, a batch at a time.
type BulkResend struct {
	river.WorkerDefaults[bulk.Args]

	Webhooks *webhook.Services
}

// Work sends what the pace allows now and comes back when there may be more.
// Coming back does not count as a run.
func (w *BulkResend) Work(ctx context.Context, job *river.Job[bulk.Args]) error {
	next, err := w.Webhooks.Bulk.Advance(ctx, job.Args)
	if err != nil || next == 0 {
		return err
	}
	return river.JobSnooze(next)
}
