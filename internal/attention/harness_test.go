package attention_test

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverdatabasesql"

	"drawbridge/internal/attention"
	"drawbridge/internal/email"
	"drawbridge/internal/lending"
	"drawbridge/internal/operator"
	"drawbridge/internal/partner"
	"drawbridge/internal/postgres"
	"drawbridge/internal/postgres/pgtest"
	"drawbridge/internal/secret"
	"drawbridge/internal/webhook"
	"drawbridge/internal/webhook/delivery"
	"drawbridge/internal/webhook/sender"
	"drawbridge/internal/webhook/subscription"
)

// TestMain silences the log, which would bury what failed.
func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	os.Exit(m.Run())
}

const alertTo = "ops@lender.example"

// house is the service over a database of its own, with one partner, one
// subscription to a receiver, and a clock that is moved by hand.
type house struct {
	*testing.T
	*attention.Service
	DB  *postgres.DB
	now atomic.Int64
	// status is what the receiver answers.
	status       atomic.Int64
	receiver     *httptest.Server
	partner      uuid.UUID
	merchant     uuid.UUID
	application  uuid.UUID
	subscription uuid.UUID
}

func newHouse(t *testing.T) *house {
	t.Helper()
	h := &house{T: t, DB: pgtest.New(t)}
	h.now.Store(time.Now().Truncate(time.Hour).UnixMicro())
	h.status.Store(http.StatusOK)
	h.DB.Now = func() time.Time { return time.UnixMicro(h.now.Load()).UTC() }
	h.receiver = httptest.NewTLSServer(http.HandlerFunc(
		func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(int(h.status.Load())) }))
	t.Cleanup(h.receiver.Close)
	h.Service = h.newService()
	h.furnish()
	return h
}

func (h *house) newService() *attention.Service {
	h.Helper()
	queue, err := river.NewClient(riverdatabasesql.New(h.DB.DB.DB), &river.Config{})
	h.must(err)
	keys, err := secret.ParseKeyring(secret.GenerateKey())
	h.must(err)
	roots := x509.NewCertPool()
	roots.AddCert(h.receiver.Certificate())
	policy := sender.Policy{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}
	send := sender.New(sender.Config{Policy: policy, RootCAs: roots})
	h.Cleanup(send.Close)
	return &attention.Service{
		DB: h.DB, Emails: email.NewService(queue), Operators: &operator.Service{DB: h.DB},
		AttemptLimit: 30 * time.Second,
		Webhooks: &webhook.Service{
			DB: h.DB, Jobs: queue, Keys: keys, Policy: policy, Sender: send,
			Retries: delivery.Schedule{Delays: []time.Duration{time.Minute, 10 * time.Minute}},
		},
	}
}

func (h *house) furnish() {
	h.Helper()
	partners := &partner.Service{DB: h.DB}
	h.do(func(ctx context.Context, tx *postgres.Tx) error {
		made, err := partners.CreatePartner(ctx, tx, "Sunvolt Energy")
		if err != nil {
			return err
		}
		merchant, err := partners.CreateMerchant(ctx, tx, made.UID, "Sunvolt Phoenix")
		h.partner, h.merchant, h.application = made.UID, merchant.UID, postgres.NewUID(tx.Now)
		return err
	})
	h.exec(`
		INSERT INTO applications (application_uid, merchant_uid, partner_uid, source, status,
		                          communications, requested_amount, borrower_first_name,
		                          borrower_last_name, borrower_email, project_name,
		                          created_at, updated_at)
		VALUES ($1, $2, $3, 'partner', 'Approved', 'enabled', 1, 'Ana', 'Lima',
		        'ana@example.com', 'Roof', $4, $4)`,
		h.application, h.merchant, h.partner, h.DB.Now())
	h.exec(`UPDATE mail_settings SET alert_to = ARRAY[$1]`, alertTo)
	h.do(func(ctx context.Context, tx *postgres.Tx) error {
		made, _, err := h.Webhooks.Subscribe(ctx, tx, h.partner, subscription.Settings{
			URL: h.receiver.URL, Auth: sender.AuthHMAC, Events: []string{subscription.AllEvents},
		}, "operator")
		h.subscription = made.UID
		return err
	})
}

func (h *house) must(err error) {
	h.Helper()
	if err != nil {
		h.Fatal(err)
	}
}

func (h *house) do(use func(ctx context.Context, tx *postgres.Tx) error) {
	h.Helper()
	ctx := h.Context()
	h.must(h.DB.InTx(ctx, func(tx *postgres.Tx) error { return use(ctx, tx) }))
}

func (h *house) exec(query string, args ...any) {
	h.Helper()
	_, err := h.DB.ExecContext(h.Context(), query, args...)
	h.must(err)
}

func (h *house) count(query string, args ...any) int {
	h.Helper()
	var count int
	h.must(h.DB.GetContext(h.Context(), &count, query, args...))
	return count
}

func (h *house) move(by time.Duration) { h.now.Add(by.Microseconds()) }

// publish commits one event, at a moment of its own.
func (h *house) publish() {
	h.Helper()
	h.move(time.Microsecond)
	h.do(func(ctx context.Context, tx *postgres.Tx) error {
		_, err := h.Webhooks.Publish(ctx, tx, delivery.Event{
			UID: postgres.NewUID(tx.Now), Kind: lending.EventTaskCreated,
			ApplicationUID: h.application, Status: "Pending",
			Head: []byte(`{"at":"`), Tail: []byte(`"}`),
		})
		return err
	})
}

// work makes the attempts that are in the queue.
func (h *house) work() {
	h.Helper()
	var rows [][]byte
	h.must(h.DB.SelectContext(h.Context(), &rows,
		`DELETE FROM river_job WHERE queue = $1 RETURNING args`, delivery.Queue))
	for _, row := range rows {
		var job delivery.Args
		h.must(json.Unmarshal(row, &job))
		h.must(h.Webhooks.Deliver(h.Context(), job, delivery.Run{}))
	}
}

// finish makes every attempt of what was published, which takes 24 minutes.
func (h *house) finish() {
	h.Helper()
	h.work()
	for range 2 {
		h.move(12 * time.Minute)
		_, err := h.Webhooks.Promote(h.Context())
		h.must(err)
		h.work()
	}
}

// fail publishes events that all fail, one each hour.
func (h *house) fail(events int) {
	h.Helper()
	h.status.Store(http.StatusServiceUnavailable)
	for range events {
		h.publish()
		h.finish()
		h.move(36 * time.Minute)
	}
}

// look tallies and watches once.
func (h *house) look() {
	h.Helper()
	_, err := h.Tally(h.Context())
	h.must(err)
	h.must(h.Watch(h.Context()))
}

func (h *house) state() subscription.State {
	h.Helper()
	var state subscription.State
	h.must(h.DB.GetContext(h.Context(), &state,
		`SELECT state FROM subscriptions WHERE subscription_uid = $1`, h.subscription))
	return state
}

// mails counts the mails of a kind.
func (h *house) mails(kind email.Kind) int {
	h.Helper()
	return h.count(`SELECT count(*) FROM emails WHERE kind = $1`, kind)
}

// open returns the open item of a kind, if there is one.
func (h *house) open(kind attention.Kind) (attention.Item, bool) {
	h.Helper()
	items, _, err := h.List(h.Context(),
		attention.Filter{State: attention.Waiting, Kind: kind, Limit: 10})
	h.must(err)
	if len(items) > 1 {
		h.Fatalf("%d open items of kind %s", len(items), kind)
	}
	if len(items) == 0 {
		return attention.Item{}, false
	}
	return items[0], true
}
