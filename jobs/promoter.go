package jobs

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"drawbridge/internal/webhook"
)

const (
	// promoteEvery is how late a retry may start after it fell due.
	promoteEvery = 250 * time.Millisecond
	// orphanEvery and orphanPatience bound how long a delivery whose job the
	// queue lost goes unnoticed.
	orphanEvery    = time.Minute
	orphanPatience = 3 * time.Minute
)

// Promote enqueues deliveries as they fall due, until ctx ends. Every working
// process does; they share the work.
func Promote(ctx context.Context, webhooks *webhook.Services) {
	due, orphans := time.NewTicker(promoteEvery), time.NewTicker(orphanEvery)
	defer due.Stop()
	defer orphans.Stop()
	err := recollect(ctx, webhooks)
	for {
		if err != nil && ctx.Err() == nil {
			slog.ErrorContext(ctx, "promoting deliveries", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-due.C:
			_, err = webhooks.Deliveries.EnqueueDue(ctx)
			err = errors.Join(err, webhooks.Deliveries.ReleaseIdle(ctx))
		case <-orphans.C:
			err = recollect(ctx, webhooks)
		}
	}
}

// recollect finds deliveries that a process left behind.
func recollect(ctx context.Context, webhooks *webhook.Services) error {
	_, orphanErr := webhooks.Deliveries.MarkOrphans(ctx, orphanPatience)
	_, heldErr := webhooks.Deliveries.AdoptHeld(ctx)
	_, bulkErr := webhooks.Bulk.Revive(ctx)
	_, begunErr := webhooks.Deliveries.ForgetBegun(ctx)
	return errors.Join(orphanErr, heldErr, bulkErr, begunErr)
}
