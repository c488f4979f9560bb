package delivery_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/lib/pq"

	"drawbridge/internal/postgres"
	"drawbridge/internal/postgres/pgtest"
	"drawbridge/internal/waittest"
	"drawbridge/internal/webhook/webhooktest"
)

// order runs use cases concurrently, which must wait for each other and never be run
// again because the database broke a deadlock.
type order struct {
	*webhooktest.Harness

	t     *testing.T
	done  chan error
	begun int
	runs  atomic.Int32
}

func newOrder(t *testing.T, h *webhooktest.Harness) *order {
	t.Helper()
	return &order{Harness: h, t: t, done: make(chan error, 2)}
}

// begin starts a use case and returns once it is waiting.
func (o *order) begin(use func(ctx context.Context, tx *postgres.Tx) error) {
	o.t.Helper()
	go func() {
		o.done <- o.Try(func(ctx context.Context, tx *postgres.Tx) error {
			o.runs.Add(1)
			return use(ctx, tx)
		})
	}()
	o.begun++
	waittest.Until(o.t, "each waits for a lock", func() bool {
		return o.begun == o.Count(o.t, `
			SELECT count(*)
			  FROM pg_stat_activity
			 WHERE datname = current_database()
			   AND wait_event_type = 'Lock'`)
	})
}

// end fails the test unless each use case succeeded in its first run.
func (o *order) end() {
	o.t.Helper()
	for range o.begun {
		if err := <-o.done; err != nil {
			o.t.Error(err)
		}
	}
	if got := int(o.runs.Load()); got != o.begun {
		o.t.Errorf("%d runs of %d use cases: a deadlock was broken", got, o.begun)
	}
}

// Deliveries of a line are cancelled while its subscription is deleted.
func TestCancellationDuringADeletion(t *testing.T) {
	t.Parallel()
	h := webhooktest.New(t)
	subscribed, _ := h.Subscribe(t, "https://hooks.example.com", withRate(1))
	for range 3 {
		h.Publish(t)
	}
	h.Exec(t, `
		UPDATE deliveries d
		   SET queued = false,
		       slot_at = $1::timestamptz + nth * interval '1 second'
		  FROM (SELECT delivery_uid, row_number() OVER (ORDER BY delivery_uid) AS nth
		          FROM deliveries) AS line
		 WHERE d.delivery_uid = line.delivery_uid`, h.Clock.Now())
	h.Exec(t, `INSERT INTO subscription_slots VALUES ($1, $2)`, subscribed.UID, h.Clock.Now())
	line := h.List(t) // newest first
	held := pgtest.Begin(t, h.DB,
		`SELECT FROM deliveries WHERE delivery_uid = $1 FOR UPDATE`, line[1].UID)
	o := newOrder(t, h)
	o.begin(func(ctx context.Context, tx *postgres.Tx) error {
		_, err := h.Subscriptions.Delete(ctx, tx, subscribed.UID, "operator")
		return err
	})
	o.begin(func(ctx context.Context, tx *postgres.Tx) error {
		_, err := h.Deliveries.Cancel(ctx, tx, []uuid.UUID{line[0].UID})
		return err
	})
	if err := held.Rollback(); err != nil {
		t.Fatal(err)
	}
	o.end()
}

// Deliveries of two subscriptions are re-sent in another order than some of them are
// cancelled in.
func TestResendDuringACancellation(t *testing.T) {
	t.Parallel()
	h := webhooktest.New(t)
	var uids []uuid.UUID // the newest first
	for range 2 {
		subscribed, _ := h.Subscribe(t, "https://hooks.example.com", withRate(1))
		h.Exec(t, `INSERT INTO subscription_slots VALUES ($1, $2)`, subscribed.UID, h.Clock.Now())
		uids = append([]uuid.UUID{subscribed.UID}, uids...)
		h.Clock.Move(time.Second)
	}
	var chosen []uuid.UUID
	for _, uid := range uids { // the older events are the newer subscription's
		h.Publish(t)
		h.Exec(t, `DELETE FROM deliveries WHERE subscription_uid <> $1 AND NOT delivery_uid = ANY ($2)`,
			uid, pq.Array(chosen))
		chosen = append(chosen, h.List(t)[0].UID)
		h.Clock.Move(time.Second)
	}
	held := pgtest.Begin(t, h.DB, `SELECT FROM events WHERE event_uid = (
		SELECT event_uid FROM deliveries WHERE delivery_uid = $1) FOR UPDATE`, chosen[0])
	o := newOrder(t, h)
	o.begin(func(ctx context.Context, tx *postgres.Tx) error {
		_, err := h.Deliveries.Resend(ctx, tx, chosen, "support", "")
		return err
	})
	o.begin(func(ctx context.Context, tx *postgres.Tx) error {
		_, err := h.Deliveries.Cancel(ctx, tx, chosen)
		return err
	})
	if err := held.Rollback(); err != nil {
		t.Fatal(err)
	}
	o.end()
}

// Deliveries that lost their jobs are found while their subscription is deleted.
func TestOrphansDuringADeletion(t *testing.T) {
	t.Parallel()
	h := webhooktest.New(t)
	subscribed, _ := h.Subscribe(t, "https://hooks.example.com", nil)
	for range 30 {
		h.Publish(t)
	}
	h.Exec(t, `DELETE FROM river_job`)
	h.Clock.Move(time.Hour)
	second := h.Another(t)
	looks := pgtest.Record(t, second.DB)
	held := pgtest.Begin(t, h.DB, `SELECT FROM deliveries WHERE delivery_uid = (
		SELECT delivery_uid FROM deliveries ORDER BY delivery_uid OFFSET 1 LIMIT 1) FOR UPDATE`)
	o := newOrder(t, h)
	o.begin(func(ctx context.Context, tx *postgres.Tx) error {
		_, err := h.Subscriptions.Delete(ctx, tx, subscribed.UID, "operator")
		return err
	})
	o.begin(func(ctx context.Context, _ *postgres.Tx) error {
		_, err := second.Deliveries.MarkOrphans(ctx, time.Minute)
		return err
	})
	if err := held.Rollback(); err != nil {
		t.Fatal(err)
	}
	o.end()
	if asked := len(looks.Take()); asked != 1 {
		t.Errorf("asked %d times whether another process looks: a deadlock was broken", asked)
	}
}
