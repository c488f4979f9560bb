// Package app wires the product: the services over one database, what they serve, and the life of a
// process, from the first check of the database to the last job in flight.
package app

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverdatabasesql"

	"drawbridge/internal/admission"
	"drawbridge/internal/alert"
	"drawbridge/internal/apilog"
	"drawbridge/internal/app/metrics"
	"drawbridge/internal/application"
	"drawbridge/internal/catalog"
	"drawbridge/internal/config"
	"drawbridge/internal/document"
	"drawbridge/internal/email"
	"drawbridge/internal/event"
	"drawbridge/internal/feed"
	"drawbridge/internal/idempotency"
	"drawbridge/internal/loan"
	"drawbridge/internal/operator"
	"drawbridge/internal/outbox"
	"drawbridge/internal/partner"
	"drawbridge/internal/postgres"
	"drawbridge/internal/processes"
	"drawbridge/internal/receiver"
	"drawbridge/internal/restore"
	"drawbridge/internal/retention"
	"drawbridge/internal/search"
	"drawbridge/internal/secret"
	"drawbridge/internal/statement"
	"drawbridge/internal/webhook"
	"drawbridge/internal/webhook/delivery"
	"drawbridge/internal/webhook/fault"
	"drawbridge/internal/webhook/sender"
	"drawbridge/internal/why"
	"drawbridge/jobs"
)

// DataDir holds what development keeps between runs.
const DataDir = ".data"

// Services are the use cases over one database.
type Services struct {
	Settings config.Config
	// Options are what only the process can provide.
	Options
	// DB is the database, and the clock of every service: DB.Now.
	DB *postgres.DB
	// Jobs enqueues jobs in the caller's transaction, and works none.
	Jobs        *river.Client[*sql.Tx]
	Keys        *secret.Keyring
	Partners    *partner.Service
	Catalog     *catalog.Service
	Idempotency *idempotency.Store
	Documents   *document.Store
	// Faults make deliveries go wrong on purpose; nil in production.
	Faults *fault.Service
	Emails *email.Service
	// Feed reads the feed of events for partners.
	Feed *feed.Service
	// Outbox publishes events: their positions in the feed, deliveries, jobs.
	Outbox       *outbox.Publisher
	Webhooks     *webhook.Services
	Events       *event.Recorder
	Loans        *loan.Service
	Applications *application.Service
	Operators    *operator.Service
	Retention    *retention.Service
	Restored     *restore.Service
	Alerts       *alert.Service
	Processes    *processes.Service
	Search       *search.Service
	// Statements are the daily statements of merchants.
	Statements *statement.Service
	// Why explains why an event was not delivered.
	Why *why.Service
	// Requests reads the log of the partners' requests, Recorder writes it.
	Requests *apilog.Service
	Recorder *apilog.Writer
	// Admission limits concurrent API requests.
	Admission *admission.Limiter
	Metrics   *metrics.Meters
	// MailSender sends the mails; nil in a process that does not serve.
	MailSender *email.MailSender
	// Receiver is nil except in development.
	Receiver *receiver.Receiver

	// partitioned reports that this process has found the partitions that it needs.
	partitioned atomic.Bool
	// settled reports that this process has recorded its environment, or found it recorded, and that
	// published credentials gave no access then.
	settled atomic.Bool
	// publishing reports that this process has begun to publish events.
	publishing atomic.Bool
	// stopping reports that the process is about to stop accepting.
	stopping atomic.Bool
	// readiness is shared by concurrent readiness checks.
	readiness readiness
	// process describes this process.
	process processes.Process
}

// Options are what only the process can provide.
type Options struct {
	Version string
	// Effective are the effective settings, without secrets.
	Effective []config.Setting
}

