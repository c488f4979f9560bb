package delivery_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/postgres"
	"drawbridge/internal/webhook/delivery"
	"drawbridge/internal/webhook/webhooktest"
)

// spend makes every open attempt.
func spend(t *testing.T, h *webhooktest.Harness) {
	t.Helper()
	for range delivery.MaxAttempts {
		h.Work(t)
		h.Clock.Move(time.Hour)
		h.EnqueueDue(t)
	}
}

// A failed delivery names the first other one of its event that succeeded, whether that
// was after it failed or before.
func TestMadeGood(t *testing.T) {
	t.Parallel()
	h := webhooktest.New(t)
	endpoint := webhooktest.NewReceiver(t,
		webhooktest.Answering(500, 500, 500, 500, 200, 200, 500, 500, 500, 500, 500, 500))
	h.Subscribe(t, endpoint.URL, nil)
	h.Publish(t)
	spend(t, h)
	failed := h.Newest(t)
	if failed.State != delivery.StateFailed || failed.MadeGoodBy != nil {
		t.Fatalf("%s, made good by %v", failed.State, failed.MadeGoodBy)
	}
	first := h.Resend(t, failed.UID)[0]
	spend(t, h)
	second := h.Resend(t, failed.UID)[0]
	spend(t, h)
	third := h.Resend(t, first)[0]
	spend(t, h)
	for uid, want := range map[uuid.UUID]delivery.State{
		failed.UID: delivery.StateFailed, first: delivery.StateDelivered,
		second: delivery.StateDelivered, third: delivery.StateFailed,
	} {
		got := h.Detail(t, uid)
		by := postgres.OrZero(got.MadeGoodBy)
		if got.State != want || want == delivery.StateFailed && by != first ||
			want == delivery.StateDelivered && by != uuid.Nil {
			t.Errorf("%s is %s, made good by %s; the first that arrived is %s", uid, got.State, by, first)
		}
	}
	found, _, err := h.Deliveries.Events(t.Context(), delivery.EventFilter{},
		postgres.Paging{Limit: 1})
	want := delivery.FanOut{MadeGood: 1, Resends: 3}
	if err != nil || found[0].FanOut != want {
		t.Errorf("of the event became %+v, %v, want %+v", found[0].FanOut, err, want)
	}
	h.Publish(t)
	spend(t, h)
	if other := h.Newest(t); other.State != delivery.StateFailed || other.MadeGoodBy != nil {
		t.Errorf("of another event: %s, made good by %v", other.State, other.MadeGoodBy)
	}
}

// Two deliveries of an event that end in two transactions at once see each other, even if
// the first one still waits for its first attempt when a re-send of it fails.
func TestMadeGoodAtOnce(t *testing.T) {
	t.Parallel()
	h := webhooktest.New(t)
	h.Subscribe(t, "https://hooks.example.com", nil)
	const end = `UPDATE deliveries SET state = $2, attempt_count = 3, next_attempt_at = NULL,
		queued = false, finished_at = now() WHERE delivery_uid = $1`
	for round := range 20 {
		h.Clock.Move(time.Second)
		h.Publish(t)
		fails := h.Newest(t).UID
		arrives := h.Resend(t, fails)[0]
		if round%2 == 1 {
			fails, arrives = arrives, fails
		}
		h.Exec(t, `UPDATE deliveries SET state = 'retrying', attempt_count = 2 WHERE delivery_uid = $1`,
			fails)
		ends := func(uid uuid.UUID, state delivery.State) {
			err := h.Try(func(ctx context.Context, tx *postgres.Tx) error {
				_, err := tx.ExecContext(ctx, end, uid, state)
				return err
			})
			if err != nil {
				t.Error(err)
			}
		}
		var all sync.WaitGroup
		all.Go(func() { ends(fails, delivery.StateFailed) })
		if round < 4 {
			all.Wait()
		}
		all.Go(func() { ends(arrives, delivery.StateDelivered) })
		all.Wait()
		if by := h.Detail(t, fails).MadeGoodBy; by == nil || *by != arrives {
			t.Fatalf("round %d: made good by %v, want %s", round, by, arrives)
		}
	}
}

// TestArrivalIsLookedUpByEvent: a re-send that succeeds reads the deliveries of its
// event, not all that its subscription got, also on a database without statistics.
func TestArrivalIsLookedUpByEvent(t *testing.T) {
	t.Parallel()
	h := webhooktest.New(t)
	h.Subscribe(t, "https://hooks.example.com", nil)
	h.ManyFailed(t, 5000)
	var failed uuid.UUID
	err := h.DB.GetContext(t.Context(), &failed, `SELECT delivery_uid FROM deliveries LIMIT 1`)
	if err != nil {
		t.Fatal(err)
	}
	resent := h.Resend(t, failed)[0]
	tx, err := h.DB.BeginTxx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	for _, change := range []string{
		`UPDATE deliveries SET state = 'failed'`, `UPDATE deliveries SET state = 'delivered'`,
	} {
		_, err := tx.ExecContext(t.Context(), change+`, finished_at = now(), attempt_count = 3,
			next_attempt_at = NULL, queued = false WHERE delivery_uid = $1`, resent)
		if err != nil {
			t.Fatal(err)
		}
		var read int
		err = tx.GetContext(t.Context(), &read, `
			SELECT coalesce(sum(pg_stat_get_xact_tuples_returned(i.indexrelid)), 0)
			  FROM pg_index i
			  JOIN pg_inherits p ON p.inhrelid = i.indrelid
			 WHERE p.inhparent = 'deliveries'::regclass`)
		if err != nil {
			t.Fatal(err)
		}
		if read > 100 {
			t.Errorf("%s: read %d entries of indexes", change, read)
		}
	}
	var state string
	err = tx.GetContext(t.Context(), &state, `
		SELECT state FROM deliveries WHERE delivery_uid = $1 AND made_good_by = $2`, failed, resent)
	if err != nil || state != "failed" {
		t.Errorf("what was re-sent is %q (%v), want it to be made good", state, err)
	}
}

// The ledger shows a failed delivery that was made good as sent, even while its
// subscription is paused.
func TestLedgerOfWhatWasMadeGood(t *testing.T) {
	t.Parallel()
	h := webhooktest.New(t)
	endpoint := webhooktest.NewReceiver(t, webhooktest.Answering(500, 500, 500, 200))
	made, _ := h.Subscribe(t, endpoint.URL, nil)
	h.Publish(t)
	spend(t, h)
	failed := h.Newest(t)
	h.Resend(t, failed.UID)
	spend(t, h)
	h.Publish(t)
	waiting := h.Newest(t)
	h.Pause(t, made.UID)
	for event, want := range map[uuid.UUID]delivery.Verdict{
		failed.EventUID: delivery.VerdictSent, waiting.EventUID: delivery.VerdictWaiting,
	} {
		lines, err := h.Deliveries.EventVerdicts(t.Context(), event)
		if err != nil || len(lines) != 1 || lines[0].Verdict != want {
			t.Errorf("the ledger has %+v, want the verdict %s (%v)", lines, want, err)
		}
	}
}
