package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"

	"drawbridge/internal/apilog"
	"drawbridge/internal/config"
	"drawbridge/internal/heap"
	"drawbridge/internal/postgres"
	"drawbridge/jobs"
	"drawbridge/migrations"
	"drawbridge/web"
)

const (
	// drainTimeout is what requests and deliveries in flight have to end.
	drainTimeout = 30 * time.Second
	// schemaPoll is how often a worker asks whether the schema is current.
	schemaPoll = 2 * time.Second
)

type serveCmd struct {
	Roles string `help:"What this process runs: api, console, worker; overrides DRAWBRIDGE_ROLES." placeholder:"LIST"`
	Demo  bool   `help:"Load the demo data first and print how to use it (development only)."`
}

// Help lists every setting.
func (serveCmd) Help() string { return variablesHelp() }

// Run serves until the context ends, and then drains.
func (cmd serveCmd) Run(env *environment) error {
	heap.Loosen()
	settings, err := env.config()
	if err != nil {
		return err
	}
	if cmd.Roles != "" {
		if settings.Roles, err = config.ParseRoles(cmd.Roles); err != nil {
			return usagef("--roles %s", err)
		}
	}
	for _, warning := range settings.Warnings() {
		slog.WarnContext(env.ctx, "doubtful setting", "warning", warning)
	}
	db, err := env.open(settings)
	if err != nil {
		return unlessStopped(env.ctx, err)
	}
	if err = db.CheckPooling(env.ctx); err == nil {
		err = cmd.serve(env, settings, db.DB)
	}
	return errors.Join(unlessStopped(env.ctx, err), db.close())
}

// unlessStopped is err, or nil if it only says that what ran was stopped: a
// service that is asked to end while it starts has not failed.
func unlessStopped(ctx context.Context, err error) error {
	if ctx.Err() != nil && (errors.Is(err, context.Cause(ctx)) || postgres.IsCancelled(err)) {
		slog.Info("stopped while starting")
		return nil
	}
	return err
}

func (cmd serveCmd) serve(env *environment, settings config.Config, db *postgres.DB) error {
	if settings.Env == config.Development {
		if err := migrations.Up(env.ctx, db.DB.DB); err != nil {
			return err
		}
	}
	stopTracing, err := startTracing(env.ctx, settings)
	if err != nil {
		return err
	}
	defer stopTracing()
	if err := serveProfiles(env.ctx, settings); err != nil {
		return err
	}
	keys, err := keyring(settings)
	if err != nil {
		return err
	}
	services, err := newServices(settings, db, keys)
	if err != nil {
		return err
	}
	if err := prepareDatabase(env.ctx, services); err != nil {
		return err
	}
	listener, err := newDoor(env.ctx, settings.Listen)
	if err != nil {
		return fmt.Errorf("listening on DRAWBRIDGE_LISTEN: %w", err)
	}
	encryption, err := serverTLS(settings, db, keys)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	services.settings.PublicURL = publicURL(settings, listener)
	services.effective = env.effective()
	if services.courier, err = newCourier(services); err != nil {
		return errors.Join(err, listener.Close())
	}
	if cmd.Demo {
		if err := printWelcome(env, services); err != nil {
			return errors.Join(err, listener.Close())
		}
	}
	stop, err := startReceiver(services)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	return errors.Join(runServer(env, services, listener, encryption), stop())
}

// prepareDatabase sees to what the database must be before the process is ready.
func prepareDatabase(ctx context.Context, s *services) error {
	if err := refuseDemoPasswords(ctx, s); err != nil {
		return err
	}
	if err := noticeRestore(ctx, s); err != nil {
		return err
	}
	return partitionKnownSchema(ctx, s)
}

// refuseDemoPasswords keeps production from starting while anybody could sign
// in with a published password. A database without its schema has no users.
func refuseDemoPasswords(ctx context.Context, s *services) error {
	if s.settings.Env != config.Production {
		return nil
	}
	missing, err := migrations.Pending(ctx, s.db.DB.DB)
	if err != nil || len(missing) > 0 {
		return err
	}
	found, err := s.operators.HasDemoPasswords(ctx)
	if err == nil && found {
		return config.Faults{"DRAWBRIDGE_ENV is production, but users of the demo data can sign in " +
			"with published passwords; disable them or set others with drawbridge user"}
	}
	return err
}

// partitionKnownSchema makes the partitions before the process is ready. A schema
// that is still to be migrated gets them when it is: see readiness.
func partitionKnownSchema(ctx context.Context, s *services) error {
	missing, err := migrations.Pending(ctx, s.db.DB.DB)
	if err != nil || len(missing) > 0 {
		return err
	}
	return s.ensurePartitions(ctx)
}

// publicURL is the configured origin, or the one listened on.
func publicURL(settings config.Config, listener net.Listener) string {
	if settings.PublicURL != "" {
		return settings.PublicURL
	}
	return scheme(settings) + reachable(listener.Addr())
}

// scheme is what an address of this process begins with.
func scheme(settings config.Config) string {
	if settings.ServesTLS() {
		return "https://"
	}
	return "http://"
}

// reachable turns an address that means every interface into one to connect to.
func reachable(address net.Addr) string {
	host, port, err := net.SplitHostPort(address.String())
	if err != nil {
		return address.String()
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port)
}

