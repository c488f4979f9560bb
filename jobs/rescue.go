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

// queueRescue is when the queue itself takes a job for lost: never. It goes by the
// time, and knows nothing of who lives.
const queueRescue = 100 * 365 * 24 * time.Hour

// Rescue hands jobs that nobody vouches for back to the queue until ctx ends. Every
// working process does, this one being self; they share the work.
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

// stuckAfter is when the job of a delivery is taken for lost whose process shows no
// life: well above what an attempt takes in the releases that did not.
func stuckAfter(webhookTimeout time.Duration) time.Duration {
	const usual, margin = 30 * time.Second, 35 * time.Second
	return max(webhookTimeout, usual) + margin
}

// InsertByClock makes a client that only inserts tell the time by db's clock. Left to itself it
// writes the machine's time into jobs, and no worker takes one before its time.
func InsertByClock(config *river.Config, db *postgres.DB) {
	config.Test.Time = insertClock{queueClock{db}}
}

// queueClock is a DB's clock as the queue reads it.
type queueClock struct{ db *postgres.DB }

// Now is the time.
func (c queueClock) Now() time.Time { return c.db.Now() }

// NowOrNil is always nil: statements are to take the time of the database.
func (queueClock) NowOrNil() *time.Time { return nil }

// insertClock is a DB's clock as what is inserted has it.
type insertClock struct{ queueClock }

// NowOrNil is the time.
func (c insertClock) NowOrNil() *time.Time { return new(c.Now().UTC()) }
