// Package webhooktest has the services of webhooks over a test's own database, and
// endpoints to send to.
package webhooktest

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverdatabasesql"

	"drawbridge/internal/lending"
	"drawbridge/internal/outbox"
	"drawbridge/internal/postgres"
	"drawbridge/internal/postgres/pgtest"
	"drawbridge/internal/secret"
	"drawbridge/internal/webhook"
	"drawbridge/internal/webhook/delivery"
	"drawbridge/internal/webhook/sender"
	"drawbridge/internal/webhook/subscription"
)

// Services are the use cases over one database, put together as the program does.
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

// Now is the time that the test has set.
func (c *Clock) Now() time.Time { return time.UnixMicro(c.micros.Load()).UTC() }

// Move lets time pass.
func (c *Clock) Move(by time.Duration) { c.micros.Add(by.Microseconds()) }

// New returns a harness on a database of its own.
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

// NewServices makes a service as the program does. The sender reaches receivers
// on this machine and trusts their certificates.
func NewServices(t testing.TB, db *postgres.DB, clock *Clock) *Services {
	t.Helper()
	db.Now = clock.Now
	queue, err := river.NewClient(riverdatabasesql.New(db.DB.DB), &river.Config{
		FetchCooldown: 5 * time.Millisecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	keys, err := secret.ParseKeyring(secret.GenerateKey())
	if err != nil {
		t.Fatal(err)
	}
	policy := sender.Policy{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}
	send := sender.New(sender.Config{
		Policy: policy, RootCAs: receiverRoots(), Version: "test",
	})
	t.Cleanup(send.Close)
	services := webhook.New(webhook.Config{
		DB: db, Jobs: queue, Keys: keys, Policy: policy, Sender: send,
		Retries: delivery.Schedule{
			Delays: []time.Duration{time.Minute, 10 * time.Minute}, RetryAfterMax: time.Hour,
		},
	})
	publisher := outbox.New(db)
	// What follows from an event has followed once its transaction has committed.
	services.Deliveries.Recorded = func() {
		if err := publisher.Drain(t.Context()); err != nil && t.Context().Err() == nil {
			t.Error(err)
		}
	}
	return &Services{services, db}
}

// receiverRoots are the roots of every httptest server.
var receiverRoots = sync.OnceValue(func() *x509.CertPool {
	server := httptest.NewTLSServer(http.NotFoundHandler())
	defer server.Close()
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	return roots
})

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

// Exec runs a statement.
func (h *Harness) Exec(t testing.TB, query string, args ...any) {
	t.Helper()
	if _, err := h.DB.ExecContext(t.Context(), query, args...); err != nil {
		t.Fatal(err)
	}
}

// Count returns the number that a query counts.
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

// Subscribe adds a subscription of the partner to every event. change, which
// may be nil, adapts its settings.
func (h *Harness) Subscribe(
	t testing.TB, url string, change func(*subscription.Settings),
) (subscription.Subscription, secret.String) {
	t.Helper()
	settings := subscription.Settings{
		URL: url, Auth: sender.AuthHMAC, Events: []string{subscription.AllEvents},
	}
	if change != nil {
		change(&settings)
	}
	var made subscription.Subscription
	var value secret.String
	h.Do(t, func(ctx context.Context, tx *postgres.Tx) (err error) {
		made, value, err = h.Subscriptions.Subscribe(ctx, tx, h.Partner, settings, "operator")
		return err
	})
	return made, value
}

// NewEvent is a task event of the harness's application.
func (h *Harness) NewEvent() delivery.Event {
	return delivery.Event{
		UID: postgres.NewUID(h.Clock.Now()), Kind: lending.EventTaskCreated,
		ApplicationUID: h.Application, Status: "Pending",
		Subject: "application/" + h.Application.String(),
		Head:    []byte(`{"status":"Pending","timestamp":"`), Tail: []byte(`"}`),
	}
}

// Published is an event as it was recorded.
type Published struct {
	delivery.Event

	OccurredAt time.Time
	Body       []byte
}

// Publish commits one event and returns it.
func (h *Harness) Publish(t testing.TB) Published {
	t.Helper()
	event := h.NewEvent()
	h.Do(t, func(ctx context.Context, tx *postgres.Tx) error {
		_, err := h.Deliveries.Publish(ctx, tx, event)
		return err
	})
	found, err := h.Deliveries.EventByUID(t.Context(), event.UID)
	if err != nil {
		t.Fatal(err)
	}
	return Published{event, found.OccurredAt, found.Body}
}

// List returns every delivery, newest first.
func (h *Harness) List(t testing.TB) []delivery.Delivery {
	t.Helper()
	found, _, err := h.Deliveries.List(t.Context(), delivery.Filter{},
		postgres.Paging{Limit: postgres.MaxPage})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// Newest returns the delivery that was made last.
func (h *Harness) Newest(t testing.TB) delivery.Detail {
	t.Helper()
	return h.Detail(t, h.List(t)[0].UID)
}

// Detail reads a delivery with its attempts.
func (h *Harness) Detail(t testing.TB, uid uuid.UUID) delivery.Detail {
	t.Helper()
	detail, err := h.Deliveries.Get(t.Context(), uid)
	if err != nil {
		t.Fatal(err)
	}
	return detail
}

// The runs of jobs that a test took out of the queue.
var (
	First = delivery.Run{Number: 1}
	Again = delivery.Run{Number: 2}
)

// TakeJobs takes the delivery jobs out of the queue, oldest first.
func (h *Harness) TakeJobs(ctx context.Context) ([]delivery.Args, error) {
	var rows []struct {
		ID   int64  `db:"id"`
		Args []byte `db:"args"`
	}
	err := h.DB.SelectContext(ctx, &rows, `
		WITH taken AS (
			DELETE FROM river_job
			 WHERE id IN (SELECT id
			                FROM river_job
			               WHERE queue = $1
			               ORDER BY id
			               LIMIT 10
			                 FOR UPDATE SKIP LOCKED)
			RETURNING id, args
		)
		SELECT id, args FROM taken ORDER BY id`, delivery.Queue)
	if err != nil {
		return nil, err
	}
	jobs := make([]delivery.Args, len(rows))
	for i, row := range rows {
		if err := json.Unmarshal(row.Args, &jobs[i]); err != nil {
			return nil, err
		}
	}
	return jobs, nil
}

// Jobs takes the jobs out of the queue.
func (h *Harness) Jobs(t testing.TB) []delivery.Args {
	t.Helper()
	jobs, err := h.TakeJobs(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return jobs
}

// Job takes the one job that is in the queue.
func (h *Harness) Job(t testing.TB) delivery.Args {
	t.Helper()
	jobs := h.Jobs(t)
	if len(jobs) != 1 {
		t.Fatalf("%d jobs in the queue, want 1", len(jobs))
	}
	return jobs[0]
}

// Work delivers what is in the queue and returns how many jobs that were.
func (h *Harness) Work(t testing.TB) int {
	t.Helper()
	jobs := h.Jobs(t)
	for _, job := range jobs {
		if err := h.Deliveries.Deliver(t.Context(), job, First); err != nil {
			t.Fatal(err)
		}
	}
	return len(jobs)
}

// EnqueueDue enqueues what has fallen due and returns how many that were.
func (h *Harness) EnqueueDue(t testing.TB) int {
	t.Helper()
	count, err := h.Deliveries.EnqueueDue(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return count
}

// Received is a request as it came in.
type Received struct {
	Header http.Header
	Body   string
}

// Receiver is an endpoint of a partner.
type Receiver struct {
	*httptest.Server
	mu   sync.Mutex
	reqs []Received
}

// NewReceiver starts an endpoint. answer, which may be nil for 200, makes the
// answer to the n-th request, counted from 1.
func NewReceiver(t testing.TB, answer func(w http.ResponseWriter, n int)) *Receiver {
	t.Helper()
	r := new(Receiver)
	r.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		body, err := io.ReadAll(q.Body)
		if err != nil {
			t.Errorf("reading a delivery: %v", err)
		}
		r.mu.Lock()
		r.reqs = append(r.reqs, Received{q.Header, string(body)})
		n := len(r.reqs)
		r.mu.Unlock()
		if answer != nil {
			answer(w, n)
		}
	}))
	t.Cleanup(r.Close)
	return r
}

// Answering gives these statuses in turn, and the last again and again.
func Answering(statuses ...int) func(http.ResponseWriter, int) {
	return func(w http.ResponseWriter, n int) {
		w.WriteHeader(statuses[min(n, len(statuses))-1])
	}
}

// Requests returns what was received so far.
func (r *Receiver) Requests() []Received {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]Received(nil), r.reqs...)
}

