package app

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/riverqueue/river"

	"drawbridge/internal/postgres"
	"drawbridge/internal/queue"
	"drawbridge/jobs"
	"drawbridge/migrations"
)

const (
	// schemaPoll is how often a worker asks whether the schema is current.
	schemaPoll = 2 * time.Second
	// quarantinePoll is how often it asks whether the quarantine of a restored database was decided.
	quarantinePoll = 2 * time.Second
	// quarantineReminder is how often it says in the log that it waits.
	quarantineReminder = time.Minute
)

// Appear shows the other processes that this one lives, until stop is called.
func (s *Services) Appear(ctx context.Context) (stop func()) {
	s.process.URL = s.Settings.PublicURL
	return inBackground(ctx, func(ctx context.Context) { s.Processes.Run(ctx, s.process) })
}

// Work runs the queues until ctx ends and the jobs in flight with it. It calls started once
// it takes jobs.
func (s *Services) Work(ctx context.Context, started func()) error {
	if err := s.waitForSchema(ctx); err != nil {
		return err
	}
	pool, err := queue.Connect(ctx, s.DB)
	if err != nil {
		return fmt.Errorf("connecting the queue: %w", err)
	}
	defer pool.Close()
	for _, step := range []func(context.Context) error{
		s.ensureEnvironment, s.ensurePartitions, s.waitForDecision,
	} {
		if err := patiently(ctx, step); err != nil || ctx.Err() != nil {
			return err
		}
	}
	s.Metrics.WatchPool(pool)
	queueConfig := s.QueueConfig()
	queueConfig.ID = s.process.UID.String() // names the leader
	driver := queue.NewDriver(pool, s.DB)
	driver.Broke, driver.Works = s.Processes.Working.Broke, s.Processes.Working.Works
	client, err := river.NewClient(driver, queueConfig)
	if err != nil {
		return fmt.Errorf("preparing the queue: %w", err)
	}
	// The queue has its own life: ctx tells when to stop, Stop how.
	// It writes as it starts, too.
	for {
		err := client.Start(context.WithoutCancel(ctx))
		if err == nil {
			break
		}
		if !pausedAfter(ctx, err) {
			return nil
		}
	}
	started()
	var beside sync.WaitGroup
	beside.Go(func() {
		jobs.Rescue(ctx, s.Processes, s.process.UID, s.Settings.WebhookTimeout)
	})
	s.publishing.Store(true)
	beside.Go(func() { s.Outbox.Run(ctx) })
	beside.Go(func() { driver.LookBehind(ctx) })
	jobs.EnqueueDue(ctx, s.Webhooks, s.MailSender)
	beside.Wait()
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), DrainTimeout)
	defer cancel()
	if err := client.Stop(drain); err != nil {
		// What is still in flight is left to be picked up by another process.
		hard, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		return client.StopAndCancel(hard)
	}
	return nil
}

// patiently takes a step of a worker's start, again and again while the database is away or
// between two servers: that must not end a process which has begun to serve.
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

// pausedAfter waits a moment after a failure; false once ctx has ended.
func pausedAfter(ctx context.Context, err error) bool {
	slog.ErrorContext(ctx, "starting the worker", "error", err)
	select {
	case <-ctx.Done():
		return false
	case <-time.After(schemaPoll):
		return true
	}
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

// waitForSchema lets a worker start before its migrations were run.
func (s *Services) waitForSchema(ctx context.Context) error {
	ticker := time.NewTicker(schemaPoll)
	defer ticker.Stop()
	for {
		missing, err := migrations.Pending(ctx, s.DB.DB.DB)
		if err == nil && len(missing) == 0 {
			return nil
		}
		slog.WarnContext(ctx, "waiting for the schema", "missing", missing, "error", err)
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// waitForDecision keeps a worker from sending what a restored database knows as
// waiting. It returns when ctx ends, too.
func (s *Services) waitForDecision(ctx context.Context) error {
	state, err := s.Restored.Check(ctx)
	if err != nil {
		return err
	}
	ticker := time.NewTicker(quarantinePoll)
	defer ticker.Stop()
	var said time.Time
	for state.IsQuarantined() {
		if time.Since(said) >= quarantineReminder {
			slog.WarnContext(ctx, "nothing is sent: the database was restored; "+
				"decide with drawbridge restore release", "held_at", state.QuarantinedAt)
			said = time.Now()
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		now, err := s.Restored.State(ctx)
		if err != nil { // the database is away for a moment; what it said last holds
			slog.WarnContext(ctx, "asking whether the quarantine was decided", "error", err)
			continue
		}
		state = now
	}
	return nil
}
