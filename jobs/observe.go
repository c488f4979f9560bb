package jobs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
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
	// OutcomePutOff is a run that asked to be run again later.
	OutcomePutOff Outcome = "put_off"
	// OutcomeCancelled is a run after which there is nothing left to do.
	OutcomeCancelled Outcome = "cancelled"
	// OutcomeError is an internal error; the job runs again.
	OutcomeError Outcome = "error"
)

// Outcomes lists every outcome of a run.
func Outcomes() []Outcome {
	return []Outcome{OutcomeDone, OutcomePutOff, OutcomeCancelled, OutcomeError}
}

// Kinds lists the kinds of all jobs.
func Kinds() []string {
	return append([]string{
		delivery.Args{}.Kind(), bulk.Args{}.Kind(), subscription.BacklogArgs{}.Kind(),
		email.SendArgs{}.Kind(),
	}, processes.Chores...)
}

// Run describes one run of a job.
type Run struct {
	Kind    string
	Outcome Outcome
	// Took is the duration of the run itself.
	Took time.Duration
}

// observer keeps the roster of the jobs that this process works, reports every run to a
// function, and logs the runs that fail.
type observer struct {
	river.MiddlewareDefaults

	working *processes.Roster // nil for none
	observe func(Run)         // nil for nobody
}

// Work runs the job and reports it. It turns a panic into an error: the library would log
// it without its trace, and it would not be counted.
func (o *observer) Work(
	ctx context.Context, job *rivertype.JobRow, work func(context.Context) error,
) (err error) {
	if o.working != nil {
		defer o.working.Work(job.ID, *job.AttemptedAt)()
	}
	began := time.Now()
	defer func() {
		if value := recover(); value != nil {
			err = &panicked{value: value, trace: string(debug.Stack())}
		}
		run := Run{Kind: job.Kind, Outcome: outcomeOf(ctx, err), Took: time.Since(began)}
		if run.Outcome == OutcomeError {
			logFailure(ctx, job, err)
		}
		if o.observe != nil {
			o.observe(run)
		}
	}()
	return work(ctx)
}

func outcomeOf(ctx context.Context, err error) Outcome {
	if err == nil {
		return OutcomeDone
	}
	if _, putOff := errors.AsType[*river.JobSnoozeError](err); putOff {
		return OutcomePutOff
	}
	if _, cancelled := errors.AsType[*river.JobCancelError](err); cancelled ||
		errors.Is(context.Cause(ctx), rivertype.ErrJobCancelledRemotely) {
		return OutcomeCancelled
	}
	return OutcomeError
}

type panicked struct {
	value any
	trace string
}

func (p *panicked) Error() string { return fmt.Sprintf("panic: %v", p.value) }

// logFailure logs why a run failed, because the library does so only at INFO.
func logFailure(ctx context.Context, job *rivertype.JobRow, err error) {
	attrs := []slog.Attr{
		slog.String("kind", job.Kind), slog.Int64("job_id", job.ID),
		slog.Int("attempt", job.Attempt), slog.Any("error", err),
	}
	if p, ok := errors.AsType[*panicked](err); ok {
		attrs = append(attrs, slog.String("trace", p.trace))
		slog.LogAttrs(ctx, slog.LevelError, "job panicked", attrs...)
		return
	}
	level := slog.LevelError
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		level = slog.LevelWarn // the process is stopping, and another one will run the job
	}
	slog.LogAttrs(ctx, level, "job failed", attrs...)
}
