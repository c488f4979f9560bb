package main

import (
	"context"
	"crypto/x509"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"

	"drawbridge/internal/app"
	"drawbridge/internal/config"
	"drawbridge/internal/postgres"
	"drawbridge/internal/queue"
	"drawbridge/internal/secret"
	"drawbridge/internal/webhook/sender"
	"drawbridge/jobs"
)

// attemptTimeout bounds an attempt; no endpoint here comes near it.
const attemptTimeout = 30 * time.Second

// house is the program's services over one database, with endpoints on this machine.
type house struct{ *app.Services }

// newHouse opens a new database and wires the services over it; roots are trusted for
// the endpoints' certificates.
func (b *bench) newHouse(ctx context.Context, open *ends, roots *x509.CertPool) (*house, error) {
	url, err := b.cluster.newDatabase(ctx)
	if err != nil {
		return nil, err
	}
	settings, err := configure(url, b.cluster.folder)
	if err != nil {
		return nil, err
	}
	return openHouse(ctx, open, settings, roots)
}

// configure makes the settings of services over a database, with a folder for files.
func configure(url, folder string) (config.Config, error) {
	set := map[string]string{
		"DATABASE_URL":                  url,
		"DRAWBRIDGE_BLOB_URL":           "file://" + filepath.Join(folder, "blobs"),
		"DRAWBRIDGE_SECRETS_KEY":        secret.GenerateKey(),
		"DRAWBRIDGE_PUBLIC_URL":         "http://127.0.0.1",
		"DRAWBRIDGE_MAIL_FROM":          "bench@lender.example",
		"DRAWBRIDGE_WEBHOOK_ALLOW":      "127.0.0.0/8",
		"DRAWBRIDGE_WEBHOOK_ALLOW_HTTP": "true",
		"DRAWBRIDGE_WEBHOOK_RETRY":      "1m,1m",
		"DRAWBRIDGE_WEBHOOK_TIMEOUT":    attemptTimeout.String(),
	}
	return config.Load(func(name string) string { return set[name] })
}

// openHouse wires the services of a process.
func openHouse(
	ctx context.Context, open *ends, settings config.Config, roots *x509.CertPool,
) (*house, error) {
	db, err := postgres.Open(ctx, settings.DatabaseURL)
	if err != nil {
		return nil, err
	}
	h, err := wire(db, settings, roots)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	open.add(h.close)
	return h, nil
}

// recorded wires the same services over connections that are written down.
func (h *house) recorded() (*house, *recorder, error) {
	connector, err := pq.NewConnector(h.DB.URL())
	if err != nil {
		return nil, nil, fmt.Errorf("reading the database URL: %w", err)
	}
	tape := &recorder{Connector: connector}
	db := &postgres.DB{DB: sqlx.NewDb(sql.OpenDB(tape), "postgres"), Now: time.Now}
	copied, err := wire(db, h.Settings, nil)
	return copied, tape, err
}

// wire makes the services over a database.
func wire(db *postgres.DB, settings config.Config, roots *x509.CertPool) (*house, error) {
	keys, err := secret.ParseKeyring(settings.SecretsKey)
	if err != nil {
		return nil, err
	}
	s, err := app.New(settings, db, keys, app.Options{Version: "bench"})
	if err != nil {
		return nil, err
	}
	s.Webhooks.Deliveries.Sender.Close()
	s.Webhooks.UseSender(sender.New(sender.Config{
		Policy: s.Webhooks.Subscriptions.Policy, RootCAs: roots, Timeout: attemptTimeout,
	}))
	s.Courier, err = s.NewCourier()
	return &house{s}, err
}

// close frees the connections.
func (h *house) close() error {
	h.Close()
	return h.DB.Close()
}

// stopTimeout is what jobs in flight have to end.
const stopTimeout = 30 * time.Second

// runQueue works a queue with River alone, as long as do takes.
func (h *house) runQueue(ctx context.Context, queues *river.Config, do func() error) error {
	pool, err := pgxpool.New(ctx, h.DB.URL())
	if err != nil {
		return fmt.Errorf("connecting the queue: %w", err)
	}
	defer pool.Close()
	return runClient(ctx, riverpgxv5.New(pool), queues, do)
}

// runClient runs a client of River as long as do takes.
func runClient(
	ctx context.Context, driver riverdriver.Driver[pgx.Tx], queues *river.Config, do func() error,
) error {
	queues.Logger = slog.Default()
	client, err := river.NewClient(driver, queues)
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
// deliveries, the promoter of due ones and the publisher of events included.
func working(ctx context.Context, houses []*house, do func() error) error {
	if len(houses) == 0 {
		return do()
	}
	h := houses[0]
	pool, err := queue.Connect(ctx, h.DB)
	if err != nil {
		return fmt.Errorf("connecting the queue: %w", err)
	}
	defer pool.Close()
	driver := queue.NewDriver(pool, h.DB.Now)
	return runClient(ctx, driver, h.QueueConfig(), func() error {
		promoting, cancel := context.WithCancel(ctx)
		var promoter sync.WaitGroup
		defer promoter.Wait()
		defer cancel()
		promoter.Go(func() { jobs.Promote(promoting, h.Webhooks) })
		promoter.Go(func() { h.Outbox.Run(promoting) })
		promoter.Go(func() { driver.LookBehind(promoting) })
		return working(ctx, houses[1:], do)
	})
}
