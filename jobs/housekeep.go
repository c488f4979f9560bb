package jobs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/riverqueue/river"
)

const (
	housekeepEvery = time.Hour
	// purgeBatch bounds one deletion, so that it holds no lock for long.
	purgeBatch = 5000
	// sweepAge is how old an unreferenced upload must be: far older than any
	// request still under way.
	sweepAge = 24 * time.Hour
)

// HousekeepArgs asks for the hourly chores.
type HousekeepArgs struct{}

// Kind names the job in the queue.
func (HousekeepArgs) Kind() string { return "housekeep" }

// Housekeep makes partitions ahead of time and clears what has expired.
type Housekeep struct {
	river.WorkerDefaults[HousekeepArgs]
	Deps
}

// Timeout bounds the chores.
func (w *Housekeep) Timeout(*river.Job[HousekeepArgs]) time.Duration { return 5 * time.Minute }

// Work does every chore, also when one of them fails.
func (w *Housekeep) Work(ctx context.Context, _ *river.Job[HousekeepArgs]) error {
	made, err := w.DB.MakePartitions(ctx)
	purged, purgeErr := 0, error(nil)
	for count := purgeBatch; count >= purgeBatch && purgeErr == nil; purged += count {
		count, purgeErr = w.Idempotency.Purge(ctx, purgeBatch)
	}
	if purgeErr != nil {
		purgeErr = fmt.Errorf("purging expired replies: %w", purgeErr)
	}
	forgetErr := w.Operators.Purge(ctx)
	swept, sweepErr := w.Documents.Sweep(ctx, w.DB.Now().Add(-sweepAge), w.Loans.IsReferenced)
	formsErr := w.Operators.PurgeSubmissions(ctx)
	days, requestsErr := w.keepRequests(ctx)
	revived, backlogErr := w.Webhooks.Subscriptions.Backlogs.Revive(ctx)
	var faultsErr error
	if w.Faults != nil {
		settings, err := w.Retention.Settings(ctx)
		if faultsErr = err; err == nil {
			// Those of deliveries that are kept no longer.
			faultsErr = w.Faults.Purge(ctx, w.DB.Now().AddDate(0, -settings.Months, 0))
		}
	}
	slog.Log(ctx, worth(days+made+purged+swept.Kept+swept.Removed+revived > 0), "housekeeping",
		"request_days_dropped", days, "backlogs_revived", revived,
		"partitions_made", made, "replies_purged", purged,
		"uploads_kept", swept.Kept, "uploads_removed", swept.Removed)
	return errors.Join(err, purgeErr, forgetErr, sweepErr, requestsErr, formsErr, faultsErr,
		backlogErr)
}

// keepRequests makes the days ahead of the request log and drops those that are
// kept no longer.
func (w *Housekeep) keepRequests(ctx context.Context) (int, error) {
	if _, err := w.Requests.MakePartitions(ctx); err != nil {
		return 0, err
	}
	settings, err := w.Retention.Settings(ctx)
	if err != nil {
		return 0, err
	}
	return w.Requests.Drop(ctx, w.DB.Now().AddDate(0, 0, -settings.APIRequestDays))
}
