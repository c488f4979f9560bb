package main

import (
	"cmp"
	"context"
	"crypto/x509"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"

	"drawbridge/internal/app"
	"drawbridge/internal/application"
	"drawbridge/internal/config"
	"drawbridge/internal/lending"
	"drawbridge/internal/loan"
	"drawbridge/internal/partner"
	"drawbridge/internal/postgres"
	"drawbridge/internal/secret"
	"drawbridge/internal/webhook/sender"
	"drawbridge/internal/webhook/subscription"
)

// attemptTimeout limits an attempt; no endpoint here comes near it.
const attemptTimeout = 30 * time.Second

// harness is the program's services over one database, with endpoints on this machine.
type harness struct{ *app.Services }

// newHarness opens a new database and wires the services over it; roots are trusted for
// the endpoints' certificates.
func (b *bench) newHarness(
	ctx context.Context, open *cleanup, roots *x509.CertPool,
) (*harness, error) {
	url, err := b.cluster.newDatabase(ctx)
	if err != nil {
		return nil, err
	}
	settings, err := configure(url, b.cluster.folder)
	if err != nil {
		return nil, err
	}
	return openHarness(ctx, open, settings, roots)
}

// configure makes the settings for services over a database, with a folder for files.
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

// openHarness opens a database and wires the services of one process over it.
func openHarness(
	ctx context.Context, open *cleanup, settings config.Config, roots *x509.CertPool,
) (*harness, error) {
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

// recorded wires the same services over connections whose statements are recorded.
func (h *harness) recorded() (*harness, *recorder, error) {
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
func wire(db *postgres.DB, settings config.Config, roots *x509.CertPool) (*harness, error) {
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
	s.MailSender, err = s.NewMailSender()
	return &harness{s}, err
}

// close frees the connections.
func (h *harness) close() error {
	h.Close()
	return h.DB.Close()
}

// stopTimeout is how long jobs in flight may take to end.
const stopTimeout = 30 * time.Second

// runQueue works queues with River alone while do runs.
func (h *harness) runQueue(ctx context.Context, queues *river.Config, do func() error) error {
	pool, err := pgxpool.New(ctx, h.DB.URL())
	if err != nil {
		return fmt.Errorf("connecting the queue: %w", err)
	}
	defer pool.Close()
	queues.Logger = slog.Default()
	client, err := river.NewClient(riverpgxv5.New(pool), queues)
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

// working runs do while worker processes, each with its own services, work their queues as the
// program does.
func working(ctx context.Context, harnesses []*harness, do func() error) error {
	ctx, stop := context.WithCancel(ctx)
	started := make(chan struct{}, len(harnesses))
	ended := make(chan error, len(harnesses))
	for _, h := range harnesses {
		go func() {
			leave := app.InBackground(ctx, h.Appear)
			err := h.Work(ctx, func() { started <- struct{}{} })
			leave()
			ended <- err
		}()
	}
	var err error
	running := len(harnesses)
	for range harnesses {
		select {
		case <-started:
		case early := <-ended:
			err = errors.Join(err, cmp.Or(early, context.Cause(ctx)))
			running--
		}
	}
	if running == len(harnesses) {
		err = do()
	}
	stop()
	for range running {
		err = errors.Join(err, <-ended)
	}
	return err
}

// tenant is a partner with one merchant, credentials and a subscription.
type tenant struct {
	partner, merchant, subscription uuid.UUID
	client                          partner.Issued
	// product is the product that its borrowers accept, if they accept one.
	product uuid.UUID
}

// caller is the tenant's merchant, as the services identify it.
func (t tenant) caller() loan.Caller {
	return loan.Caller{MerchantUID: t.merchant, Name: t.client.ClientID}
}

// freeRate, per second, and freeBurst are limits that no measurement reaches.
const freeRate, freeBurst = 100_000, 200_000

// newTenant adds a partner with a rate limit that no measurement reaches, all of whose events go,
// signed, to the endpoint at url.
func (h *harness) newTenant(ctx context.Context, name, url string) (tenant, error) {
	var made tenant
	err := h.DB.InTx(ctx, func(tx *postgres.Tx) error {
		owner, err := h.Partners.CreatePartner(ctx, tx, name, "")
		if err != nil {
			return err
		}
		merchant, err := h.Partners.CreateMerchant(ctx, tx, owner.UID, name)
		if err != nil {
			return err
		}
		client, err := h.addClient(ctx, tx, owner.UID)
		if err != nil {
			return err
		}
		subscribed, _, err := h.Webhooks.Subscriptions.Subscribe(ctx, tx, owner.UID,
			subscription.Settings{
				URL: url, Auth: sender.AuthHMAC, Secret: signingSecret,
				Events: []string{subscription.AllEvents},
			}, "bench")
		made = tenant{owner.UID, merchant.UID, subscribed.UID, client, uuid.Nil}
		return err
	})
	if err != nil {
		return tenant{}, fmt.Errorf("adding tenant %s: %w", name, err)
	}
	return made, nil
}

// addClient gives a partner credentials with a rate limit that no measurement reaches.
func (h *harness) addClient(
	ctx context.Context, tx *postgres.Tx, owner uuid.UUID,
) (partner.Issued, error) {
	client, err := h.Partners.CreateClient(ctx, tx, partner.NewClient{PartnerUID: owner})
	if err != nil {
		return client, err
	}
	return client, h.Partners.SetRate(ctx, tx, client.ClientID, freeRate, freeBurst)
}

// stage is how far an application has progressed.
type stage int

const (
	// created waits for its decision.
	created stage = iota
	// offered waits for the borrower to accept.
	offered
	// opened is approved and has a loan without draws.
	opened
)

// newApplication takes a new application through the services to a stage. For stages after
// created the tenant must have a product, which is accepted for opened.
func (h *harness) newApplication(ctx context.Context, t tenant, to stage) (uuid.UUID, error) {
	var uid uuid.UUID
	income, by := lending.Cents(96_000_00), t.caller()
	err := h.DB.InTx(ctx, func(tx *postgres.Tx) error {
		made, err := h.Applications.Create(ctx, tx, application.NewApplication{
			Source: lending.SourcePartner, PartnerUID: t.partner, MerchantUID: t.merchant,
			RequestedAmount: lending.Cents(25_000_00),
			Borrower: application.Borrower{
				FirstName: "Bea", LastName: "Borrower", Email: "bea@borrower.example",
				AnnualIncome: &income,
			},
			Project: application.Project{Name: "New roof"},
		})
		if uid = made.UID; err != nil || to == created {
			return err
		}
		if _, err = h.Applications.RunDecision(ctx, tx, by, uid); err != nil || to == offered {
			return err
		}
		_, err = h.Applications.AcceptOffer(ctx, tx, by,
			application.Acceptance{ApplicationUID: uid, ProductUID: t.product})
		if err != nil {
			return err
		}
		_, err = h.Applications.Move(ctx, tx, by, uid, lending.StatusApproved)
		return err
	})
	if err != nil {
		return uuid.Nil, fmt.Errorf("preparing an application: %w", err)
	}
	return uid, nil
}

// applications returns n copies of an application that was taken to a stage, with its offers and
// its loan, if any. Rows are copied with all their columns, under new identifiers.
func (h *harness) applications(
	ctx context.Context, t tenant, to stage, n int,
) ([]uuid.UUID, error) {
	original, err := h.newApplication(ctx, t, to)
	if err != nil {
		return nil, err
	}
	uids := make([]uuid.UUID, n)
	for i := range uids {
		uids[i] = postgres.NewUID(h.DB.Now())
	}
	err = h.DB.InTx(ctx, func(tx *postgres.Tx) error {
		for _, table := range []string{"applications", "offers", "loans", "loan_stages"} {
			//nolint:unqueryvet // a copy has whatever columns its original has
			_, err := tx.ExecContext(ctx, `
				INSERT INTO `+table+`
				SELECT copy.*
				  FROM `+table+` AS original,
				       unnest($2::uuid[]) AS target (uid),
				       jsonb_populate_record(original,
				           jsonb_build_object('application_uid', target.uid)) AS copy
				 WHERE original.application_uid = $1`, original, pq.Array(uids))
			if err != nil {
				return fmt.Errorf("copying %s of application %s: %w", table, original, err)
			}
		}
		return nil
	})
	return uids, err
}
