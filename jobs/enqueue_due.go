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
	// dueEvery is how late a retry may start after it fell due.
	dueEvery = 250 * time.Millisecond
	// orphanEvery and orphanPatience bound how long a delivery or an e-mail whose job
	// the queue lost goes unnoticed.
	orphanEvery    = time.Minute
	orphanPatience = 3 * time.Minute
	// recollectLimit bounds each step of recollecting, so that one that waits for a lock keeps
	// none of the others from their next round.
	recollectLimit = 30 * time.Second
)

// EnqueueDue enqueues deliveries as they fall due, until ctx ends. Every working
// process does; they share the work. Beside that it recollects, which may take longer
// than what is due can wait.
func EnqueueDue(ctx context.Context, webhooks *webhook.Services, mails *email.MailSender) {
	var beside sync.WaitGroup
	defer beside.Wait()
	beside.Go(func() { recollect(ctx, webhooks, mails) })
	due := time.NewTicker(dueEvery)
	defer due.Stop()
	looks := delivery.DueLooks{Deliveries: webhooks.Deliveries}
	for {
		select {
		case <-ctx.Done():
			return
		case <-due.C:
			logPromoting(ctx, errors.Join(webhooks.Deliveries.ReleaseIdle(ctx), looks.Enqueue(ctx)))
		}
	}
}

// recollect finds deliveries and e-mails that a process, or the queue, left behind, again and
// again until ctx ends.
func recollect(ctx context.Context, webhooks *webhook.Services, mails *email.MailSender) {
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
		logPromoting(ctx, inTurn(ctx, recollectLimit, steps))
		select {
		case <-ctx.Done():
			return
		case <-next.C:
		}
	}
}

// inTurn takes every step, also when another one fails or is still at it after limit.
func inTurn(ctx context.Context, limit time.Duration, steps []func(context.Context) error) error {
	errs := make([]error, 0, len(steps))
	for _, step := range steps {
		within, cancel := context.WithTimeout(ctx, limit)
		errs = append(errs, step(within))
		cancel()
	}
	return errors.Join(errs...)
}

// logPromoting logs what went wrong, unless it is that the process stops.
func logPromoting(ctx context.Context, err error) {
	if err != nil && ctx.Err() == nil {
		slog.ErrorContext(ctx, "promoting deliveries", "error", err)
	}
}
