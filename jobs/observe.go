package jobs

import (
	"context"
	"errors"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"
)

// Outcome is how one run of a job ended.
type Outcome string

// The outcomes of a run.
const (
	OutcomeDone Outcome = "done"
	// OutcomePutOff is a run that asked to come again later.
	OutcomePutOff Outcome = "put_off"
	// OutcomeCancelled is a run after which there is nothing left to do.
	OutcomeCancelled Outcome = "cancelled"
	// OutcomeError is a fault of our own; the job runs again.
	OutcomeError Outcome = "error"
)

// Run tells how a run of a job went.
type Run struct {
	Kind    string
	Queue   string
	Outcome Outcome
	// Took is the time that the run itself needed.
	Took time.Duration
}

// observer tells a function of every run.
type observer struct {
	river.MiddlewareDefaults

	observe func(Run)
}

// Work runs the job and reports it.
func (o *observer) Work(
	ctx context.Context, job *rivertype.JobRow, work func(context.Context) error,
) error {
	began := time.Now()
	err := work(ctx)
	o.observe(Run{
		Kind: job.Kind, Queue: job.Queue, Outcome: outcomeOf(err), Took: time.Since(began),
	})
	return err
}

func outcomeOf(err error) Outcome {
	_, putOff := errors.AsType[*river.JobSnoozeError](err)
	_, cancelled := errors.AsType[*river.JobCancelError](err)
	switch {
	case err == nil:
		return OutcomeDone
	case putOff:
		return OutcomePutOff
	case cancelled:
		return OutcomeCancelled
	}
	return OutcomeError
}

// middleware returns what surrounds every run.
func (d Deps) middleware() []rivertype.Middleware {
	if d.Observe == nil {
		return nil
	}
	return []rivertype.Middleware{&observer{observe: d.Observe}}
}
