package console_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alexedwards/argon2id"
	"github.com/google/uuid"
	"github.com/labstack/echo/v4"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverdatabasesql"

	"drawbridge/internal/apilog"
	"drawbridge/internal/application"
	"drawbridge/internal/attention"
	"drawbridge/internal/document"
	"drawbridge/internal/email"
	"drawbridge/internal/fleet"
	"drawbridge/internal/lending"
	"drawbridge/internal/operator"
	"drawbridge/internal/partner"
	"drawbridge/internal/postgres"
	"drawbridge/internal/postgres/pgtest"
	"drawbridge/internal/queue"
	"drawbridge/internal/receiver"
	"drawbridge/internal/restore"
	"drawbridge/internal/retention"
	"drawbridge/internal/search"
	"drawbridge/internal/secret"
	"drawbridge/internal/webhook"
	"drawbridge/views/operations"
	"drawbridge/web/api"
	"drawbridge/web/console"
)

const (
	supportEmail = "sam@lender.example"
	password     = "correct horse battery"
)

// cheap hashes passwords fast: how they are hashed is not the matter here.
var cheap = operator.NewHasher(argon2id.Params{
	Memory: 64, Iterations: 1, Parallelism: 1, SaltLength: 16, KeyLength: 32,
})

// TestMain silences the log, which would bury what failed.
func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	os.Exit(m.Run())
}

// room is a console on a socket, over a database of its own with one partner,
// one merchant, one application and a support user.
type room struct {
	*testing.T
	DB           *postgres.DB
	Operators    *operator.Service
	Webhooks     *webhook.Service
	Emails       *email.Service
	Applications *application.Service
	Documents    *document.Store
	Console      *console.Console
	URL          string

	// options are what the console was made of.
	options console.Options

	partner, merchant, application uuid.UUID
	// ahead is how far the clock is ahead of time.
	ahead atomic.Int64
}

func newRoom(t *testing.T) *room {
	t.Helper()
	r := &room{T: t, DB: pgtest.New(t)}
	r.DB.Now = func() time.Time { return time.Now().Add(time.Duration(r.ahead.Load())) }
	keys, err := secret.ParseKeyring(secret.GenerateKey())
	r.must(err)
	r.Operators = &operator.Service{DB: r.DB, Keys: keys, Passwords: cheap}
	r.Webhooks = r.newWebhooks()
	r.Emails = email.NewService(r.newQueue())
	r.Applications, r.Documents = r.newApplications(), r.newDocuments()
	server := httptest.NewUnstartedServer(nil)
	r.URL = "http://" + server.Listener.Addr().String()
	r.options = console.Options{
		DB: r.DB, Operators: r.Operators, Webhooks: r.Webhooks,
		Search: &search.Service{DB: r.DB}, Emails: r.Emails,
		Partners:     &partner.Service{DB: r.DB},
		Applications: r.Applications, Loans: r.Applications.Loans, Documents: r.Documents,
		Products: r.Applications.Products,
		Requests: &apilog.Service{DB: r.DB}, BasePath: "/api",
		Queues: &queue.Service{
			DB: r.DB, Jobs: r.newQueue(), Names: []string{"default", email.Queue, webhook.Queue},
		},
		Retention: &retention.Service{DB: r.DB},
		Configuration: []operations.ConfigRow{{
			Name: "DRAWBRIDGE_WEBHOOK_RETRY", Value: "1m,10m", From: "default", Meaning: "delays",
		}},
		JobConsole: http.HandlerFunc(r.riverConsole),
		PublicURL:  r.URL, Environment: "Development", Version: "test", Status: api.Status,
		LiveEvery: 10 * time.Millisecond, CountPatience: time.Minute,
		Attention: &attention.Service{
			DB: r.DB, Webhooks: r.Webhooks, Emails: r.Emails, Operators: r.Operators,
			AttemptLimit: 30 * time.Second,
		},
		Fleet:       &fleet.Service{DB: r.DB},
		Development: &console.Development{Receiver: receiver.New(r.DB.Now)},
		Restored:    &restore.Service{DB: r.DB},
	}
	r.Console, err = console.New(r.options)
	r.must(err)
	server.Config.Handler = serve(r.Console)
	server.Start()
	t.Cleanup(server.Close)
	t.Cleanup(r.Console.Close) // before the server, which waits for open streams
	r.furnish()
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
			_ = c.RenderFault(ctx, err) // the browser is gone if this fails
		}
	}
	return e
}

func (r *room) newWebhooks() *webhook.Service {
	r.Helper()
	inserter, err := river.NewClient(riverdatabasesql.New(r.DB.DB.DB), &river.Config{})
	r.must(err)
	keys := r.Operators.Keys
	policy := webhook.Policy{
		Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, AllowHTTP: true,
	}
	sender := webhook.NewSender(webhook.SenderConfig{Policy: policy, Version: "test"})
	r.Cleanup(sender.Close)
	return &webhook.Service{
		DB: r.DB, Jobs: inserter, Keys: keys, Policy: policy, Sender: sender,
		Retries: webhook.Schedule{Delays: []time.Duration{time.Minute, 10 * time.Minute}},
	}
}

