package webhook_test

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
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverdatabasesql"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
	"drawbridge/internal/postgres/pgtest"
	"drawbridge/internal/secret"
	"drawbridge/internal/webhook"
)

// house is a database with a partner, a merchant and an application, and the
// service over it with a real queue to insert into and a real sender.
type house struct {
	*webhook.Service
	clock                          *clock
	partner, merchant, application uuid.UUID
}

// clock stands still until it is moved.
type clock struct{ micros atomic.Int64 }

func (c *clock) now() time.Time        { return time.UnixMicro(c.micros.Load()).UTC() }
func (c *clock) move(by time.Duration) { c.micros.Add(by.Microseconds()) }

func newHouse(t testing.TB) *house {
	t.Helper()
	h := &house{clock: new(clock)}
	h.clock.micros.Store(time.Now().UnixMicro())
	h.Service = newService(t, pgtest.New(t), h.clock)
	h.partner = h.newPartner(t)
	h.merchant = h.newMerchant(t, h.partner)
	h.application = h.newApplication(t, h.merchant)
	return h
}

// newService makes a service as the program does. The sender reaches receivers
// on this machine and trusts their certificates.
func newService(t testing.TB, db *postgres.DB, clock *clock) *webhook.Service {
	t.Helper()
	db.Now = clock.now
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
	policy := webhook.Policy{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}
	sender := webhook.NewSender(webhook.SenderConfig{
		Policy: policy, RootCAs: receiverRoots(), Version: "test",
	})
	t.Cleanup(sender.Close)
	return &webhook.Service{
		DB: db, Jobs: queue, Keys: keys, Policy: policy, Sender: sender,
		Retries: webhook.Schedule{
			Delays: []time.Duration{time.Minute, 10 * time.Minute}, RetryAfterMax: time.Hour,
		},
	}
}

// receiverRoots are the roots of every httptest server.
var receiverRoots = sync.OnceValue(func() *x509.CertPool {
	server := httptest.NewTLSServer(http.NotFoundHandler())
	defer server.Close()
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	return roots
})

// do runs one use case and fails the test if it is refused.
func (h *house) do(t testing.TB, use func(ctx context.Context, tx *postgres.Tx) error) {
	t.Helper()
	if err := h.try(use); err != nil {
		t.Fatal(err)
	}
}

func (h *house) try(use func(ctx context.Context, tx *postgres.Tx) error) error {
	ctx := context.Background()
	return h.DB.InTx(ctx, func(tx *postgres.Tx) error { return use(ctx, tx) })
}

func (h *house) exec(t testing.TB, query string, args ...any) {
	t.Helper()
	if _, err := h.DB.ExecContext(t.Context(), query, args...); err != nil {
		t.Fatal(err)
	}
}

func (h *house) count(t testing.TB, query string, args ...any) int {
	t.Helper()
	var count int
	if err := h.DB.GetContext(t.Context(), &count, query, args...); err != nil {
		t.Fatal(err)
	}
	return count
}

func (h *house) newPartner(t testing.TB) uuid.UUID {
	t.Helper()
	uid := postgres.NewUID(h.clock.now())
	h.exec(t, `INSERT INTO partners VALUES ($1, 'Solar Partners', $2)`, uid, h.clock.now())
	return uid
}

func (h *house) newMerchant(t testing.TB, partner uuid.UUID) uuid.UUID {
	t.Helper()
	uid := postgres.NewUID(h.clock.now())
	h.exec(t, `INSERT INTO merchants VALUES ($1, $2, 'Sunny Roofs', $3)`, uid, partner, h.clock.now())
	return uid
}

func (h *house) newApplication(t testing.TB, merchant uuid.UUID) uuid.UUID {
	t.Helper()
	uid := postgres.NewUID(h.clock.now())
	h.exec(t, `
		INSERT INTO applications (application_uid, merchant_uid, partner_uid, source, status,
		                          communications, requested_amount, borrower_first_name,
		                          borrower_last_name, borrower_email, project_name,
		                          created_at, updated_at)
		SELECT $1, merchant_uid, partner_uid, 'partner', 'Approved', 'enabled', 1, 'Ana', 'Lima',
		       'ana@example.com', 'Roof', $3, $3
		  FROM merchants
		 WHERE merchant_uid = $2`, uid, merchant, h.clock.now())
	return uid
}

// subscribe adds a subscription of the partner to every event. change, which
// may be nil, adapts its settings.
func (h *house) subscribe(
	t testing.TB, url string, change func(*webhook.Settings),
) (webhook.Subscription, secret.String) {
	t.Helper()
	settings := webhook.Settings{
		URL: url, Auth: webhook.AuthHMAC, Events: []string{webhook.AllEvents},
	}
	if change != nil {
		change(&settings)
	}
	var made webhook.Subscription
	var value secret.String
	h.do(t, func(ctx context.Context, tx *postgres.Tx) (err error) {
		made, value, err = h.Subscribe(ctx, tx, h.partner, settings, "operator")
		return err
	})
	return made, value
}

