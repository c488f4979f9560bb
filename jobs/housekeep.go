package jobs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"
)

const (
	// purgeBatch bounds one deletion, so that it holds no lock for long.
	purgeBatch = 5000
	// sweepAge is how old an unreferenced upload must be: far older than any
	// request still under way.
	sweepAge = 24 * time.Hour
)

// housekeep creates partitions ahead of time and clears expired data. It does every
// chore, even if one of them fails.
func (d *Deps) housekeep(ctx context.Context) error {
	made, err := d.DB.MakePartitions(ctx)
	purged, purgeErr := 0, error(nil)
	for count := purgeBatch; count >= purgeBatch && purgeErr == nil; purged += count {
		count, purgeErr = d.Idempotency.Purge(ctx, purgeBatch)
	}
	if purgeErr != nil {
		purgeErr = fmt.Errorf("purging expired replies: %w", purgeErr)
	}
	forgetErr := d.Operators.Purge(ctx)
	swept, sweepErr := d.Documents.Sweep(ctx, d.DB.Now().Add(-sweepAge), d.Loans.IsReferenced)
	days, requestsErr := d.keepRequests(ctx)
	revived, backlogErr := d.Webhooks.Subscriptions.Backlogs.Revive(ctx)
	var faultsErr error
	if d.Faults != nil {
		faultsErr = d.Faults.Purge(ctx)
	}
	slog.Log(ctx, levelFor(days+made+purged+swept.Kept+swept.Removed+revived > 0), "housekeeping",
		"request_days_dropped", days, "backlogs_revived", revived,
		"partitions_made", made, "replies_purged", purged,
		"uploads_kept", swept.Kept, "uploads_removed", swept.Removed)
	return errors.Join(err, purgeErr, forgetErr, sweepErr, requestsErr, faultsErr, backlogErr)
}

// keepRequests creates the request log's partitions for the days ahead and drops those past
// their retention.
func (d *Deps) keepRequests(ctx context.Context) (int, error) {
	if _, err := d.Requests.MakePartitions(ctx); err != nil {
		return 0, err
	}
	settings, err := d.Retention.Settings(ctx)
	if err != nil {
		return 0, err
	}
	return d.Requests.Drop(ctx, settings.RequestCutoff(d.DB.Now()))
}
