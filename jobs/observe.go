package jobs

import (
	"context"
	"errors"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"drawbridge/internal/email"
	"drawbridge/internal/processes"
	"drawbridge/internal/webhook/bulk"
	"drawbridge/internal/webhook/delivery"
	"drawbridge/internal/webhook/subscription"
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

// Outcomes lists every outcome of a run.
func Outcomes() []Outcome {
	return []Outcome{OutcomeDone, OutcomePutOff, OutcomeCancelled, OutcomeError}
}

// Kinds are the kinds of all jobs.
func Kinds() []string {
	var kinds []string
	for _, args := range []river.JobArgs{
		delivery.Args{},
		bulk.Args{},
		subscription.BacklogArgs{},
		email.SendArgs{},
		HousekeepArgs{},
		RetainArgs{},
		TallyOutcomesArgs{},
		WatchHealthArgs{},
		ProbeEndpointsArgs{},
		ResumeMailArgs{},
		FreezeStatementsArgs{},
	} {
		kinds = append(kinds, args.Kind())
	}
	return kinds
}

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
	run := Run{
		Kind: job.Kind, Queue: job.Queue, Outcome: OutcomeError, Took: time.Since(began),
	}
	if err == nil {
		run.Outcome = OutcomeDone
	} else if _, putOff := errors.AsType[*river.JobSnoozeError](err); putOff {
		run.Outcome = OutcomePutOff
	} else if _, cancelled := errors.AsType[*river.JobCancelError](err); cancelled {
		run.Outcome = OutcomeCancelled
	}
	o.observe(run)
	return err
}

// voucher keeps the roster of the jobs that this process works.
type voucher struct {
	river.MiddlewareDefaults

	working *processes.Roster
}

// Work runs the job while it is on the roster.
func (v *voucher) Work(
	ctx context.Context, job *rivertype.JobRow, work func(context.Context) error,
) error {
	defer v.working.Work(job.ID)()
	return work(ctx)
}
