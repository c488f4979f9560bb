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

// How often the chores come back. E-mails that wait are looked after every resumeEvery, and a
// step of the clock every clockEvery.
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

// How long a run goes on; what is left waits for the next one.
const (
	housekeepFor = 5 * time.Minute
	retainFor    = 20 * time.Minute
	statementFor = 10 * time.Minute
	// probeFor leaves every probe of a round its own deadline.
	probeFor = 3 * time.Minute
	// lastBatch is what those that go on for a while have more, in which their last batch ends.
	lastBatch = time.Minute
)

// queueHealth is apart from the chores, so that a long one delays no alarm.
const queueHealth = "health"

type (
	// HousekeepArgs asks for the hourly chores.
	HousekeepArgs struct{}
	// RetainArgs asks for the removal of what was kept long enough.
	RetainArgs struct{}
	// FreezeStatementsArgs asks for the statements of the days that are over.
	FreezeStatementsArgs struct{}
	// TallyOutcomesArgs asks for the outcomes of attempts to be added up.
	TallyOutcomesArgs struct{}
	// WatchHealthArgs asks for a look at what fails or is missing, which changes the
	// states of subscriptions and raises alerts.
	WatchHealthArgs struct{}
	// ProbeEndpointsArgs asks for the probes that are due.
	ProbeEndpointsArgs struct{}
	// ResumeMailArgs asks for the e-mails that need not wait any more.
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

// addChores adds the jobs that come back by themselves. A round of those in the queue of
// health is given up when it fails: the next one begins where it did.
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
	// Everything that has come in is added up, also after a long break.
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
	if every < housekeepEvery { // what is quick, and has ended, may be done again in its period
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

// FollowClock has the chores begin anew whenever the clock of the database went back, until ctx
// ends: the queue would wait until the time comes again for which it has planned the next ones.
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
	report, err := forAWhile(ctx, retainFor, d.Retention.Run)
	did := report.Events + report.Attempts + report.Emails + report.Bulks + report.Swept +
		len(report.Months) + len(report.LeftToOwner)
	slog.Log(ctx, worth(did > 0), "retention",
		"event_bodies", report.Events, "attempt_bodies", report.Attempts,
		"email_bodies", report.Emails, "months", report.Months, "bulk_resends", report.Bulks,
		"months_left_to_owner", report.LeftToOwner,
		"released_holds_swept", report.Swept, "busy", report.Busy)
	return err
}

func (d *Deps) freezeStatements(ctx context.Context) error {
	report, err := forAWhile(ctx, statementFor, d.Statements.Freeze)
	if len(report.Days) > 0 || report.Statements > 0 || report.Corrections > 0 {
		slog.InfoContext(ctx, "statements", "days", report.Days,
			"statements", report.Statements, "corrections", report.Corrections)
	}
	return err
}

// uncounted does what tells how much it did, which nobody asks.
func uncounted[T any](work func(context.Context) (T, error)) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := work(ctx)
		return err
	}
}

// probeEndpoints looks at endpoints between events.
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
