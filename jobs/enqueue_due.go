package jobs

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"drawbridge/internal/email"
	"drawbridge/internal/webhook"
	"drawbridge/internal/webhook/delivery"
)

const (
	// dueEvery is how often due deliveries are enqueued, and so how late a retry may start.
	dueEvery = 250 * time.Millisecond
	// orphanEvery and orphanPatience bound how long a delivery or an e-mail whose job was
	// lost goes unnoticed.
	orphanEvery    = time.Minute
	orphanPatience = 3 * time.Minute
	// reclaimTimeout bounds each step of reclaiming, so that a step that waits for a lock
	// does not delay the next run of the others.
	reclaimTimeout = 30 * time.Second
)

// EnqueueDue enqueues deliveries as they fall due, until ctx ends. Every working process
// runs it; they share the work. Concurrently it reclaims, which may take longer than
// due deliveries can wait.
func EnqueueDue(ctx context.Context, webhooks *webhook.Services, mails *email.MailSender) {
	var background sync.WaitGroup
	defer background.Wait()
	background.Go(func() { reclaim(ctx, webhooks, mails) })
	due := time.NewTicker(dueEvery)
	defer due.Stop()
	poller := delivery.DuePoller{Deliveries: webhooks.Deliveries}
	for {
		select {
		case <-ctx.Done():
			return
		case <-due.C:
			logEnqueueError(ctx, errors.Join(webhooks.Deliveries.ReleaseIdle(ctx), poller.Enqueue(ctx)))
		}
	}
}

// reclaim periodically finds deliveries and e-mails that a process or the queue has
// abandoned, until ctx ends.
func reclaim(ctx context.Context, webhooks *webhook.Services, mails *email.MailSender) {
	steps := []func(context.Context) error{
		func(ctx context.Context) error {
			_, err := webhooks.Deliveries.MarkOrphans(ctx, orphanPatience)
			return err
		},
		uncounted(webhooks.Deliveries.AdoptBackpressured),
		uncounted(webhooks.Bulk.Revive),
		uncounted(webhooks.Deliveries.ForgetBegun),
		func(ctx context.Context) error {
			_, err := mails.RequeueOrphans(ctx, orphanPatience)
			return err
		},
	}
	next := time.NewTicker(orphanEvery)
	defer next.Stop()
	for {
		logEnqueueError(ctx, runAll(ctx, reclaimTimeout, steps))
		select {
		case <-ctx.Done():
			return
		case <-next.C:
		}
	}
}

// runAll runs every step, even if another one fails or exceeds limit.
func runAll(ctx context.Context, limit time.Duration, steps []func(context.Context) error) error {
	errs := make([]error, 0, len(steps))
	for _, step := range steps {
		within, cancel := context.WithTimeout(ctx, limit)
		errs = append(errs, step(within))
		cancel()
	}
	return errors.Join(errs...)
}

// logEnqueueError logs an error, unless the process is stopping.
func logEnqueueError(ctx context.Context, err error) {
	if err != nil && ctx.Err() == nil {
		slog.ErrorContext(ctx, "promoting deliveries", "error", err)
	}
}
