package alert_test

import (
	"context"
	"log/slog"
	"net/http"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/alert"
	"drawbridge/internal/app/apptest"
	"drawbridge/internal/email"
	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
	"drawbridge/internal/postgres/pgtest"
	"drawbridge/internal/webhook/delivery"
	"drawbridge/internal/webhook/subscription"
)

// TestMain silences the log, which would hide failures.
func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	os.Exit(m.Run())
}

const alertTo = "ops@lender.example"

// harness has, besides one subscription to an endpoint, a clock that is moved by hand, and an
// address for alerts.
type harness struct {
	*testing.T
	*apptest.Harness
	*alert.Service
	clock *apptest.Clock
	// status is the status that the endpoint returns.
	status       atomic.Int64
	receiver     *apptest.Endpoint
	application  uuid.UUID
	subscription uuid.UUID
}

func newHarness(t *testing.T) *harness {
	t.Helper()
	h := &harness{T: t, clock: apptest.NewClock()}
	h.clock.Set(time.Now().Truncate(time.Hour))
	h.status.Store(http.StatusOK)
	db := pgtest.New(t)
	db.Now = h.clock.Now
	h.Harness = apptest.On(t, db)
	h.Service = h.Alerts
	h.receiver = apptest.NewEndpoint(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(int(h.status.Load()))
	})
	h.Partner = h.NewPartner(t, "Sunvolt Energy")
	h.Merchant = h.NewMerchant(t, h.Partner, "Sunvolt Phoenix")
	h.application = postgres.NewUID(h.clock.Now())
	h.exec(`
		INSERT INTO applications (application_uid, merchant_uid, partner_uid, source, status,
		                          communications, requested_amount, borrower_first_name,
		                          borrower_last_name, borrower_email, project_name,
		                          created_at, updated_at)
		VALUES ($1, $2, $3, 'partner', 'Approved', 'enabled', 1, 'Ana', 'Lima',
		        'ana@example.com', 'Roof', $4, $4)`,
		h.application, h.Merchant, h.Partner, h.clock.Now())
	h.exec(`UPDATE mail_settings SET alert_to = ARRAY[$1]`, alertTo)
	h.subscription = h.Subscribe(t, func(s *subscription.Settings) { s.URL = h.receiver.URL }).UID
	return h
}

func (h *harness) must(err error) {
	h.Helper()
	if err != nil {
		h.Fatal(err)
	}
}

func (h *harness) do(use func(ctx context.Context, tx *postgres.Tx) error) {
	h.Helper()
	h.Do(h, use)
}

func (h *harness) exec(query string, args ...any) {
	h.Helper()
	h.Exec(h, query, args...)
}

func (h *harness) count(query string, args ...any) int {
	h.Helper()
	return h.Harness.Count(h, query, args...)
}

func (h *harness) move(by time.Duration) { h.clock.Move(by) }

// publish commits one event, at a time of its own.
func (h *harness) publish() {
	h.Helper()
	h.move(time.Microsecond)
	h.do(func(ctx context.Context, tx *postgres.Tx) error {
		_, err := h.Webhooks.Deliveries.Publish(ctx, tx, delivery.Event{
			UID: postgres.NewUID(tx.Now), Kind: lending.EventTaskCreated,
			ApplicationUID: h.application, Status: "Pending",
			Head: []byte(`{"at":"`), Tail: []byte(`"}`),
		})
		return err
	})
}

// work makes the attempts that are in the queue.
func (h *harness) work() {
	h.Helper()
	h.Work(h)
}

// finish makes all attempts of what was published, which takes 24 minutes.
func (h *harness) finish() {
	h.Helper()
	h.work()
	for range 2 {
		h.move(12 * time.Minute)
		_, err := h.Webhooks.Deliveries.EnqueueDue(h.Context())
		h.must(err)
		h.work()
	}
}

// fail publishes events that all fail, one per hour.
func (h *harness) fail(events int) {
	h.Helper()
	h.status.Store(http.StatusServiceUnavailable)
	for range events {
		h.publish()
		h.finish()
		h.move(36 * time.Minute)
	}
}

// look tallies and watches once.
func (h *harness) look() {
	h.Helper()
	_, err := h.Tally(h.Context())
	h.must(err)
	h.must(h.Watch(h.Context()))
}

func (h *harness) state() subscription.State {
	h.Helper()
	var state subscription.State
	h.must(h.DB.GetContext(h.Context(), &state,
		`SELECT state FROM subscriptions WHERE subscription_uid = $1`, h.subscription))
	return state
}

// mails counts the mails of a kind.
func (h *harness) mails(kind email.Kind) int {
	h.Helper()
	return h.count(`SELECT count(*) FROM emails WHERE kind = $1`, kind)
}

// open returns the open item of a kind, if there is one.
func (h *harness) open(kind alert.Kind) (alert.Item, bool) {
	h.Helper()
	items, _, err := h.List(h.Context(),
		alert.Filter{State: alert.Waiting, Kind: kind}, postgres.Paging{Limit: 10})
	h.must(err)
	if len(items) > 1 {
		h.Fatalf("%d open items of kind %s", len(items), kind)
	}
	if len(items) == 0 {
		return alert.Item{}, false
	}
	return items[0], true
}
