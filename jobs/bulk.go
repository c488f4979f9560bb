package jobs

import (
	"context"
	"time"

	"github.com/riverqueue/river"

	"drawbridge/internal/webhook"
	"drawbridge/internal/webhook/bulk"
	"drawbridge/internal/webhook/subscription"
)

// BulkResend advances bulk re-sends, a batch at a time.
type BulkResend struct {
	river.WorkerDefaults[bulk.Args]

	Webhooks *webhook.Services
}

// Work sends what the pace allows now and snoozes until there may be more. Snoozing does
// not count as a run.
func (w *BulkResend) Work(ctx context.Context, job *river.Job[bulk.Args]) error {
	next, err := w.Webhooks.Bulk.Advance(ctx, job.Args)
	if err != nil || next == 0 {
		return err
	}
	return river.JobSnooze(next)
}

// FollowBacklog adjusts a large backlog to its subscription, a batch at a time. After an
// interruption it begins again.
type FollowBacklog struct {
	river.WorkerDefaults[subscription.BacklogArgs]

	Webhooks *webhook.Services
}

// Timeout bounds a run. The next run continues where it ended.
func (w *FollowBacklog) Timeout(*river.Job[subscription.BacklogArgs]) time.Duration {
	return 5 * time.Minute
}

// Work adjusts all of the backlog.
func (w *FollowBacklog) Work(ctx context.Context, job *river.Job[subscription.BacklogArgs]) error {
	backlogs := w.Webhooks.Subscriptions.Backlogs
	if job.Args.Rebook {
		return backlogs.RebookAll(ctx, job.Args.SubscriptionUID)
	}
	return backlogs.Follow(ctx, job.Args.SubscriptionUID)
}
