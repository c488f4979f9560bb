package jobs

import (
	"context"
	"log/slog"
	"time"

	"github.com/google/uuid"
	"github.com/riverqueue/river"

	"drawbridge/internal/postgres"
	"drawbridge/internal/processes"
	"drawbridge/internal/webhook/delivery"
)

// queueRescue is when the queue itself takes a job for lost: never. It goes by elapsed
// time only, not by which processes are alive.
const queueRescue = 100 * 365 * 24 * time.Hour

// Rescue hands back to the queue, until ctx ends, jobs that no live process vouches for.
// Every working process, identified by self, runs it; they share the work.
func Rescue(
	ctx context.Context, service *processes.Service, self uuid.UUID, webhookTimeout time.Duration,
) {
	watch := processes.Watch{
		DB: service.DB, Self: self, Working: &service.Working,
		Deliveries: delivery.Queue, DeliveryTime: stuckAfter(webhookTimeout),
	}
	look, sweep := time.NewTicker(processes.PollEvery), time.NewTicker(processes.SweepEvery)
	defer look.Stop()
	defer sweep.Stop()
	next := watch.Poll
	for {
		count, err := next(ctx)
		switch {
		case err != nil && ctx.Err() == nil:
			slog.ErrorContext(ctx, "rescuing jobs", "error", err)
		case count > 0:
			slog.InfoContext(ctx, "rescued jobs", "count", count)
		}
		select {
		case <-ctx.Done():
			return
		case <-look.C:
			next = watch.Poll
		case <-sweep.C:
			next = watch.Sweep
		}
	}
}

// stuckAfter is how long until the job of a delivery whose process shows no life is taken
// for lost: well above the duration of an attempt, for releases whose processes showed none.
func stuckAfter(webhookTimeout time.Duration) time.Duration {
	const usual, margin = 30 * time.Second, 35 * time.Second
	return max(webhookTimeout, usual) + margin
}

// InsertByClock makes a client that only inserts use db's clock. By default it writes the
// machine's time into jobs, and no worker takes a job before its time.
func InsertByClock(config *river.Config, db *postgres.DB) {
	config.Test.Time = insertClock{queueClock{db}}
}

// queueClock presents a DB's clock to the queue.
type queueClock struct{ db *postgres.DB }

// Now returns the time.
func (c queueClock) Now() time.Time { return c.db.Now() }

// NowOrNil is always nil, so that statements use the time of the database.
func (queueClock) NowOrNil() *time.Time { return nil }

// insertClock presents a DB's clock for inserted rows.
type insertClock struct{ queueClock }

// NowOrNil returns the time.
func (c insertClock) NowOrNil() *time.Time { return new(c.Now().UTC()) }
