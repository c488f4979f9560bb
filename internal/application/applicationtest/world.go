// Package applicationtest builds what tests of applications, loans and events
// start from: a database with a partner, a merchant, products and applications
// in any state, reached by the use cases themselves.
package applicationtest

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverdatabasesql"

	"drawbridge/internal/application"
	"drawbridge/internal/catalog"
	"drawbridge/internal/email"
	"drawbridge/internal/event"
	"drawbridge/internal/lending"
	"drawbridge/internal/loan"
	"drawbridge/internal/partner"
	"drawbridge/internal/postgres"
	"drawbridge/internal/postgres/pgtest"
	"drawbridge/internal/secret"
	"drawbridge/internal/webhook"
	"drawbridge/internal/webhook/sender"
	"drawbridge/internal/webhook/subscription"
)

// World is a database of its own, the services over it, one partner and one
// merchant of that partner.
type World struct {
	DB           *postgres.DB
	Partners     *partner.Service
	Catalog      *catalog.Service
	Webhooks     *webhook.Service
	Emails       *email.Service
	Events       *event.Recorder
	Loans        *loan.Service
	Applications *application.Service

	Partner, Merchant uuid.UUID
}

// Clock stands still until it is moved.
type Clock struct{ micros atomic.Int64 }

// NewClock returns a clock that stands at the present.
func NewClock() *Clock {
	clock := new(Clock)
	clock.micros.Store(time.Now().UnixMicro())
	return clock
}

// Now is what the clock shows.
func (c *Clock) Now() time.Time { return time.UnixMicro(c.micros.Load()).UTC() }

// Move moves the clock, back if by is negative.
func (c *Clock) Move(by time.Duration) { c.micros.Add(by.Microseconds()) }

// New returns a world whose clock is the machine's.
func New(t testing.TB) *World {
	t.Helper()
	return newWorld(t, pgtest.New(t))
}

// NewAt returns a world by another clock.
func NewAt(t testing.TB, clock *Clock) *World {
	t.Helper()
	db := pgtest.New(t)
	db.Now = clock.Now
	return newWorld(t, db)
}

func newWorld(t testing.TB, db *postgres.DB) *World {
	t.Helper()
	w := &World{
		DB:       db,
		Partners: &partner.Service{DB: db},
		Catalog:  &catalog.Service{DB: db},
	}
	w.wire(t)
	w.Partner = w.NewPartner(t, "Solar Partners")
	w.Merchant = w.NewMerchant(t, w.Partner, "Sunny Roofs")
	return w
}

// wire builds the services as the program does, with a queue that only inserts.
func (w *World) wire(t testing.TB) {
	t.Helper()
	queue, err := river.NewClient(riverdatabasesql.New(w.DB.DB.DB), &river.Config{
		FetchCooldown: 5 * time.Millisecond,
	})
	if err != nil {
		t.Fatalf("making the inserting client: %v", err)
	}
	keys, err := secret.ParseKeyring(secret.GenerateKey())
	if err != nil {
		t.Fatalf("making a keyring: %v", err)
	}
	w.Webhooks = &webhook.Service{DB: w.DB, Jobs: queue, Keys: keys}
	w.Emails = email.NewService(queue)
	w.Events = &event.Recorder{Webhooks: w.Webhooks, Emails: w.Emails}
	w.Loans = &loan.Service{DB: w.DB, Events: w.Events}
	w.Applications = &application.Service{
		DB: w.DB, Events: w.Events, Loans: w.Loans, Products: w.Catalog, Switches: true,
	}
}

// Caller is the world's merchant.
func (w *World) Caller() loan.Caller {
	return loan.Caller{MerchantUID: w.Merchant, Name: "client-1"}
}

// Operator reaches everything.
func Operator() loan.Caller { return loan.Caller{Name: "operator"} }

// Do runs one use case in a transaction and fails the test if it is refused.
func (w *World) Do(t testing.TB, use func(ctx context.Context, tx *postgres.Tx) error) {
	t.Helper()
	if err := w.Try(t, use); err != nil {
		t.Fatal(err)
	}
}

// Try runs one use case in a transaction.
func (w *World) Try(t testing.TB, use func(ctx context.Context, tx *postgres.Tx) error) error {
	t.Helper()
	return w.DB.InTx(t.Context(), func(tx *postgres.Tx) error { return use(t.Context(), tx) })
}

// NewPartner adds a partner.
func (w *World) NewPartner(t testing.TB, name string) uuid.UUID {
	t.Helper()
	var made partner.Partner
	w.Do(t, func(ctx context.Context, tx *postgres.Tx) (err error) {
		made, err = w.Partners.CreatePartner(ctx, tx, name)
		return err
	})
	return made.UID
}

// NewMerchant adds a merchant to a partner.
func (w *World) NewMerchant(t testing.TB, partnerUID uuid.UUID, name string) uuid.UUID {
	t.Helper()
	var made partner.Merchant
	w.Do(t, func(ctx context.Context, tx *postgres.Tx) (err error) {
		made, err = w.Partners.CreateMerchant(ctx, tx, partnerUID, name)
		return err
	})
	return made.UID
}

// Subscribe adds a subscription of the world's partner that gets every event.
// change, which may be nil, adapts its settings.
func (w *World) Subscribe(t testing.TB, change func(*subscription.Settings)) subscription.Subscription {
	t.Helper()
	settings := subscription.Settings{
		URL:    "https://hooks.example.com/drawbridge",
		Auth:   sender.AuthHMAC,
		Events: []string{subscription.AllEvents},
	}
	if change != nil {
		change(&settings)
	}
	var made subscription.Subscription
	w.Do(t, func(ctx context.Context, tx *postgres.Tx) (err error) {
		made, _, err = w.Webhooks.Subscribe(ctx, tx, w.Partner, settings, "operator")
		return err
	})
	return made
}

// NewProduct adds a product that lends from 1,000 to 100,000 and pays out by
// the schedule, such as "40,40,20", less a fee of 3.75 %.
func (w *World) NewProduct(t testing.TB, code, schedule string) lending.Product {
	t.Helper()
	return w.AddProduct(t, catalog.NewProduct{Code: code, Schedule: schedule})
}

// AddProduct adds a product; what is empty gets the values of NewProduct.
func (w *World) AddProduct(t testing.TB, request catalog.NewProduct) lending.Product {
	t.Helper()
	fill := func(field *string, value string) {
		if *field == "" {
			*field = value
		}
	}
	fill(&request.Name, "Product "+request.Code)
	fill(&request.Term, "120")
	fill(&request.Rate, "7.99")
	fill(&request.Fee, "3.75")
	fill(&request.Schedule, "40,40,20")
	fill(&request.Min, "1000")
	fill(&request.Max, "100000")
	var made catalog.Product
	w.Do(t, func(ctx context.Context, tx *postgres.Tx) (err error) {
		made, err = w.Catalog.Create(ctx, tx, request)
		return err
	})
	return made.Product
}
