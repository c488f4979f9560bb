package app

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"

	"drawbridge/internal/postgres"
	"drawbridge/internal/queue"
	"drawbridge/jobs"
	"drawbridge/migrations"
)

const (
	// schemaPoll is how often a worker checks whether the schema is current.
	schemaPoll = 2 * time.Second
	// quarantinePoll is how often it checks whether a quarantine has begun or ended.
	quarantinePoll = 2 * time.Second
	// quarantineReminder is how often it logs that it waits.
	quarantineReminder = time.Minute
	// closeTime is how long the connections of the queues may take to close.
	closeTime = 2 * time.Second
)

// Appear shows the other processes that this one is alive, until ctx ends.
func (s *Services) Appear(ctx context.Context) {
	s.process.URL = s.Settings.PublicURL
	s.Processes.Run(ctx, s.process)
}

// Work runs the queues until ctx ends and the jobs in flight have ended. It calls started once it
// takes jobs. During a quarantine it takes none.
func (s *Services) Work(ctx context.Context, started func()) error {
	s.waitForSchema(ctx)
	pool, err := queue.Connect(ctx, s.DB)
	if err != nil {
		return fmt.Errorf("connecting the queue: %w", err)
	}
	defer closePool(pool)
	for _, step := range []func(context.Context) error{s.ensureEnvironment, s.ensurePartitions} {
		if err := patiently(ctx, step); err != nil || ctx.Err() != nil {
			return err
		}
	}
	s.Metrics.WatchPool(pool)
	started = sync.OnceFunc(started)
	for ctx.Err() == nil {
		err := patiently(ctx, s.waitForDecision)
		if err == nil && ctx.Err() == nil {
			err = s.workUntilHeld(ctx, pool, started)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// workUntilHeld runs the queues until ctx ends or a quarantine begins, and then waits for the jobs
// in flight.
func (s *Services) workUntilHeld(ctx context.Context, pool *pgxpool.Pool, started func()) error {
	queueConfig := s.QueueConfig()
	queueConfig.ID = s.process.UID.String() // names the leader
	driver := queue.NewDriver(pool, s.DB)
	driver.FetchLost, driver.Works = s.Processes.Working.FetchLost, s.Processes.Working.Works
	driver.MayFetch = s.mayFetch
	client, err := river.NewClient(driver, queueConfig)
	if err != nil {
		return fmt.Errorf("preparing the queue: %w", err)
	}
	// Starting a client writes to the database, too.
	for err := startQueue(ctx, client); err != nil; err = startQueue(ctx, client) {
		if !pausedAfter(ctx, err) {
			return nil
		}
	}
	started()
	working, hold := context.WithCancel(ctx)
	defer hold()
	var beside sync.WaitGroup
	beside.Go(func() {
		jobs.Rescue(working, s.Processes, s.process.UID, s.Settings.WebhookTimeout)
	})
	beside.Go(func() {
		jobs.FollowClock(working, s.DB, client.PeriodicJobs(), queueConfig.PeriodicJobs)
	})
	s.publishing.Store(true)
	beside.Go(func() { s.Outbox.Run(working) })
	beside.Go(func() { driver.ScanBehind(working) })
	beside.Go(func() {
		if s.pollUntil(working, dbStatus{}, dbStatus.mustWait) {
			s.publishing.Store(false)
			hold()
		}
	})
	beside.Go(func() { jobs.EnqueueDue(working, s.Webhooks, s.MailSender) })
	<-working.Done()
	err = stopQueue(ctx, client)
	beside.Wait()
	if err == nil && ctx.Err() == nil {
		slog.WarnContext(ctx, "the queues rest: everything is held, or the database is not ours")
	}
	return err
}

// startQueue starts a queue. Once it runs, only stopQueue ends it, when ctx does. Before that the
// start is given up when ctx ends, as it may wait for a frozen database; a client that is just
// starting then is stopped without a drain.
func startQueue(ctx context.Context, client *river.Client[pgx.Tx]) error {
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	detach := context.AfterFunc(ctx, end)
	err := client.Start(life)
	detach()
	if err != nil {
		end()
	}
	return err
}

// stopQueue lets jobs in flight end, for a while. In a process that stops, the rest is left for
// another one to pick up.
func stopQueue(ctx context.Context, client *river.Client[pgx.Tx]) error {
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), DrainTimeout)
	defer cancel()
	if client.Stop(drain) == nil {
		return nil
	}
	// A process that goes on waits for a job that ignores its cancellation.
	for ctx.Err() == nil {
		hard, cancel := context.WithTimeout(ctx, quarantineReminder)
		err := client.StopAndCancel(hard)
		cancel()
		if err == nil {
			return nil
		}
		slog.WarnContext(ctx, "everything is held, but jobs that began before do not end")
	}
	hard, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	return client.StopAndCancel(hard)
}

// closePool closes the connections of the queues. A connection that waits for a frozen database
// would take too long; the end of the process closes it.
func closePool(pool *pgxpool.Pool) {
	patience, closed := context.WithTimeout(context.Background(), closeTime)
	go func() {
		defer closed()
		pool.Close()
	}()
	<-patience.Done()
}

// patiently repeats a step of a worker's start while the database is away or failing over: that
// must not end a process which has begun to serve.
func patiently(ctx context.Context, step func(context.Context) error) error {
	for {
		err := step(ctx)
		if err == nil || !postgres.IsUnavailable(err) {
			return err
		}
		if !pausedAfter(ctx, err) {
			return nil
		}
	}
}

// pausedAfter logs a failure and waits a moment; false once ctx has ended.
func pausedAfter(ctx context.Context, err error) bool {
	slog.ErrorContext(ctx, "starting the worker", "error", err)
	return postgres.Pause(ctx, schemaPoll)
}

// QueueConfig is the configuration of a client that works every queue.
func (s *Services) QueueConfig() *river.Config {
	return jobs.Config(jobs.Deps{
		DB: s.DB, Webhooks: s.Webhooks, MailSender: s.MailSender, Idempotency: s.Idempotency,
		Documents: s.Documents, Loans: s.Loans, Operators: s.Operators,
		Retention: s.Retention, Alerts: s.Alerts, Working: &s.Processes.Working,
		Requests: s.Requests, Faults: s.Faults, Statements: s.Statements,
		WebhookTimeout: s.Settings.WebhookTimeout,
		Observe:        s.Metrics.Run, ObserveMail: s.Metrics.Mail,
	})
}

// waitForSchema lets a worker start before the migrations have run.
func (s *Services) waitForSchema(ctx context.Context) {
	for going := true; going; going = postgres.Pause(ctx, schemaPoll) {
		missing, err := migrations.Pending(ctx, s.DB.DB.DB)
		if err == nil && len(missing) == 0 {
			return
		}
		said := ""
		if len(missing) > 0 {
			said = behind(missing)
		}
		slog.WarnContext(ctx, "waiting for the schema", "missing", said, "error", err)
	}
}
