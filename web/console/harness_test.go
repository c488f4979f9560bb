package console_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"drawbridge/internal/app/apptest"
	"drawbridge/internal/config"
	"drawbridge/internal/lending"
	"drawbridge/internal/operator"
	"drawbridge/internal/postgres"
	"drawbridge/internal/postgres/pgtest"
	"drawbridge/internal/secret"
	"drawbridge/internal/webhook/delivery"
	"drawbridge/internal/webhook/sender"
	"drawbridge/internal/webhook/subscription"
	"drawbridge/web/console"
)

const (
	supportEmail = "sam@lender.example"
	password     = apptest.Password
)

// TestMain silences the log, which would bury test failures.
func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	os.Exit(m.Run())
}

// harness is a console on a socket, with its own database of one partner, one merchant, one
// application and a support user.
type harness struct {
	*testing.T
	*apptest.Harness
	Console *console.Console
	URL     string

	// options are the console's options.
	options console.Options

	application uuid.UUID
	// captures makes deliver store mails to borrowers instead of sending them, as in a sandbox.
	captures bool
	// ahead is how far the clock is ahead of time.
	ahead atomic.Int64
}

func newHarness(t *testing.T, variables ...string) *harness {
	t.Helper()
	r := &harness{T: t}
	db := pgtest.New(t)
	db.Now = func() time.Time { return time.Now().Add(time.Duration(r.ahead.Load())) }
	server := httptest.NewUnstartedServer(nil)
	r.URL = "http://" + server.Listener.Addr().String()
	r.Harness = apptest.On(t, db, append(variables, "DRAWBRIDGE_PUBLIC_URL", r.URL)...)
	var err error
	r.options, err = r.ConsoleOptions()
	r.must(err)
	r.options.JobConsole = http.HandlerFunc(r.riverConsole)
	r.options.Environment = "Development"
	r.options.LiveEvery, r.options.CountTimeout = 10*time.Millisecond, time.Minute
	r.options.Configuration = []config.Setting{{
		Name: "DRAWBRIDGE_WEBHOOK_RETRY", Value: "1m,10m", Source: config.FromDefault, Meaning: "delays",
	}}
	r.Console, err = console.New(r.options)
	r.must(err)
	server.Config.Handler = serve(r.Console)
	server.Start()
	t.Cleanup(server.Close)
	t.Cleanup(r.Console.Close) // before the server, which waits for open streams
	r.NewUser(t, supportEmail, operator.RoleSupport)
	r.seed("Sunvolt Energy", "Sunvolt Phoenix")
	return r
}

// serve puts a console behind Echo as the server does.
func serve(c *console.Console) http.Handler {
	e := echo.New()
	for _, route := range c.Routes() {
		e.Add(route.Method, route.Path, route.Handler)
	}
	e.RouteNotFound(console.Prefix+"/*", c.Elsewhere())
	e.HTTPErrorHandler = func(err error, ctx echo.Context) {
		if !ctx.Response().Committed {
			_ = c.RenderError(ctx, err) // the browser is gone if this fails
		}
	}
	return e
}

// seed creates a partner with a merchant and an application, which the other helpers use
// from then on.
func (r *harness) seed(partnerName, merchantName string) {
	r.Helper()
	r.Partner = r.NewPartner(r, partnerName)
	r.Merchant = r.NewMerchant(r, r.Partner, merchantName)
	r.application = postgres.NewUID(r.DB.Now())
	r.Exec(r, `
		INSERT INTO applications (application_uid, merchant_uid, partner_uid, source, status,
		                          communications, requested_amount, borrower_first_name,
		                          borrower_last_name, borrower_email, project_name,
		                          created_at, updated_at)
		VALUES ($1, $2, $3, 'partner', 'Approved', 'enabled', 1, 'Ana', 'Lima',
		        'ana@example.com', 'Roof', $4, $4)`, r.application, r.Merchant, r.Partner, r.DB.Now())
}

func (r *harness) must(err error) {
	r.Helper()
	if err != nil {
		r.Fatal(err)
	}
}

func (r *harness) exec(statement string, args ...any) {
	r.Helper()
	r.Exec(r, statement, args...)
}

func (r *harness) count(query string, args ...any) int {
	r.Helper()
	return r.Count(r, query, args...)
}

func (r *harness) do(use func(ctx context.Context, tx *postgres.Tx) error) {
	r.Helper()
	r.Do(r, use)
}

func (r *harness) addUser(address string, role operator.Role) {
	r.Helper()
	r.NewUser(r, address, role)
}

// subscribe adds a subscription of the partner to every event.
func (r *harness) subscribe(address string) (subscription.Subscription, secret.String) {
	r.Helper()
	var made subscription.Subscription
	var value secret.String
	r.do(func(ctx context.Context, tx *postgres.Tx) (err error) {
		made, value, err = r.Webhooks.Subscriptions.Subscribe(ctx, tx, r.Partner, subscription.Settings{
			URL: address, Auth: sender.AuthHMAC, Events: []string{subscription.AllEvents},
			Headers: []sender.Header{{Name: "x-api-key", Value: "the-partners-own-key"}},
		}, "test")
		return err
	})
	return made, value
}

// publish commits an event of the application and returns its deliveries,
// newest first.
func (r *harness) publish(status string) []delivery.Delivery {
	r.Helper()
	r.do(func(ctx context.Context, tx *postgres.Tx) error {
		_, err := r.Webhooks.Deliveries.Publish(ctx, tx, delivery.Event{
			UID: postgres.NewUID(tx.Now), Kind: lending.EventStatusUpdated,
			ApplicationUID: r.application, Status: status,
			Head: fmt.Appendf(nil, `{"application_id":%q,"status":%q,"timestamp":"`,
				r.application, status),
			Tail: []byte(`"}`),
		})
		return err
	})
	return r.list()
}

// list returns every delivery, newest first.
func (r *harness) list() []delivery.Delivery {
	r.Helper()
	found, _, err := r.Webhooks.Deliveries.List(r.Context(), delivery.Filter{},
		postgres.Paging{Limit: postgres.MaxPage})
	r.must(err)
	return found
}

// work makes the queued attempts.
func (r *harness) work() {
	r.Helper()
	r.Work(r)
}

// receiver starts an endpoint over plain http.
func (r *harness) receiver(answers ...http.HandlerFunc) *apptest.Endpoint {
	r.Helper()
	return apptest.NewPlainEndpoint(r, answers...)
}

// status answers with only a status.
func status(code int) http.HandlerFunc { return apptest.Status(code) }

// endpointOf is the name of a subscription without a name.
func endpointOf(address string) string { return subscription.Endpoint{URL: address}.Where() }
