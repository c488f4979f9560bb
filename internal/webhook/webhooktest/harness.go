// Package webhooktest provides the webhook services over a separate database per test,
// and endpoints to send to.
package webhooktest

import (
	"context"
	"crypto/x509"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverdatabasesql"

	"drawbridge/internal/outbox"
	"drawbridge/internal/postgres"
	"drawbridge/internal/postgres/pgtest"
	"drawbridge/internal/secret"
	"drawbridge/internal/webhook"
	"drawbridge/internal/webhook/delivery"
	"drawbridge/internal/webhook/sender"
)

// Services are the use cases over one database, assembled as the program does.
type Services struct {
	*webhook.Services
	DB *postgres.DB
}

// Harness is a database with a partner, a merchant and an application, and the
// services over it with a real queue to insert into and a real sender.
type Harness struct {
	*Services
	Clock                          *Clock
	Partner, Merchant, Application uuid.UUID
}

// Clock stands still until it is moved.
type Clock struct{ micros atomic.Int64 }

// Now returns the time that the test has set.
func (c *Clock) Now() time.Time { return time.UnixMicro(c.micros.Load()).UTC() }

// Move advances the clock.
func (c *Clock) Move(by time.Duration) { c.micros.Add(by.Microseconds()) }

// New returns a harness on a new database.
func New(t testing.TB) *Harness {
	t.Helper()
	h := &Harness{Clock: new(Clock)}
	h.Clock.micros.Store(time.Now().UnixMicro())
	h.Services = NewServices(t, pgtest.New(t), h.Clock)
	h.Partner = h.NewPartner(t)
	h.Merchant = h.NewMerchant(t, h.Partner)
	h.Application = h.NewApplication(t, h.Merchant)
	return h
}

// NewServices assembles services as the program does. The sender reaches receivers on
// this machine and trusts their certificates.
func NewServices(t testing.TB, db *postgres.DB, clock *Clock) *Services {
	t.Helper()
	db.Now = clock.Now
	queue := must(river.NewClient(riverdatabasesql.New(db.DB.DB), &river.Config{
		FetchCooldown: 5 * time.Millisecond,
	}))(t)
	policy := sender.Policy{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}
	send := sender.New(sender.Config{Policy: policy, RootCAs: receiverRoots(), Version: "test"})
	t.Cleanup(send.Close)
	services := webhook.New(webhook.Config{
		DB: db, Jobs: queue, Keys: OtherKeys(t), Policy: policy, Sender: send,
		Retries: delivery.Schedule{
			Delays: []time.Duration{time.Minute, 10 * time.Minute}, RetryAfterMax: time.Hour,
		},
	})
	publisher := outbox.New(db)
	// The outbox publishes an event as soon as its transaction has committed.
	services.Deliveries.Recorded = func() {
		if err := publisher.Drain(t.Context()); err != nil && t.Context().Err() == nil {
			t.Error(err)
		}
	}
	return &Services{services, db}
}

// Another returns the services of a second process on the same database.
func (h *Harness) Another(t testing.TB) *Services {
	t.Helper()
	db := must(postgres.Open(t.Context(), h.DB.URL()))(t)
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	second := NewServices(t, db, h.Clock)
	second.Subscriptions.Keys = h.Subscriptions.Keys
	return second
}

var receiverRoots = sync.OnceValue(func() *x509.CertPool {
	server := httptest.NewTLSServer(http.NotFoundHandler())
	defer server.Close()
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	return roots
})

// OtherKeys returns a keyring without the harness's first key.
func OtherKeys(t testing.TB) *secret.Keyring {
	t.Helper()
	return must(secret.ParseKeyring(secret.GenerateKey()))(t)
}

// Do runs one use case and fails the test if it is refused.
func (h *Harness) Do(t testing.TB, use func(ctx context.Context, tx *postgres.Tx) error) {
	t.Helper()
	if err := h.Try(use); err != nil {
		t.Fatal(err)
	}
}

// Try runs a use case in a transaction and returns its error.
func (h *Harness) Try(use func(ctx context.Context, tx *postgres.Tx) error) error {
	ctx := context.Background()
	return h.DB.InTx(ctx, func(tx *postgres.Tx) error { return use(ctx, tx) })
}

// act runs a use case that has a result, and fails the test if it is refused.
func act[T any](
	t testing.TB, h *Harness, use func(ctx context.Context, tx *postgres.Tx) (T, error),
) (made T) {
	t.Helper()
	h.Do(t, func(ctx context.Context, tx *postgres.Tx) (err error) {
		made, err = use(ctx, tx)
		return err
	})
	return made
}

// must fails the test if the call whose results it gets failed.
func must[T any](value T, err error) func(t testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

// Exec runs a statement.
func (h *Harness) Exec(t testing.TB, query string, args ...any) {
	t.Helper()
	must(h.DB.ExecContext(t.Context(), query, args...))(t)
}

// Count returns the number that a query returns.
func (h *Harness) Count(t testing.TB, query string, args ...any) int {
	t.Helper()
	var count int
	if err := h.DB.GetContext(t.Context(), &count, query, args...); err != nil {
		t.Fatal(err)
	}
	return count
}

// NewPartner adds a partner.
func (h *Harness) NewPartner(t testing.TB) uuid.UUID {
	t.Helper()
	uid := postgres.NewUID(h.Clock.Now())
	h.Exec(t, `INSERT INTO partners VALUES ($1, 'Solar Partners', $2)`, uid, h.Clock.Now())
	return uid
}

// NewMerchant adds a merchant of a partner.
func (h *Harness) NewMerchant(t testing.TB, partner uuid.UUID) uuid.UUID {
	t.Helper()
	uid := postgres.NewUID(h.Clock.Now())
	h.Exec(t, `INSERT INTO merchants VALUES ($1, $2, 'Sunny Roofs', $3)`, uid, partner, h.Clock.Now())
	return uid
}

// NewApplication adds an application of a merchant.
func (h *Harness) NewApplication(t testing.TB, merchant uuid.UUID) uuid.UUID {
	t.Helper()
	uid := postgres.NewUID(h.Clock.Now())
	h.Exec(t, `
		INSERT INTO applications (application_uid, merchant_uid, partner_uid, source, status,
		                          communications, requested_amount, borrower_first_name,
		                          borrower_last_name, borrower_email, project_name,
		                          created_at, updated_at)
		SELECT $1, merchant_uid, partner_uid, 'partner', 'Approved', 'enabled', 1, 'Ana', 'Lima',
		       'ana@example.com', 'Roof', $3, $3
		  FROM merchants
		 WHERE merchant_uid = $2`, uid, merchant, h.Clock.Now())
	return uid
}