// New wires the services over a database. It is the one place where they are made.
func New(
	settings config.Config, db *postgres.DB, keys *secret.Keyring, options Options,
) (*Services, error) {
	// This client only inserts: in the caller's transaction, over the same driver as the domain. The
	// short cooldown is for its notifications, without which a job would wait for the next poll.
	inserting := &river.Config{FetchCooldown: 5 * time.Millisecond, Logger: jobs.QueueLogger()}
	jobs.InsertByClock(inserting, db)
	inserter, err := river.NewClient(riverdatabasesql.New(db.DB.DB), inserting)
	if err != nil {
		return nil, fmt.Errorf("preparing the queue: %w", err)
	}
	bucket, err := document.OpenBucket(blobURL(settings))
	if err != nil {
		return nil, config.Errors{"DRAWBRIDGE_BLOB_URL " + err.Error()}
	}
	s := &Services{
		Settings: settings, Options: options, DB: db, Jobs: inserter, Keys: keys,
		Partners:    &partner.Service{DB: db},
		Catalog:     &catalog.Service{DB: db},
		Idempotency: &idempotency.Store{DB: db},
		Documents:   document.NewStore(bucket),
		Emails:      email.NewService(inserter),
		Feed:        feed.New(db),
		Outbox:      outbox.New(db),
		Operators:   &operator.Service{DB: db, Keys: keys},
		Retention:   &retention.Service{DB: db},
		Restored:    &restore.Service{DB: db},
		Processes:   &processes.Service{DB: db},
		Search:      &search.Service{DB: db},
		Requests:    &apilog.Service{DB: db},
		Recorder:    apilog.NewWriter(db),
		Admission:   new(admission.Limiter),
		Receiver:    newReceiver(settings, db),
	}
	var roles []string
	for _, role := range settings.Roles {
		roles = append(roles, string(role))
	}
	s.process = s.Processes.New(roles, options.Version)
	gate := new(delivery.Gate)
	s.Metrics = metrics.New(metrics.Watched{
		DB: db, Recorder: s.Recorder, Gate: gate, Admission: s.Admission, Feed: s.Feed,
	}, options.Version)
	policy := sender.Policy{Allow: settings.WebhookAllow, AllowHTTP: settings.WebhookAllowHTTP}
	var faults delivery.Faults
	if settings.Env != config.Production {
		s.Faults = &fault.Service{DB: db}
		faults = s.Faults
	}
	s.Webhooks = webhook.New(webhook.Config{
		DB: db, Jobs: inserter, Keys: keys, Policy: policy, Gate: gate, Observe: s.Metrics.Attempt,
		Sender: sender.New(sender.Config{
			Policy: policy, Timeout: settings.WebhookTimeout, Now: db.Now, Version: options.Version,
			Environment: settings.Env.HeaderValue(),
		}),
		Retries: delivery.Schedule{
			Delays: settings.WebhookRetry, RetryAfterMax: settings.WebhookRetryAfterMax,
		},
		SendTraceparent: settings.WebhookTraceparent, Faults: faults,
	})
	s.Webhooks.Deliveries.Recorded = s.Outbox.Recorded
	s.Why = &why.Service{DB: db, Deliveries: s.Webhooks.Deliveries, Search: s.Search}
	s.Events = &event.Recorder{Webhooks: s.Webhooks, Emails: s.Emails}
	s.Loans = &loan.Service{DB: db, Events: s.Events, Calendar: settings.Calendar()}
	s.Applications = &application.Service{
		DB: db, Events: s.Events, Loans: s.Loans, Products: s.Catalog,
		Switches: settings.Env != config.Production,
	}
	s.Statements = &statement.Service{
		DB: db, Keys: keys, Calendar: settings.Calendar(), Loans: s.Loans,
	}
	s.Alerts = &alert.Service{
		DB: db, Webhooks: s.Webhooks, Emails: s.Emails,
		AttemptLimit: settings.WebhookTimeout, Calendar: settings.Calendar(),
		OverdueDraws: s.overdueDraws,
	}
	return s, nil
}

// overdueDraws returns the overdue draws, for the alerts.
func (s *Services) overdueDraws(ctx context.Context) ([]alert.LateDraw, error) {
	var late []alert.LateDraw
	page := postgres.Paging{Limit: postgres.MaxPage}
	for {
		draws, next, err := s.Loans.Desk(ctx, loan.DeskFilter{Overdue: true}, page)
		if err != nil {
			return nil, err
		}
		for _, draw := range draws {
			late = append(late, alert.LateDraw{ID: draw.ID, Due: draw.Due})
		}
		if next.IsZero() {
			return late, nil
		}
		page.From = next
	}
}

// Close closes the idle connections to endpoints and to the mail server.
func (s *Services) Close() {
	s.Webhooks.Deliveries.Sender.Close()
	if s.MailSender != nil && s.MailSender.SMTP != nil {
		s.MailSender.SMTP.Close()
	}
}

// NewMailSender returns the mail sender. Without a mail server it only keeps the mails.
func (s *Services) NewMailSender() (*email.MailSender, error) {
	from, err := email.ParseSender(s.Settings.MailFrom)
	if err != nil {
		return nil, config.Errors{"DRAWBRIDGE_MAIL_FROM " + err.Error()}
	}
	mailSender := &email.MailSender{
		DB: s.DB, Jobs: s.Jobs, From: from,
		Render:   jobs.RenderMail(s.Settings.PublicURL, s.Settings.Currency),
		Captures: s.Settings.Env == config.Sandbox,
	}
	if s.Settings.SMTPURL == "" {
		return mailSender, nil
	}
	server, err := email.ParseServer(s.Settings.SMTPURL)
	if err != nil {
		return nil, config.Errors{"DRAWBRIDGE_SMTP_URL " + err.Error()}
	}
	mailSender.SMTP = email.NewSMTPClient(server, email.DefaultLimits())
	return mailSender, nil
}

// blobURL is the configured bucket, or a folder of development's data.
func blobURL(settings config.Config) string {
	if settings.BlobURL != "" {
		return settings.BlobURL
	}
	folder, err := filepath.Abs(filepath.Join(DataDir, "blobs"))
	if err != nil {
		// Without a working folder nothing else works either.
		return "file://" + filepath.Join("/", DataDir, "blobs")
	}
	return "file://" + folder
}

// DemoSigningSecret signs the deliveries to the sample receiver.
var DemoSigningSecret = secret.New("whsec_published-demo-secret")

// newReceiver returns a development server's sample receiver, which verifies with the demo secret;
// nil elsewhere.
func newReceiver(settings config.Config, db *postgres.DB) *receiver.Receiver {
	if settings.Env != config.Development {
		return nil
	}
	made := receiver.New(db.Now, DemoSigningSecret)
	made.Slow = settings.WebhookTimeout + time.Second
	return made
}