// furnish adds the people and things that every test needs.
func (r *room) furnish() {
	r.Helper()
	r.addUser(supportEmail, operator.RoleSupport)
	r.house("Sunvolt Energy", "Sunvolt Phoenix")
}

// house makes a partner with a merchant and an application, which the room's
// other helpers mean from then on.
func (r *room) house(partnerName, merchantName string) {
	r.Helper()
	partners := &partner.Service{DB: r.DB}
	r.do(func(ctx context.Context, tx *postgres.Tx) error {
		made, err := partners.CreatePartner(ctx, tx, partnerName)
		if err != nil {
			return err
		}
		merchant, err := partners.CreateMerchant(ctx, tx, made.UID, merchantName)
		r.partner, r.merchant, r.application = made.UID, merchant.UID, postgres.NewUID(tx.Now)
		return err
	})
	_, err := r.DB.ExecContext(r.Context(), `
		INSERT INTO applications (application_uid, merchant_uid, partner_uid, source, status,
		                          communications, requested_amount, borrower_first_name,
		                          borrower_last_name, borrower_email, project_name,
		                          created_at, updated_at)
		VALUES ($1, $2, $3, 'partner', 'Approved', 'enabled', 1, 'Ana', 'Lima',
		        'ana@example.com', 'Roof', $4, $4)`, r.application, r.merchant, r.partner, r.DB.Now())
	r.must(err)
}

func (r *room) must(err error) {
	r.Helper()
	if err != nil {
		r.Fatal(err)
	}
}

func (r *room) do(use func(ctx context.Context, tx *postgres.Tx) error) {
	r.Helper()
	ctx := r.Context()
	r.must(r.DB.InTx(ctx, func(tx *postgres.Tx) error { return use(ctx, tx) }))
}

func (r *room) addUser(address string, role operator.Role) {
	r.Helper()
	r.do(func(ctx context.Context, tx *postgres.Tx) error {
		_, err := r.Operators.Create(ctx, tx, operator.NewUser{
			Email: address, Name: "Sam Ortega", Role: role, Password: password,
		})
		return err
	})
}

// subscribe adds a subscription of the partner to every event.
func (r *room) subscribe(address string) (webhook.Subscription, secret.String) {
	r.Helper()
	var made webhook.Subscription
	var value secret.String
	r.do(func(ctx context.Context, tx *postgres.Tx) (err error) {
		made, value, err = r.Webhooks.Subscribe(ctx, tx, r.partner, webhook.Settings{
			URL: address, Auth: webhook.AuthHMAC, Events: []string{webhook.AllEvents},
			Headers: []webhook.Header{{Name: "x-api-key", Value: "the-partners-own-key"}},
		}, "test")
		return err
	})
	return made, value
}

// publish commits an event of the application and returns its deliveries,
// newest first.
func (r *room) publish(status string) []webhook.Delivery {
	r.Helper()
	r.do(func(ctx context.Context, tx *postgres.Tx) error {
		_, err := r.Webhooks.Publish(ctx, tx, webhook.Event{
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
func (r *room) list() []webhook.Delivery {
	r.Helper()
	page, err := r.Webhooks.Deliveries(r.Context(), webhook.DeliveryFilter{Limit: webhook.MaxPage})
	r.must(err)
	return page.Deliveries
}

// work makes the attempts that are in the queue.
func (r *room) work() {
	r.Helper()
	var rows [][]byte
	r.must(r.DB.SelectContext(r.Context(), &rows,
		`DELETE FROM river_job WHERE queue = $1 RETURNING args`, webhook.Queue))
	for _, row := range rows {
		var job webhook.DeliverArgs
		r.must(json.Unmarshal(row, &job))
		r.must(r.Webhooks.Deliver(r.Context(), job, webhook.Run{}))
	}
}

// endpoint is a partner's endpoint that keeps what it gets.
type endpoint struct {
	*httptest.Server
	mu     sync.Mutex
	bodies []string
}

func (e *endpoint) received() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.bodies)
}

// receiver starts an endpoint that gives these answers in turn, the last again
// and again, and 200 without any.
func (r *room) receiver(answers ...http.HandlerFunc) *endpoint {
	r.Helper()
	e := &endpoint{}
	e.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		body, err := io.ReadAll(q.Body)
		if err != nil {
			r.Errorf("reading a delivery: %v", err)
		}
		e.mu.Lock()
		e.bodies = append(e.bodies, string(body))
		count := len(e.bodies)
		e.mu.Unlock()
		if len(answers) > 0 {
			answers[min(count, len(answers))-1](w, q)
		}
	}))
	r.Cleanup(e.Close)
	return e
}

// status answers with a status and nothing else.
func status(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
}
