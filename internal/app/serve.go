package app

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"drawbridge/internal/config"
	"drawbridge/internal/listener"
	"drawbridge/internal/postgres"
	"drawbridge/internal/reencrypt"
	"drawbridge/internal/restore"
	"drawbridge/migrations"
	"drawbridge/web"
)

// DrainTimeout is how long requests and deliveries in flight may take to end.
const DrainTimeout = 30 * time.Second

// publishTime is how long publishing the last events may take.
const publishTime = 5 * time.Second

// Prepare makes sure that the database is usable before the process is ready. A schema that is
// still to be migrated, or a read-only database, is checked again once that has changed: see
// unreadyReasons and Work.
func (s *Services) Prepare(ctx context.Context) error {
	missing, err := migrations.Pending(ctx, s.DB.DB.DB)
	if err != nil || len(missing) > 0 {
		return err
	}
	for _, step := range []func(context.Context) error{
		s.ensureEnvironment,
		func(ctx context.Context) error {
			_, err := s.Restored.Check(ctx) // begins the quarantine of a restored database
			return err
		},
		s.ensurePartitions,
	} {
		if err := step(ctx); postgres.IsReadOnly(err) {
			slog.WarnContext(ctx, "the database can only be read", "error", err)
			return nil
		} else if err != nil {
			return err
		}
	}
	s.warnOfMissingKeys(ctx)
	return nil
}

// DemoAccess describes which published credentials still work, and the remedy; both are empty where
// none do, and in development.
func (s *Services) DemoAccess(ctx context.Context) (found, remedy string, err error) {
	if !s.Settings.Env.Hosted() {
		return "", "", nil
	}
	users, err := s.Operators.HasDemoPasswords(ctx)
	if err != nil {
		return "", "", err
	}
	clients, err := s.Partners.DemoClients(ctx)
	var says, remedies []string
	if users {
		says = append(says, "users of the demo data can sign in with published passwords")
		remedies = append(remedies, "disable them or set others with drawbridge user")
	}
	if len(clients) > 0 {
		says = append(says, "clients of the demo data can call with published secrets")
		remedies = append(remedies, "drawbridge client revoke "+
			strings.Join(clients, ", drawbridge client revoke "))
	}
	return strings.Join(says, " and "), strings.Join(remedies, "; "), err
}

// warnOfMissingKeys logs which keys stored values need that this process does not have: it cannot
// decrypt these values, and subscriptions stop one by one as their values are needed.
func (s *Services) warnOfMissingKeys(ctx context.Context) {
	report, err := (&reencrypt.Service{DB: s.DB, Keys: s.Keys}).Check(ctx)
	if err != nil {
		slog.WarnContext(ctx, "looking for missing keys", "error", err) // nothing depends on it
		return
	}
	missing := map[string]int{}
	for _, column := range report.Columns {
		for key, count := range column.Keys {
			if !slices.Contains(report.Known, key) {
				missing[key] += count
			}
		}
	}
	if len(missing) > 0 {
		slog.WarnContext(ctx, "encrypted values name keys that DRAWBRIDGE_SECRETS_KEY does not hold; "+
			"put those keys behind the first one and restart every process", "values_by_key", missing)
	}
}

// ensureEnvironment keeps a process from serving the database of another environment: a sandbox
// would swallow the mails of production. The first process records its environment, unless
// published credentials keep it from starting. The record is read each time, because both the
// record and the database may change.
func (s *Services) ensureEnvironment(ctx context.Context) error {
	found, err := s.Restored.Environment(ctx, s.DB)
	if err != nil {
		return err
	}
	if found != nil && (s.settled.Load() || *found != string(s.Settings.Env)) {
		return sameEnvironment(s.Settings.Env, *found)
	}
	who, remedy, err := s.DemoAccess(ctx)
	if err != nil {
		return err
	}
	if who != "" {
		return config.Errors{
			fmt.Sprintf("DRAWBRIDGE_ENV is %s, but %s; %s", s.Settings.Env, who, remedy),
		}
	}
	recorded, err := s.Restored.RecordEnvironment(ctx, string(s.Settings.Env))
	if err != nil {
		return err
	}
	if err := sameEnvironment(s.Settings.Env, recorded); err != nil {
		return err
	}
	s.settled.Store(true)
	return nil
}

func sameEnvironment(env config.Env, recorded string) error {
	if recorded == string(env) {
		return nil
	}
	return config.Errors{fmt.Sprintf("DRAWBRIDGE_ENV is %s, but the database is that of a %s "+
		"service; set DRAWBRIDGE_ENV=%s, or, if it is a copy that no process serves, change the "+
		"record with: drawbridge environment set %s", env, recorded, recorded, env)}
}

// CheckEnvironment refuses a database that is recorded as that of another environment, before
// anything is made or migrated, so it allows any schema. A database without a record is accepted.
func CheckEnvironment(ctx context.Context, env config.Env, db *postgres.DB) error {
	recorded, err := (&restore.Service{DB: db}).Environment(ctx, db)
	if postgres.IsMissing(err) || err == nil && recorded == nil {
		return nil
	}
	if err != nil {
		return err
	}
	return sameEnvironment(env, *recorded)
}

// ensurePartitions makes partitions in case no worker has run for months, once the schema exists.
// Afterwards the hourly chores make them ahead of time.
func (s *Services) ensurePartitions(ctx context.Context) error {
	if s.partitioned.Load() {
		return nil
	}
	made, err := s.DB.MakePartitions(ctx)
	if err != nil {
		return err
	}
	s.partitioned.Store(true)
	if made > 0 {
		slog.InfoContext(ctx, "made partitions", "count", made)
	}
	return nil
}

