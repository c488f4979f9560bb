package main

import (
	"context"
	"crypto/x509"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"net/mail"
	"net/netip"
	"path/filepath"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverdatabasesql"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"

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
	inserter *river.Client[*sql.Tx]
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

// newHouse opens a new database and wires the services over it; roots are trusted for
// the endpoints' certificates.
func (b *bench) newHouse(ctx context.Context, open *ends, roots *x509.CertPool) (*house, error) {
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
	h, err := wire(db, keys, roots)
	if err != nil {
		return nil, err
	}
	open.add(h.close)
	bucket, err := document.OpenBucket("file://" + filepath.Join(b.cluster.folder, "blobs"))
	if err != nil {
		return nil, fmt.Errorf("opening the folder of uploads: %w", err)
	}
	h.api.Bucket, h.jobs.Documents = bucket, document.NewStore(bucket)
	return h, nil
}

// another wires the services of a second process on the same database.
func (h *house) another(ctx context.Context, open *ends) (*house, error) {
	db, err := postgres.Open(ctx, h.db.URL())
	if err != nil {
		return nil, err
	}
	made, err := wire(db, h.keys, nil)
	if err != nil {
		return nil, err
	}
	open.add(made.close)
	made.jobs.Documents = h.jobs.Documents
	return made, nil
}

// recorded wires the same services over connections that are written down.
func (h *house) recorded() (*house, *recorder, error) {
	connector, err := pq.NewConnector(h.db.URL())
	if err != nil {
		return nil, nil, fmt.Errorf("reading the database URL: %w", err)
	}
	tape := &recorder{Connector: connector}
	db := &postgres.DB{DB: sqlx.NewDb(sql.OpenDB(tape), "postgres"), Now: time.Now}
	copied, err := wire(db, h.keys, nil)
	return copied, tape, err
}

// wire makes the services over a database.
func wire(db *postgres.DB, keys *secret.Keyring, roots *x509.CertPool) (*house, error) {
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
		db: db, keys: keys, inserter: inserter,
		partners: &partner.Service{DB: db}, catalog: &catalog.Service{DB: db},
		webhooks: &webhook.Service{
			DB: db, Jobs: inserter, Keys: keys, Policy: policy,
			Sender: webhook.NewSender(webhook.SenderConfig{
				Policy: policy, RootCAs: roots, Timeout: attemptTimeout,
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
	return h, nil
}

// close frees the connections.
func (h *house) close() error {
	h.webhooks.Sender.Close()
	return h.db.Close()
}

// stopTimeout is what jobs in flight have to end.
const stopTimeout = 30 * time.Second

// runQueue works a queue with a client of River over pgx, as the program runs it, as
// long as do takes.
func (h *house) runQueue(
	ctx context.Context, config *river.Config, do func() error,
) (err error) {
	pool, err := pgxpool.New(ctx, h.db.URL())
	if err != nil {
		return fmt.Errorf("connecting the queue: %w", err)
	}
	defer pool.Close()
	config.Logger = slog.Default()
	client, err := river.NewClient(riverpgxv5.New(pool), config)
	if err != nil {
		return fmt.Errorf("preparing the queue: %w", err)
	}
	ctx = context.WithoutCancel(ctx)
	if err := client.Start(ctx); err != nil {
		return fmt.Errorf("starting the queue: %w", err)
	}
	err = do()
	ctx, cancel := context.WithTimeout(ctx, stopTimeout)
	defer cancel()
	return errors.Join(err, client.Stop(ctx))
}

// working runs do while working processes, each with services of its own, work the
// deliveries, the promoter of due ones included.
func working(ctx context.Context, houses []*house, do func() error) error {
	if len(houses) == 0 {
		return do()
	}
	h := houses[0]
	return h.runQueue(ctx, jobs.Config(h.jobs), func() error {
		promoting, cancel := context.WithCancel(ctx)
		var promoter sync.WaitGroup
		defer promoter.Wait()
		defer cancel()
		promoter.Go(func() { jobs.Promote(promoting, h.webhooks) })
		return working(ctx, houses[1:], do)
	})
}
