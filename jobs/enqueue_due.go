package jobs

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"drawbridge/internal/email"
	"drawbridge/internal/webhook"
	"drawbridge/internal/webhook/delivery"
)

const (
	// dueEvery is how late a retry may start after it fell due.
	dueEvery = 250 * time.Millisecond
	// orphanEvery and orphanPatience bound how long a delivery or an e-mail whose job
	// the queue lost goes unnoticed.
	orphanEvery    = time.Minute
	orphanPatience = 3 * time.Minute
)

// EnqueueDue enqueues deliveries as they fall due, until ctx ends. Every working
// process does; they share the work.
func EnqueueDue(ctx context.Context, webhooks *webhook.Services, mails *email.MailSender) {
	due, orphans := time.NewTicker(dueEvery), time.NewTicker(orphanEvery)
	defer due.Stop()
	defer orphans.Stop()
	looks := delivery.DueLooks{Deliveries: webhooks.Deliveries}
	err := recollect(ctx, webhooks, mails)
	for {
		if err != nil && ctx.Err() == nil {
			slog.ErrorContext(ctx, "promoting deliveries", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-due.C:
			err = errors.Join(webhooks.Deliveries.ReleaseIdle(ctx), looks.Enqueue(ctx))
		case <-orphans.C:
			err = recollect(ctx, webhooks, mails)
		}
	}
}

// recollect finds deliveries and e-mails that a process, or the queue, left behind.
func recollect(
	ctx context.Context, webhooks *webhook.Services, mails *email.MailSender,
) error {
	_, orphanErr := webhooks.Deliveries.MarkOrphans(ctx, orphanPatience)
	_, backpressureErr := webhooks.Deliveries.AdoptBackpressured(ctx)
	_, bulkErr := webhooks.Bulk.Revive(ctx)
	_, begunErr := webhooks.Deliveries.ForgetBegun(ctx)
	_, mailErr := mails.RequeueOrphans(ctx, orphanPatience)
	return errors.Join(orphanErr, backpressureErr, bulkErr, begunErr, mailErr)
}
