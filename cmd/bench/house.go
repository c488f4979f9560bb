package main

import (
	"context"
	"crypto/x509"
	"database/sql"
	"fmt"
	"net/mail"
	"net/netip"
	"path/filepath"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverdatabasesql"

	"drawbridge/internal/application"
	"drawbridge/internal/attention"
	"drawbridge/internal/catalog"
	"drawbridge/internal/document"
	"drawbridge/internal/email"
	"drawbridge/internal/event"
	"drawbridge/internal/idempotency"
	"drawbridge/internal/loan"
	"drawbridge/internal/operator"
	"drawbridge/internal/partner"
	"drawbridge/internal/postgres"
	"drawbridge/internal/secret"
	"drawbridge/internal/webhook"
	"drawbridge/jobs"
	"drawbridge/web/api"
)

// cooldown is that of the program's inserting client: the least time between
// two notifications of a queue.
const cooldown = 5 * time.Millisecond

// attemptTimeout bounds an attempt; no endpoint here comes near it.
const attemptTimeout = 30 * time.Second

// house is the services over one database, wired as the program wires them.
type house struct {
	db       *postgres.DB
	keys     *secret.Keyring
	partners *partner.Service
	catalog  *catalog.Service
	webhooks *webhook.Service
	events   *event.Recorder
	loans    *loan.Service
	// applications and the rest of the partner API.
	api *api.API
	// jobs is what the working process needs.
	jobs jobs.Deps
}

// settings are what a house needs beyond its database.
type settings struct {
	keys *secret.Keyring
	// roots are trusted for the endpoints' certificates.
	roots *x509.CertPool
	// blobs is the folder of uploads.
	blobs string
}

// newHouse opens a new database and wires the services over it.
func (b *bench) newHouse(ctx context.Context, roots *x509.CertPool) (*house, error) {
	url, err := b.cluster.newDatabase(ctx)
	if err != nil {
		return nil, err
	}
	db, err := postgres.Open(ctx, url)
	if err != nil {
		return nil, err
	}
	keys, err := secret.ParseKeyring(secret.GenerateKey())
	if err != nil {
		return nil, err
	}
	blobs := filepath.Join(b.cluster.folder, "blobs")
	return wire(db, settings{keys: keys, roots: roots, blobs: blobs})
}

// recorded wires the same services over connections that are written down.
func (h *house) recorded() (*house, *recorder, error) {
	connector, err := pq.NewConnector(h.db.URL())
	if err != nil {
		return nil, nil, fmt.Errorf("reading the database URL: %w", err)
	}
	tape := &recorder{Connector: connector}
	db := &postgres.DB{DB: sqlx.NewDb(sql.OpenDB(tape), "postgres"), Now: time.Now}
	copied, err := wire(db, settings{keys: h.keys})
	return copied, tape, err
}

// wire makes the services over a database.
func wire(db *postgres.DB, s settings) (*house, error) {
	inserter, err := river.NewClient(riverdatabasesql.New(db.DB.DB), &river.Config{
		FetchCooldown: cooldown,
	})
	if err != nil {
		return nil, fmt.Errorf("preparing the queue: %w", err)
	}
	policy := webhook.Policy{
		Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, AllowHTTP: true,
	}
	h := &house{
		db: db, keys: s.keys,
		partners: &partner.Service{DB: db}, catalog: &catalog.Service{DB: db},
		webhooks: &webhook.Service{
			DB: db, Jobs: inserter, Keys: s.keys, Policy: policy,
			Sender: webhook.NewSender(webhook.SenderConfig{
				Policy: policy, RootCAs: s.roots, Timeout: attemptTimeout,
			}),
			Retries: webhook.Schedule{Delays: []time.Duration{time.Minute, time.Minute}},
		},
	}
	h.events = &event.Recorder{Webhooks: h.webhooks, Emails: email.NewService(inserter)}
	h.loans = &loan.Service{DB: db, Events: h.events}
	replies := &idempotency.Store{DB: db}
	h.api = &api.API{
		Partners: h.partners, Limiter: &partner.Limiter{DB: db}, Idempotency: replies,
		Applications: &application.Service{
			DB: db, Events: h.events, Loans: h.loans, Products: h.catalog,
		},
		Loans: h.loans, Calls: &h.webhooks.Calls, Now: db.Now,
	}
	h.jobs = jobs.Deps{
		Attention: &attention.Service{
			DB: db, Webhooks: h.webhooks, Emails: h.events.Emails,
			Operators: &operator.Service{DB: db}, AttemptLimit: attemptTimeout,
		},
		DB: db, Webhooks: h.webhooks, Idempotency: replies, Loans: h.loans,
		Courier: &email.Courier{
			DB: db, Jobs: inserter, From: &mail.Address{Address: "bench@lender.example"},
			Render: jobs.RenderMail("http://127.0.0.1"),
		},
		WebhookTimeout: attemptTimeout,
	}
	if err := h.openBucket(s.blobs); err != nil {
		return nil, err
	}
	return h, nil
}

// openBucket gives the API its uploads; services that are only recorded need none.
func (h *house) openBucket(folder string) error {
	if folder == "" {
		return nil
	}
	bucket, err := document.OpenBucket("file://" + folder)
	if err != nil {
		return fmt.Errorf("opening the folder of uploads: %w", err)
	}
	h.api.Bucket, h.jobs.Documents = bucket, document.NewStore(bucket)
	return nil
}

// close frees the connections.
func (h *house) close() error {
	h.webhooks.Sender.Close()
	return h.db.Close()
}
