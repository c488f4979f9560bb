// Package apptest runs the product for tests: a database of the test's own, every service on it,
// wired as in the program, a clock that a test can set, and common test data. The API server and
// the signed-in console client are built on the same harness.
package apptest

import (
	"context"
	"encoding/json"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alexedwards/argon2id"
	"github.com/google/uuid"

	"drawbridge/internal/app"
	"drawbridge/internal/config"
	"drawbridge/internal/operator"
	"drawbridge/internal/postgres"
	"drawbridge/internal/postgres/pgtest"
	"drawbridge/internal/secret"
	"drawbridge/internal/webhook/delivery"
	"drawbridge/internal/webhook/sender"
)

// Password is what every user of a harness signs in with.
const Password = "correct horse battery"

// Harness is a database of its own and the services on it. Its lender deals with the merchant Sunny
// Roofs of the partner Solar Partners.
type Harness struct {
	*app.Services

	Partner, Merchant uuid.UUID
}

// Clock stands still until it is moved.
type Clock struct{ micros atomic.Int64 }

// NewClock returns a clock that stands at the present.
func NewClock() *Clock {
	clock := new(Clock)
	clock.Set(time.Now())
	return clock
}

// Now is what the clock shows.
func (c *Clock) Now() time.Time { return time.UnixMicro(c.micros.Load()).UTC() }

// Set sets the clock.
func (c *Clock) Set(at time.Time) { c.micros.Store(at.UnixMicro()) }

// Move moves the clock, back if by is negative.
func (c *Clock) Move(by time.Duration) { c.micros.Add(by.Microseconds()) }

// New returns a harness on the machine's clock. The settings are those of development, overridden
// by the variables: name, value, name, value.
func New(t testing.TB, variables ...string) *Harness {
	t.Helper()
	return On(t, pgtest.New(t), variables...).seed(t)
}

// NewAt returns a harness on another clock.
func NewAt(t testing.TB, clock *Clock, variables ...string) *Harness {
	t.Helper()
	db := pgtest.New(t)
	db.Now = clock.Now
	return On(t, db, variables...).seed(t)
}

// On wires the services over an existing database, and adds nothing to it. Passwords are hashed
// cheaply, and endpoints on this machine are trusted.
func On(t testing.TB, db *postgres.DB, variables ...string) *Harness {
	t.Helper()
	set := map[string]string{
		"DATABASE_URL":           db.URL(),
		"DRAWBRIDGE_BLOB_URL":    "file://" + t.TempDir(),
		"DRAWBRIDGE_SECRETS_KEY": secret.GenerateKey(),
		"DRAWBRIDGE_PUBLIC_URL":  "https://drawbridge.example",
		"DRAWBRIDGE_MAIL_FROM":   "Meadow <mail@meadow.example>",
	}
	for pair := range slices.Chunk(variables, 2) {
		set[pair[0]] = pair[1]
	}
	settings, err := config.Load(func(name string) string { return set[name] })
	must(t, err)
	keys, err := secret.ParseKeyring(settings.SecretsKey)
	must(t, err)
	services, err := app.New(settings, db, keys, app.Options{Version: "test"})
	must(t, err)
	services.Operators.Passwords = cheap
	services.Webhooks.Deliveries.Sender.Close()
	services.Webhooks.UseSender(sender.New(sender.Config{
		Policy: services.Webhooks.Subscriptions.Policy, Timeout: settings.WebhookTimeout, Version: "test",
		RootCAs: endpointRoots(),
	}))
	// A change returns only once its events have been published.
	services.Webhooks.Deliveries.Recorded = func() {
		if err := services.Outbox.Drain(t.Context()); err != nil && t.Context().Err() == nil {
			t.Error(err)
		}
	}
	t.Cleanup(services.Close)
	return &Harness{Services: services}
}

// cheap hashes passwords fast: no test here is about how they are hashed.
var cheap = operator.NewHasher(argon2id.Params{
	Memory: 64, Iterations: 1, Parallelism: 1, SaltLength: 16, KeyLength: 32,
})

// seed adds the partner and the merchant.
func (h *Harness) seed(t testing.TB) *Harness {
	t.Helper()
	h.Partner = h.NewPartner(t, "Solar Partners")
	h.Merchant = h.NewMerchant(t, h.Partner, "Sunny Roofs")
	return h
}

// Do runs one use case in a transaction and fails the test if it is refused.
func (h *Harness) Do(t testing.TB, use func(ctx context.Context, tx *postgres.Tx) error) {
	t.Helper()
	must(t, h.Try(t, use))
}

// Try runs one use case in a transaction.
func (h *Harness) Try(t testing.TB, use func(ctx context.Context, tx *postgres.Tx) error) error {
	t.Helper()
	return h.DB.InTx(t.Context(), func(tx *postgres.Tx) error { return use(t.Context(), tx) })
}

// do runs one use case in a transaction and returns its result.
func do[T any](
	t testing.TB, h *Harness, use func(ctx context.Context, tx *postgres.Tx) (T, error),
) (made T) {
	t.Helper()
	h.Do(t, func(ctx context.Context, tx *postgres.Tx) (err error) {
		made, err = use(ctx, tx)
		return err
	})
	return made
}

// Exec runs a statement.
func (h *Harness) Exec(t testing.TB, statement string, args ...any) {
	t.Helper()
	pgtest.Exec(t, h.DB, statement, args...)
}

// Count runs a query that returns one number.
func (h *Harness) Count(t testing.TB, query string, args ...any) int {
	t.Helper()
	return pgtest.Count(t, h.DB, query, args...)
}

// Work makes the queued attempts, as the workers would.
func (h *Harness) Work(t testing.TB) {
	t.Helper()
	var rows [][]byte
	must(t, h.DB.SelectContext(t.Context(), &rows,
		`DELETE FROM river_job WHERE queue = $1 RETURNING args`, delivery.Queue))
	for _, row := range rows {
		var job delivery.Args
		must(t, json.Unmarshal(row, &job))
		must(t, h.Webhooks.Deliveries.Deliver(t.Context(), job, delivery.Run{}))
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
