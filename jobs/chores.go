package jobs

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"drawbridge/internal/postgres"
)

// The intervals of the chores. Waiting e-mails are checked every resumeEvery, and the
// clock for a step back every clockEvery.
const (
	housekeepEvery = time.Hour
	retainEvery    = time.Hour
	statementEvery = 15 * time.Minute
	tallyEvery     = 10 * time.Second
	watchEvery     = time.Minute
	probeEvery     = time.Minute
	resumeEvery    = 5 * time.Second
	clockEvery     = time.Second
)

// How long a run may go on; the rest is left to the next run.
const (
	housekeepFor = 5 * time.Minute
	retainFor    = 20 * time.Minute
	statementFor = 10 * time.Minute
	// probeFor leaves time for every probe of a batch to reach its own deadline.
	probeFor = 3 * time.Minute
	// lastBatch is the additional time of long chores, in which their last batch can end.
	lastBatch = time.Minute
)

// queueHealth is separate from the chores, so that a long chore delays no alert.
const queueHealth = "health"

type (
	// HousekeepArgs is the job for the hourly chores.
	HousekeepArgs struct{}
	// RetainArgs is the job that removes data past its retention.
	RetainArgs struct{}
	// FreezeStatementsArgs is the job that freezes the statements of past days.
	FreezeStatementsArgs struct{}
	// TallyOutcomesArgs is the job that sums up the outcomes of attempts.
	TallyOutcomesArgs struct{}
	// WatchHealthArgs is the job that checks for what fails or is missing; it changes the
	// states of subscriptions and raises alerts.
	WatchHealthArgs struct{}
	// ProbeEndpointsArgs is the job that makes the probes that are due.
	ProbeEndpointsArgs struct{}
	// ResumeMailArgs is the job that queues the e-mails that need not wait any more.
	ResumeMailArgs struct{}
)

// Kind names the job in the queue.
func (HousekeepArgs) Kind() string { return "housekeep" }

// Kind names the job in the queue.
func (RetainArgs) Kind() string { return "retain" }

// Kind names the job in the queue.
func (FreezeStatementsArgs) Kind() string { return "freeze_statements" }

// Kind names the job in the queue.
func (TallyOutcomesArgs) Kind() string { return "tally_outcomes" }

// Kind names the job in the queue.
func (WatchHealthArgs) Kind() string { return "watch_health" }

// Kind names the job in the queue.
func (ProbeEndpointsArgs) Kind() string { return "probe_endpoints" }

// Kind names the job in the queue.
func (ResumeMailArgs) Kind() string { return "resume_mail" }

// chore is the worker of a periodic job without arguments.
type chore[A river.JobArgs] struct {
	river.WorkerDefaults[A]

	// timeout bounds a run; zero means the queue's own bound.
	timeout time.Duration
	work    func(context.Context) error
}

// Timeout bounds a run.
func (c *chore[A]) Timeout(*river.Job[A]) time.Duration { return c.timeout }

// Work does the chore once.
func (c *chore[A]) Work(ctx context.Context, _ *river.Job[A]) error { return c.work(ctx) }

// addChores adds the periodic jobs. A run in the health queue is not retried if it fails:
// the next one begins where it began.
func addChores(config *river.Config, deps *Deps) {
	var chores river.InsertOpts
	health := river.InsertOpts{Queue: queueHealth, MaxAttempts: 1}
	add(config, housekeepEvery, chores, &chore[HousekeepArgs]{
		timeout: housekeepFor, work: deps.housekeep,
	})
	add(config, retainEvery, chores, &chore[RetainArgs]{
		timeout: retainFor + lastBatch, work: deps.retain,
	})
	add(config, statementEvery, chores, &chore[FreezeStatementsArgs]{
		timeout: statementFor + lastBatch, work: deps.freezeStatements,
	})
	// All pending outcomes are summed up, even after a long interruption.
	add(config, tallyEvery, health, &chore[TallyOutcomesArgs]{work: uncounted(deps.Alerts.Tally)})
	add(config, watchEvery, health, &chore[WatchHealthArgs]{work: deps.Alerts.Watch})
	add(config, probeEvery, health, &chore[ProbeEndpointsArgs]{
		timeout: probeFor, work: deps.probeEndpoints,
	})
	add(config, resumeEvery, health, &chore[ResumeMailArgs]{work: deps.resumeMail})
}

func add[A river.JobArgs](
	config *river.Config, every time.Duration, opts river.InsertOpts, worker *chore[A],
) {
	river.AddWorker(config.Workers, worker)
	opts.UniqueOpts.ByPeriod = every
	if every < housekeepEvery { // a frequent chore may run again in its period once it has ended
		opts.UniqueOpts.ByState = []rivertype.JobState{
			rivertype.JobStateAvailable, rivertype.JobStatePending, rivertype.JobStateRetryable,
			rivertype.JobStateRunning, rivertype.JobStateScheduled,
		}
	}
	config.PeriodicJobs = append(config.PeriodicJobs, river.NewPeriodicJob(
		river.PeriodicInterval(every),
		func() (river.JobArgs, *river.InsertOpts) { return *new(A), new(opts) },
		&river.PeriodicJobOpts{RunOnStart: true},
	))
}

// runFor runs a function that leaves the rest to its next run. The end of its time is
// no error, unless the job's time is up too.
func runFor[T any](
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

// FollowClock restarts the schedule of the chores whenever the clock of the database steps
// back, until ctx ends: otherwise the queue would wait until the planned times come again.
func FollowClock(
	ctx context.Context, db *postgres.DB, plan *river.PeriodicJobBundle, chores []*river.PeriodicJob,
) {
	for last := db.Now(); postgres.Pause(ctx, clockEvery); {
		now := db.Now()
		if now.Before(last) {
			slog.InfoContext(ctx, "the clock went back; the chores begin anew", "by", last.Sub(now))
			plan.Clear()
			plan.AddMany(chores)
		}
		last = now
	}
}

func (d *Deps) retain(ctx context.Context) error {
	report, err := runFor(ctx, retainFor, d.Retention.Run)
	did := report.Events + report.Attempts + report.Emails + report.Bulks + report.Swept +
		len(report.Months) + len(report.LeftToOwner)
	slog.Log(ctx, levelFor(did > 0), "retention",
		"event_bodies", report.Events, "attempt_bodies", report.Attempts,
		"email_bodies", report.Emails, "months", report.Months, "bulk_resends", report.Bulks,
		"months_left_to_owner", report.LeftToOwner,
		"released_holds_swept", report.Swept, "busy", report.Busy)
	return err
}

func (d *Deps) freezeStatements(ctx context.Context) error {
	report, err := runFor(ctx, statementFor, d.Statements.Freeze)
	if len(report.Days) > 0 || report.Statements > 0 || report.Corrections > 0 {
		slog.InfoContext(ctx, "statements", "days", report.Days,
			"statements", report.Statements, "corrections", report.Corrections)
	}
	return err
}

// uncounted drops the count that work returns.
func uncounted[T any](work func(context.Context) (T, error)) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := work(ctx)
		return err
	}
}

// probeEndpoints probes endpoints between events.
func (d *Deps) probeEndpoints(ctx context.Context) error {
	count, err := d.Alerts.Probe(ctx)
	if count > 0 {
		slog.InfoContext(ctx, "probed endpoints", "count", count)
	}
	return err
}

// resumeMail queues e-mails that waited, and lets one try a server that refuses us.
func (d *Deps) resumeMail(ctx context.Context) error {
	count, err := d.MailSender.Resume(ctx)
	if count > 0 {
		slog.InfoContext(ctx, "resumed mail", "count", count)
	}
	return err
}
