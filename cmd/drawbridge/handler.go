package main

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"drawbridge/internal/config"
	"drawbridge/internal/partner"
	"drawbridge/internal/search"
	"drawbridge/migrations"
	"drawbridge/web"
	"drawbridge/web/api"
	"drawbridge/web/console"
	"drawbridge/web/docs"
)

// newHandler puts together what the process's roles serve.
func newHandler(s *services) (http.Handler, *console.Console, error) {
	options := web.Options{
		BasePath: s.settings.BasePath,
		Ready:    readiness(s),
		Stopping: s.stopping.Load,
		Metrics:  s.meters.handler(),
		Observe:  s.meters.request,
		Secure:   strings.HasPrefix(s.settings.PublicURL, "https://"),

		TrustedProxies: s.settings.TrustedProxies,
		Now:            s.db.Now,
		Requests:       s.recorder,

		DatabaseTimeout: s.settings.DatabaseTimeout,
	}
	if s.settings.Has(config.RoleAPI) {
		options.API = &api.API{
			Partners:     s.partners,
			Limiter:      &partner.Limiter{DB: s.db},
			Idempotency:  s.idempotency,
			Applications: s.applications,
			Loans:        s.loans,
			Bucket:       s.documents.Bucket(),
			Calls:        &s.webhooks.Calls,
			Now:          s.db.Now,
			Sandbox:      s.settings.Env == config.Development,
		}
	}
	if s.settings.Has(config.RoleAPI) || s.settings.Has(config.RoleConsole) {
		options.Docs = docs.New(docs.Options{
			BaseURL:    func() string { return baseURL(s.settings) },
			Production: s.settings.Env == config.Production,
		})
	}
	if s.settings.Has(config.RoleConsole) {
		var err error
		if options.Console, err = newConsole(s); err != nil {
			return nil, nil, err
		}
	}
	if s.receiver != nil {
		options.Receiver = s.receiver
	}
	return web.New(options), options.Console, nil
}

func newConsole(s *services) (*console.Console, error) {
	environment := ""
	if s.settings.Env != config.Production {
		environment = string(s.settings.Env)
	}
	snippets, err := docs.Snippets()
	if err != nil {
		return nil, err
	}
	board, err := newJobConsole(s)
	if err != nil {
		return nil, err
	}
	made, err := console.New(console.Options{
		DB:           s.db,
		Operators:    s.operators,
		Webhooks:     s.webhooks,
		Search:       &search.Service{DB: s.db},
		Emails:       s.emails,
		Partners:     s.partners,
		Development:  development(s),
		Snippets:     snippets,
		Applications: s.applications,
		Loans:        s.loans,
		Documents:    s.documents,
		Products:     s.catalog,
		Requests:     s.requests,
		Attention:    s.attention,
		Fleet:        s.fleet,
		Restored:     s.restored,
		System:       systemFacts(s),
		BasePath:     s.settings.BasePath,
		Provider:     newProvider(s),
		Retention:    s.retention,

		Configuration: configRows(s.effective),
		Queues:        newQueues(s),
		JobConsole:    board,
		PublicURL:     s.settings.PublicURL,
		Environment:   environment,
		Version:       version,
		Status:        api.Status,
	})
	if err != nil {
		return nil, config.Faults{"DRAWBRIDGE_PUBLIC_URL cannot serve the console: " + err.Error()}
	}
	return made, nil
}

// baseURL is the address that precedes /v2 (specification section 1).
func baseURL(settings config.Config) string {
	return strings.TrimRight(settings.PublicURL, "/") + settings.BasePath
}

// readyPatience is how long the database may take to answer a probe.
const readyPatience = 3 * time.Second

// readiness tells what keeps the process from serving.
func readiness(s *services) func(r *http.Request) []string {
	return func(r *http.Request) []string {
		ctx, cancel := context.WithTimeout(r.Context(), readyPatience)
		defer cancel()
		return gaps(ctx, s)
	}
}

// gaps asks the database what is missing.
func gaps(ctx context.Context, s *services) []string {
	if err := s.db.PingContext(ctx); err != nil {
		return []string{"the database does not answer"}
	}
	missing, err := migrations.Pending(ctx, s.db.DB.DB)
	if err != nil {
		return []string{"the schema version cannot be read"}
	}
	found := make([]string, 0, len(missing))
	for _, name := range missing {
		found = append(found, "migration "+name+" is missing; run drawbridge migrate up")
	}
	if len(found) > 0 {
		return found
	}
	if err := s.ensurePartitions(ctx); err != nil {
		slog.ErrorContext(ctx, "making partitions", "error", err)
		return []string{"the tables of events lack the partitions of this month; the log says why"}
	}
	return nil
}