// runServer serves HTTP and works the queues until the context ends; then it says
// that it is not ready, goes on accepting for a while, stops, lets what is in
// flight end, and returns.
func runServer(
	env *environment, s *services, listener *door, encryption *tls.Config,
) error {
	handler, pages, err := newHandler(s)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	server := web.NewServer(handler)
	fresh := newComers()
	server.ConnState = fresh.note
	if pages != nil {
		server.RegisterOnShutdown(pages.Close)
	}
	defer s.closeSenders() // after the last job
	stopRecording := startRecording(env.ctx, s.recorder)
	defer stopRecording() // after the last request was answered
	defer startBeating(env.ctx, s)()
	failed := make(chan error, 2)
	go func() { failed <- server.Serve(secure(listener, encryption)) }()
	var workers sync.WaitGroup
	if s.settings.Has(config.RoleWorker) {
		workers.Go(func() {
			// One that is stopped while it starts has not failed.
			if err := work(env.ctx, s); err != nil && env.ctx.Err() == nil {
				failed <- err
			}
		})
	}
	fmt.Fprintf(env.stdout, "ready %s%s\n", scheme(s.settings), reachable(listener.Addr()))
	select {
	case <-env.ctx.Done():
	case err = <-failed:
	}
	slog.Info("stopping")
	s.stopping.Store(true)
	if err == nil {
		// Balancers see that the process is not ready, and send to another one.
		<-time.After(s.settings.Drain)
	}
	drain, cancel := context.WithTimeout(context.WithoutCancel(env.ctx), drainTimeout)
	defer cancel()
	if err == nil {
		listener.shut(drain)
		fresh.wait(drain)
	}
	shutdownErr := server.Shutdown(drain)
	if errors.Is(shutdownErr, context.DeadlineExceeded) {
		shutdownErr = server.Close()
	}
	if err == nil {
		workers.Wait()
	}
	if errors.Is(err, http.ErrServerClosed) {
		err = nil
	}
	return errors.Join(err, shutdownErr)
}

// startRecording writes the log of requests in the background. The function that
// it returns ends that once everything is written.
func startRecording(ctx context.Context, recorder *apilog.Writer) func() {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var writing sync.WaitGroup
	writing.Go(func() { recorder.Run(ctx) })
	return func() {
		cancel()
		writing.Wait()
	}
}

// work runs the queues until ctx ends and the jobs in flight with it.
func work(ctx context.Context, s *services) error {
	if err := waitForSchema(ctx, s.db); err != nil {
		return err
	}
	pool, err := pgxpool.New(ctx, s.db.URL())
	if err != nil {
		return fmt.Errorf("connecting the queue: %w", err)
	}
	defer pool.Close()
	if err := s.ensurePartitions(ctx); err != nil {
		return err
	}
	if err := waitForDecision(ctx, s); err != nil || ctx.Err() != nil {
		return err
	}
	s.meters.watchPool(pool)
	queueConfig := jobs.Config(jobs.Deps{
		DB: s.db, Webhooks: s.webhooks, Courier: s.courier,
		Idempotency: s.idempotency, Documents: s.documents, Loans: s.loans,
		Operators:      s.operators,
		Retention:      s.retention,
		Attention:      s.attention,
		Working:        &s.fleet.Working,
		Requests:       s.requests,
		WebhookTimeout: s.settings.WebhookTimeout,
		Observe:        s.meters.run,
		ObserveMail:    s.meters.mail,
	})
	queueConfig.ID = s.process.UID.String() // names the leader
	client, err := river.NewClient(riverpgxv5.New(pool), queueConfig)
	if err != nil {
		return fmt.Errorf("preparing the queue: %w", err)
	}
	// The queue has its own life: ctx tells when to stop, Stop how.
	if err := client.Start(context.WithoutCancel(ctx)); err != nil {
		return fmt.Errorf("starting the queue: %w", err)
	}
	var rescuing sync.WaitGroup
	rescuing.Go(func() {
		jobs.Rescue(ctx, s.fleet, s.process.UID, s.settings.WebhookTimeout)
	})
	jobs.Promote(ctx, s.webhooks)
	rescuing.Wait()
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTimeout)
	defer cancel()
	if err := client.Stop(drain); err != nil {
		// What is still in flight is left to be picked up by another process.
		hard, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		return client.StopAndCancel(hard)
	}
	return nil
}

// waitForSchema lets a worker start before its migrations were run.
func waitForSchema(ctx context.Context, db *postgres.DB) error {
	ticker := time.NewTicker(schemaPoll)
	defer ticker.Stop()
	for {
		missing, err := migrations.Pending(ctx, db.DB.DB)
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

// ensurePartitions covers the case that no worker ran for months, once the schema
// is there. Afterwards the hourly chores see to the partitions ahead.
func (s *services) ensurePartitions(ctx context.Context) error {
	if s.partitioned.Load() {
		return nil
	}
	made, err := s.db.MakePartitions(ctx)
	if err != nil {
		return err
	}
	s.partitioned.Store(true)
	if made > 0 {
		slog.InfoContext(ctx, "made partitions", "count", made)
	}
	return nil
}
