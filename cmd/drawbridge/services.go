package main

import (
	"database/sql"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverdatabasesql"

	"drawbridge/internal/apilog"
	"drawbridge/internal/application"
	"drawbridge/internal/attention"
	"drawbridge/internal/catalog"
	"drawbridge/internal/config"
	"drawbridge/internal/document"
	"drawbridge/internal/email"
	"drawbridge/internal/event"
	"drawbridge/internal/fleet"
	"drawbridge/internal/idempotency"
	"drawbridge/internal/loan"
	"drawbridge/internal/operator"
	"drawbridge/internal/partner"
	"drawbridge/internal/postgres"
	"drawbridge/internal/receiver"
	"drawbridge/internal/restore"
	"drawbridge/internal/retention"
	"drawbridge/internal/secret"
	"drawbridge/internal/webhook"
	"drawbridge/jobs"
)

// services are the use cases over one database.
type services struct {
	settings config.Config
	// effective is what the environment sets, as it may be shown.
	effective    []config.Setting
	db           *postgres.DB
	inserter     *river.Client[*sql.Tx]
	partners     *partner.Service
	catalog      *catalog.Service
	idempotency  *idempotency.Store
	documents    *document.Store
	emails       *email.Service
	courier      *email.Courier
	webhooks     *webhook.Service
	loans        *loan.Service
	applications *application.Service
	operators    *operator.Service
	// receiver is nil in production.
	receiver  *receiver.Receiver
	retention *retention.Service
	restored  *restore.Service
	attention *attention.Service
	fleet     *fleet.Service
	// partitioned tells that this process has seen the partitions that it needs.
	partitioned atomic.Bool
	// stopping tells that the process is about to stop accepting.
	stopping atomic.Bool
	// process is this one, once it serves.
	process fleet.Process
	keys    *secret.Keyring
	// requests reads the log of the partners' requests, recorder writes it.
	requests *apilog.Service
	recorder *apilog.Writer
	meters   *meters
}

// newServices wires the use cases. It is the one place where they are made.
func newServices(
	settings config.Config, db *postgres.DB, keys *secret.Keyring,
) (*services, error) {
	// This client only inserts: in the caller's transaction, over the same
	// driver as the domain. The short cooldown is that of its notifications,
	// without which a job would wait for the next poll.
	inserting := &river.Config{FetchCooldown: 5 * time.Millisecond, Logger: slog.Default()}
	jobs.InsertByClock(inserting, db)
	inserter, err := river.NewClient(riverdatabasesql.New(db.DB.DB), inserting)
	if err != nil {
		return nil, fmt.Errorf("preparing the queue: %w", err)
	}
	bucket, err := document.OpenBucket(blobURL(settings))
	if err != nil {
		return nil, config.Faults{"DRAWBRIDGE_BLOB_URL " + err.Error()}
	}
	recorder := apilog.NewWriter(db)
	webhooks := newWebhooks(settings, keys)
	meters := newMeters(db, recorder, &webhooks.Calls)
	webhooks.DB, webhooks.Jobs, webhooks.Observe = db, inserter, meters.attempt
	emails := email.NewService(inserter)
	operators := &operator.Service{DB: db, Keys: keys}
	events := &event.Recorder{Webhooks: webhooks, Emails: emails}
	loans := &loan.Service{DB: db, Events: events}
	products := &catalog.Service{DB: db}
	return &services{
		settings:  settings,
		db:        db,
		inserter:  inserter,
		partners:  &partner.Service{DB: db},
		catalog:   products,
		documents: document.NewStore(bucket),
		emails:    emails,
		webhooks:  webhooks,
		loans:     loans,
		receiver:  newReceiver(settings, db),
		retention: &retention.Service{DB: db},
		restored:  &restore.Service{DB: db},
		requests:  &apilog.Service{DB: db},
		recorder:  recorder,
		meters:    meters,
		operators: operators,
		fleet:     &fleet.Service{DB: db},
		keys:      keys,
		attention: &attention.Service{
			DB: db, Webhooks: webhooks, Emails: emails, Operators: operators,
			AttemptLimit: settings.WebhookTimeout,
		},
		applications: &application.Service{
			DB: db, Events: events, Loans: loans, Products: products,
			Switches: settings.Env == config.Development,
		},
		idempotency: &idempotency.Store{DB: db},
	}, nil
}

// closeSenders ends the connections that are kept to endpoints and to the mail
// server.
func (s *services) closeSenders() {
	s.webhooks.Sender.Close()
	if s.courier != nil && s.courier.Sender != nil {
		s.courier.Sender.Close()
	}
}

// newWebhooks is the engine as the settings want it, without its database.
func newWebhooks(settings config.Config, keys *secret.Keyring) *webhook.Service {
	policy := webhook.Policy{Allow: settings.WebhookAllow, AllowHTTP: settings.WebhookAllowHTTP}
	return &webhook.Service{
		Keys: keys, Policy: policy,
		Sender: webhook.NewSender(webhook.SenderConfig{
			Policy: policy, Timeout: settings.WebhookTimeout, Version: version,
		}),
		Retries: webhook.Schedule{
			Delays: settings.WebhookRetry, RetryAfterMax: settings.WebhookRetryAfterMax,
		},
		SendTraceparent: settings.WebhookTraceparent,
	}
}

// newCourier returns what sends the mails. Without a mail server it keeps them.
func newCourier(s *services) (*email.Courier, error) {
	from, err := email.ParseSender(s.settings.MailFrom)
	if err != nil {
		return nil, config.Faults{"DRAWBRIDGE_MAIL_FROM " + err.Error()}
	}
	courier := &email.Courier{
		DB: s.db, Jobs: s.inserter, From: from, Render: jobs.RenderMail(s.settings.PublicURL),
	}
	if s.settings.SMTPURL == "" {
		return courier, nil
	}
	server, err := email.ParseServer(s.settings.SMTPURL)
	if err != nil {
		return nil, config.Faults{"DRAWBRIDGE_SMTP_URL " + err.Error()}
	}
	courier.Sender = email.NewSender(server, email.DefaultLimits())
	return courier, nil
}

// blobURL is the configured bucket, or a folder of development's data.
func blobURL(settings config.Config) string {
	if settings.BlobURL != "" {
		return settings.BlobURL
	}
	folder, err := filepath.Abs(filepath.Join(dataDir, "blobs"))
	if err != nil {
		// Without a working folder nothing else works either.
		return "file://" + filepath.Join("/", dataDir, "blobs")
	}
	return "file://" + folder
}
