package app

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"drawbridge/internal/app/metrics"
	"drawbridge/internal/config"
	"drawbridge/internal/partner"
	"drawbridge/internal/postgres"
	"drawbridge/internal/scenario"
	"drawbridge/migrations"
	"drawbridge/web"
	"drawbridge/web/api"
	"drawbridge/web/console"
	"drawbridge/web/docs"
)

// Handler assembles what the process's roles serve. The console is nil for a process without that
// role.
func (s *Services) Handler() (http.Handler, *console.Console, error) {
	options, err := s.WebOptions()
	if err != nil {
		return nil, nil, err
	}
	return web.New(options), options.Console, nil
}

// WebOptions are what the process's roles serve.
func (s *Services) WebOptions() (web.Options, error) {
	options := web.Options{
		BasePath: s.Settings.BasePath,
		Ready:    func(r *http.Request) []string { return s.ready(r.Context()) },
		Stopping: s.stopping.Load,
		Replica:  s.replica,
		Metrics:  s.Metrics.Handler(),
		Observe:  s.Metrics.Request,
		Secure:   strings.HasPrefix(s.Settings.PublicURL, "https://"),

		Environment:    s.Settings.Env.HeaderValue(),
		TrustedProxies: s.Settings.TrustedProxies,
		Now:            s.DB.Now,
		Requests:       s.Recorder,

		DatabaseTimeout: s.Settings.DatabaseTimeout,
	}
	if s.Settings.Has(config.RoleAPI) {
		options.API = &api.API{
			Partners:     s.Partners,
			Limiter:      &partner.Limiter{DB: s.DB},
			Idempotency:  s.Idempotency,
			Applications: s.Applications,
			Loans:        s.Loans,
			Feed:         s.Feed,
			Deliveries:   s.Webhooks.Deliveries,
			Bulk:         s.Webhooks.Bulk,
			Documents:    s.Documents,
			Operators:    s.Operators,
			Statements:   s.Statements,
			Admission:    s.Admission,
			Calls:        s.Webhooks.Gate,
			Now:          s.DB.Now,
		}
		if s.Faults != nil {
			options.API.Sandbox, options.API.Faults = true, s.Faults
			options.API.Scenarios = &scenario.Service{Applications: s.Applications, Loans: s.Loans}
		}
	}
	if s.Settings.Has(config.RoleAPI) || s.Settings.Has(config.RoleConsole) {
		options.Docs = docs.New(docs.Options{
			BaseURL:     s.BaseURL,
			Environment: string(s.Settings.Env),
			Currency:    s.Settings.Currency,
			Egress:      s.Settings.EgressCIDRs,
			Webhooks: &docs.Timing{
				Timeout: s.Settings.WebhookTimeout, RetryAfterMax: s.Settings.WebhookRetryAfterMax,
			},
			Keys: s.Statements.PublicKeys,
		})
	}
	if s.Settings.Has(config.RoleConsole) {
		pages, err := s.ConsoleOptions()
		if err != nil {
			return options, err
		}
		if options.Console, err = console.New(pages); err != nil {
			return options, config.Errors{
				"DRAWBRIDGE_PUBLIC_URL cannot serve the console: " + err.Error(),
			}
		}
	}
	if s.Receiver != nil {
		options.Receiver = s.Receiver
	}
	return options, nil
}

// BaseURL is the address that precedes /v2 (specification section 1).
func (s *Services) BaseURL() string {
	return strings.TrimRight(s.Settings.PublicURL, "/") + s.Settings.BasePath
}

const (
	// readyPatience is how long the database may take to answer a probe.
	readyPatience = 3 * time.Second
	// readyEvery is how often the process probes itself.
	readyEvery = 15 * time.Second
)

// watchReady keeps the metrics up to date where nothing probes, until ctx ends.
func (s *Services) watchReady(ctx context.Context) {
	for going := true; going; going = postgres.Pause(ctx, readyEvery) {
		s.ready(ctx)
	}
}

// readiness is the result of the last readiness check.
type readiness struct {
	sync.Mutex

	began time.Time
	found []string
}

// ready returns what keeps the process from serving, and records it in the metrics. It is open to
// anyone: concurrent callers share one check, which begins after they called, and which goes on
// when its caller leaves.
func (s *Services) ready(ctx context.Context) []string {
	asked := time.Now()
	s.readiness.Lock()
	defer s.readiness.Unlock()
	if s.readiness.began.After(asked) {
		return s.readiness.found
	}
	s.readiness.began = time.Now()
	ctx, cancel := context.WithDeadline(context.WithoutCancel(ctx), asked.Add(readyPatience))
	defer cancel()
	reason, found := s.unreadyReasons(ctx)
	s.Metrics.Ready(reason)
	s.readiness.found = found
	return found
}

// replica describes how the replica is used, empty where there is none. A replica that cannot be
// used does not make the process unready.
func (s *Services) replica() string {
	state, used, configured := s.DB.Replica()
	switch {
	case !configured:
		return ""
	case used:
		return "used; " + state.String()
	}
	return "not used; " + state.String()
}

// unreadyReasons returns what keeps the process from serving: the kind of it, and in words.
func (s *Services) unreadyReasons(ctx context.Context) (metrics.Reason, []string) {
	unwritable, err := s.DB.Unwritable(ctx)
	if err != nil {
		return metrics.DatabaseAway, []string{"the database does not answer"}
	}
	if unwritable != "" {
		return metrics.DatabaseUnwritable, []string{unwritable}
	}
	missing, err := migrations.Pending(ctx, s.DB.DB.DB)
	if err != nil {
		return metrics.DatabaseAway, []string{"the schema version cannot be read"}
	}
	if len(missing) > 0 {
		return metrics.SchemaBehind, []string{behind(missing) + "; run drawbridge migrate up"}
	}
	found, err := s.checkDatabase(ctx)
	if err != nil {
		slog.ErrorContext(ctx, "asking which database this is", "error", err)
		return metrics.DatabaseAway, []string{"the record of which database this is cannot be read"}
	}
	if found.other != nil {
		return metrics.EnvironmentOther, []string{found.other.Error()}
	}
	if err := s.ensurePartitions(ctx); err != nil {
		slog.ErrorContext(ctx, "making partitions", "error", err)
		return metrics.PartitionsMissing, []string{
			"the tables of events lack the partitions of this month; the log says why",
		}
	}
	return metrics.Serves, nil
}

// behind describes the missing migrations: how many, and the first.
func behind(missing []string) string {
	if len(missing) == 1 {
		return "migration " + missing[0] + " is missing"
	}
	return fmt.Sprintf("%d migrations are missing, the first is %s", len(missing), missing[0])
}