// event is a task event of the house's application.
func (h *house) event() webhook.Event {
	return webhook.Event{
		UID: postgres.NewUID(h.clock.now()), Kind: lending.EventTaskCreated,
		ApplicationUID: h.application, Status: "Pending",
		Head: []byte(`{"status":"Pending","timestamp":"`), Tail: []byte(`"}`),
	}
}

// published is an event as it was recorded.
type published struct {
	webhook.Event

	OccurredAt time.Time
	Body       []byte
}

// publish commits one event and returns it.
func (h *house) publish(t testing.TB) published {
	t.Helper()
	event := h.event()
	h.do(t, func(ctx context.Context, tx *postgres.Tx) error {
		_, err := h.Publish(ctx, tx, event)
		return err
	})
	found, err := h.EventByUID(t.Context(), event.UID)
	if err != nil {
		t.Fatal(err)
	}
	return published{event, found.OccurredAt, found.Body}
}

// list returns every delivery, newest first.
func (h *house) list(t testing.TB) []webhook.Delivery {
	t.Helper()
	page, err := h.Deliveries(t.Context(), webhook.DeliveryFilter{Limit: postgres.MaxPage})
	if err != nil {
		t.Fatal(err)
	}
	return page.Deliveries
}

// newest returns the delivery that was made last.
func (h *house) newest(t testing.TB) webhook.DeliveryDetail {
	t.Helper()
	return h.detail(t, h.list(t)[0].UID)
}

func (h *house) detail(t testing.TB, uid uuid.UUID) webhook.DeliveryDetail {
	t.Helper()
	detail, err := h.Delivery(t.Context(), uid)
	if err != nil {
		t.Fatal(err)
	}
	return detail
}

// The runs of jobs that a test took out of the queue.
var (
	first = webhook.Run{Number: 1}
	again = webhook.Run{Number: 2}
)

// takeJobs takes the delivery jobs out of the queue, oldest first.
func (h *house) takeJobs(ctx context.Context) ([]webhook.DeliverArgs, error) {
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
		SELECT id, args FROM taken ORDER BY id`, webhook.Queue)
	if err != nil {
		return nil, err
	}
	jobs := make([]webhook.DeliverArgs, len(rows))
	for i, row := range rows {
		if err := json.Unmarshal(row.Args, &jobs[i]); err != nil {
			return nil, err
		}
	}
	return jobs, nil
}

// jobs takes the jobs out of the queue.
func (h *house) jobs(t testing.TB) []webhook.DeliverArgs {
	t.Helper()
	jobs, err := h.takeJobs(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return jobs
}

// job takes the one job that is in the queue.
func (h *house) job(t testing.TB) webhook.DeliverArgs {
	t.Helper()
	jobs := h.jobs(t)
	if len(jobs) != 1 {
		t.Fatalf("%d jobs in the queue, want 1", len(jobs))
	}
	return jobs[0]
}

// work delivers what is in the queue and returns how many jobs that were.
func (h *house) work(t testing.TB) int {
	t.Helper()
	jobs := h.jobs(t)
	for _, job := range jobs {
		if err := h.Deliver(t.Context(), job, first); err != nil {
			t.Fatal(err)
		}
	}
	return len(jobs)
}

// promote enqueues what has fallen due and returns how many that were.
func (h *house) promote(t testing.TB) int {
	t.Helper()
	count, err := h.Promote(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return count
}

// waitForLock waits until some statement waits for another transaction.
func (h *house) waitForLock(t testing.TB) {
	t.Helper()
	waitUntil(t, "a statement waits for a lock", func() bool {
		return h.count(t, `
			SELECT count(*)
			  FROM pg_stat_activity
			 WHERE datname = current_database()
			   AND wait_event_type = 'Lock'`) > 0
	})
}

func waitUntil(t testing.TB, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.After(time.Minute); !holds(); {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("waited in vain until %s", what)
		}
	}
}

// received is a request as it came in.
type received struct {
	header http.Header
	body   string
}

// receiver is an endpoint of a partner.
type receiver struct {
	*httptest.Server
	mu   sync.Mutex
	reqs []received
}

// newReceiver starts an endpoint. answer, which may be nil for 200, makes the
// answer to the n-th request, counted from 1.
func newReceiver(t testing.TB, answer func(w http.ResponseWriter, n int)) *receiver {
	t.Helper()
	r := new(receiver)
	r.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		body, err := io.ReadAll(q.Body)
		if err != nil {
			t.Errorf("reading a delivery: %v", err)
		}
		r.mu.Lock()
		r.reqs = append(r.reqs, received{q.Header, string(body)})
		n := len(r.reqs)
		r.mu.Unlock()
		if answer != nil {
			answer(w, n)
		}
	}))
	t.Cleanup(r.Close)
	return r
}

// answering gives these statuses in turn, and the last again and again.
func answering(statuses ...int) func(http.ResponseWriter, int) {
	return func(w http.ResponseWriter, n int) {
		w.WriteHeader(statuses[min(n, len(statuses))-1])
	}
}

func (r *receiver) requests() []received {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]received(nil), r.reqs...)
}

// wantRefusal fails the test unless err is the refusal, and names the fields.
func wantRefusal(t testing.TB, err error, code lending.Code, fields ...string) {
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
