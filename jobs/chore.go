package jobs

import (
	"context"
	"errors"
	"time"

	"github.com/riverqueue/river"
)

// chore is the worker of a periodic job, which has nothing to be told.
type chore[A river.JobArgs] struct {
	river.WorkerDefaults[A]

	// timeout bounds a run; zero is the queue's own bound.
	timeout time.Duration
	work    func(context.Context) error
}

// Timeout bounds a run.
func (c *chore[A]) Timeout(*river.Job[A]) time.Duration { return c.timeout }

// Work does the chore once.
func (c *chore[A]) Work(ctx context.Context, _ *river.Job[A]) error { return c.work(ctx) }

// forAWhile runs what leaves the rest to its next run. That its time is up is no error, unless
// the job's is up too.
func forAWhile[T any](
	ctx context.Context, most time.Duration, run func(context.Context) (T, error),
) (T, error) {
	within, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	report, err := run(within)
	if ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
		return report, nil
	}
	return report, err
}
