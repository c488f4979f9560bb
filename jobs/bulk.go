package jobs

import (
	"context"
	"time"

	"github.com/riverqueue/river"

	"drawbridge/internal/webhook"
	"drawbridge/internal/webhook/bulk"
	"drawbridge/internal/webhook/subscription"
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

// FollowBacklog lets a large backlog follow its subscription, a batch at a time. One that was
// interrupted begins again.
type FollowBacklog struct {
	river.WorkerDefaults[subscription.BacklogArgs]

	Webhooks *webhook.Services
}

// Timeout bounds a run. The next one goes on where it ended.
func (w *FollowBacklog) Timeout(*river.Job[subscription.BacklogArgs]) time.Duration {
	return 5 * time.Minute
}

// Work does all of it.
func (w *FollowBacklog) Work(ctx context.Context, job *river.Job[subscription.BacklogArgs]) error {
	backlogs := w.Webhooks.Subscriptions.Backlogs
	if job.Args.Rebook {
		return backlogs.RebookAll(ctx, job.Args.SubscriptionUID)
	}
	return backlogs.Follow(ctx, job.Args.SubscriptionUID)
}