// WantRefusal fails the test unless err is the refusal, and names the fields.
func WantRefusal(t testing.TB, err error, code lending.Code, fields ...string) {
	t.Helper()
	refusal, ok := errors.AsType[*lending.Error](err)
	if !ok || refusal.Code != code {
		t.Errorf("error %v, want %s", err, code)
		return
	}
	var named []string
	for _, fault := range refusal.Details {
		named = append(named, fault.Field)
	}
	if fmt.Sprint(named) != fmt.Sprint(fields) && len(named)+len(fields) > 0 {
		t.Errorf("%q names %q, want %q", refusal.Message, named, fields)
	}
}

// Queued is a job as the queue has it.
type Queued struct {
	ID        int64     `db:"id"`
	Args      []byte    `db:"args"`
	ClaimedAt time.Time `db:"attempted_at"`
}

// Attempts writes the outcomes of a delivery's attempts in a row.
func Attempts(detail delivery.Detail) string {
	var text strings.Builder
	fmt.Fprintf(&text, "%s after %d:", detail.State, detail.AttemptCount)
	for _, attempt := range detail.Attempts {
		fmt.Fprintf(&text, " %d", attempt.HTTPStatus)
		if attempt.ErrorClass == sender.ClassUnknown {
			text.WriteString("?")
		}
	}
	return text.String()
}

// OtherKeys lack the key that the harness began with.
func OtherKeys(t *testing.T) *secret.Keyring {
	t.Helper()
	keys, err := secret.ParseKeyring(secret.GenerateKey())
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

// WaitOutDelay checks that the next attempt is due after the delay, with up to a
// tenth more, and not before, and moves the clock there.
func WaitOutDelay(t *testing.T, h *Harness, delay time.Duration) {
	t.Helper()
	due := *h.Newest(t).NextAttemptAt
	if wait := due.Sub(h.Clock.Now()); wait < delay || wait > delay+delay/10 {
		t.Errorf("the next attempt is due in %s, want %s and up to a tenth more", wait, delay)
	}
	h.Clock.Move(due.Sub(h.Clock.Now()) - time.Microsecond)
	if count := h.EnqueueDue(t); count != 0 {
		t.Errorf("%d attempts were enqueued before they were due", count)
	}
	h.Clock.Move(time.Microsecond)
	if count := h.EnqueueDue(t); count != 1 {
		t.Errorf("%d attempts were enqueued, want 1", count)
	}
}

// StateChange is a change of a subscription's state.
type StateChange func(
	ctx context.Context, tx *postgres.Tx, uid uuid.UUID, by string,
) (subscription.Subscription, error)