// Server is a process that serves HTTP.
type Server struct {
	*Services

	listener   *listener.Listener
	encryption *tls.Config
	// URL is the origin on which the server listens.
	URL string
}

// Listen opens the port, which determines the server's address and so the links in its mails.
func (s *Services) Listen(ctx context.Context) (*Server, error) {
	port, err := listener.New(ctx, s.Settings.Listen)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("another program listens on %s: end it, or choose another port, "+
			"such as DRAWBRIDGE_LISTEN=127.0.0.1:8081 (port 0 picks a free one)", s.Settings.Listen)
	}
	if err != nil {
		return nil, fmt.Errorf("listening on DRAWBRIDGE_LISTEN: %w", err)
	}
	encryption, err := listener.TLS(s.Settings, s.DB, s.Keys)
	if err != nil {
		return nil, errors.Join(err, port.Close())
	}
	server := &Server{
		Services: s, listener: port, encryption: encryption,
		URL: Scheme(s.Settings) + Reachable(port.Addr()),
	}
	if s.Settings.PublicURL == "" {
		s.Settings.PublicURL = server.URL
	}
	if s.MailSender, err = s.NewMailSender(); err != nil {
		return nil, errors.Join(err, port.Close())
	}
	return server, nil
}

// Scheme is the beginning of an address of this process.
func Scheme(settings config.Config) string {
	if settings.ServesTLS() {
		return "https://"
	}
	return "http://"
}

// Reachable replaces the host of an address that means every interface by one to connect to.
func Reachable(address net.Addr) string {
	host, port, err := net.SplitHostPort(address.String())
	if err != nil {
		return address.String()
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port)
}

// Close closes the port of a server that is not running.
func (s *Server) Close() error { return s.listener.Close() }

// Run serves HTTP and works the queues until the context ends; then it reports that it is not
// ready, goes on accepting for a while, stops, waits for requests and jobs in flight to end, and
// returns. It calls ready once it accepts connections.
func (s *Server) Run(ctx context.Context, ready func()) (err error) {
	handler, pages, err := s.Handler()
	if err != nil {
		return errors.Join(err, s.Close())
	}
	if s.Receiver != nil {
		stop, err := s.Receiver.ServeWrongCertificate()
		if err != nil {
			return errors.Join(err, s.Close())
		}
		defer func() { err = errors.Join(err, stop()) }()
	}
	server := web.NewServer(handler)
	connections := listener.NewConnections()
	connections.Follow(server)
	if pages != nil {
		server.RegisterOnShutdown(pages.Close)
	}
	defer s.Services.Close() // after the last job
	leave := InBackground(ctx, s.background()...)
	defer leave() // after the last request was answered, and the last job
	failed := make(chan error, 2)
	go func() { failed <- server.Serve(s.accepting()) }()
	var workers sync.WaitGroup
	if s.Settings.Has(config.RoleWorker) {
		workers.Go(func() {
			// One that is stopped while it starts has not failed.
			if err := s.Work(ctx, func() {}); err != nil && ctx.Err() == nil {
				failed <- err
			}
		})
	}
	ready()
	select {
	case <-ctx.Done():
	case err = <-failed:
	}
	shutdownErr := s.stop(ctx, server, connections, err != nil)
	if err == nil {
		workers.Wait()
		// Each gives up after a few seconds; concurrently they take no longer than one.
		var last sync.WaitGroup
		last.Go(func() { s.publishLast(ctx) })
		last.Go(leave)
		last.Wait()
	}
	if errors.Is(err, http.ErrServerClosed) {
		err = nil
	}
	return errors.Join(err, shutdownErr)
}

// background returns the work that runs as long as the process, whatever its roles.
func (s *Server) background() []func(context.Context) {
	work := []func(context.Context){s.Recorder.Run, s.Appear, s.watchReady}
	if s.Settings.Has(config.RoleAPI) {
		work = append(work, s.Feed.Run)
	}
	if s.DB.MostLag() > 0 {
		work = append(work, s.DB.WatchReplica)
	}
	if !s.Settings.Has(config.RoleWorker) {
		work = append(work, s.Outbox.Relay)
	}
	return work
}

// publishLast publishes the events of the last requests, so that a process which ends normally
// leaves none to the next one.
func (s *Server) publishLast(ctx context.Context) {
	if !s.publishing.Load() {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), publishTime)
	defer cancel()
	if err := s.Outbox.Drain(ctx); err != nil {
		slog.WarnContext(ctx, "publishing the last events", "error", err) // another one will
	}
}

// stop reports that the process is not ready, and shuts down the HTTP server: gracefully, unless it
// has failed.
func (s *Server) stop(
	ctx context.Context, server *http.Server, connections *listener.Connections, failed bool,
) error {
	slog.Info("stopping")
	s.stopping.Store(true)
	s.Feed.Release()
	if !failed {
		// Load balancers see that the process is not ready, and send requests to another one.
		<-time.After(s.Settings.Drain)
	}
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), DrainTimeout)
	defer cancel()
	if !failed {
		s.listener.Shut(drain)
		connections.WaitServed(drain)
	}
	err := server.Shutdown(drain)
	if errors.Is(err, context.DeadlineExceeded) {
		return server.Close()
	}
	return err
}

// accepting is the listener, with TLS where that is configured.
func (s *Server) accepting() net.Listener {
	if s.encryption == nil {
		return s.listener
	}
	return tls.NewListener(s.listener, s.encryption)
}

// InBackground runs all of the work until the returned function is called, which waits for it to
// end: it outlives ctx, which ends long before.
func InBackground(ctx context.Context, work ...func(context.Context)) (stop func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var running sync.WaitGroup
	for _, run := range work {
		running.Go(func() { run(ctx) })
	}
	return func() {
		cancel()
		running.Wait()
	}
}
