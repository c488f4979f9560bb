package webhook_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
	"drawbridge/internal/webhook"
)

// manyFailed writes failed deliveries, each of an event of its own.
func (h *house) manyFailed(t testing.TB, count int) {
	t.Helper()
	h.exec(t, `
		WITH event AS (
			INSERT INTO events (event_uid, occurred_at, kind, partner_uid, merchant_uid,
			                    application_uid, status, body)
			SELECT drawbridge_uid($1), $1::timestamptz + n * interval '1 microsecond',
			       'task.created', $2, $3, $4, 'Pending', '{}'
			  FROM generate_series(1, $5) AS n
			RETURNING *
		)
		INSERT INTO deliveries (delivery_uid, created_at, subscription_uid, event_uid, event_at,
		                        event, application_uid, status, state, attempt_count, queued)
		SELECT drawbridge_uid($1), $1, s.subscription_uid, event_uid, occurred_at, kind,
		       application_uid, status, 'failed', 3, false
		  FROM event, subscriptions s
		 WHERE s.partner_uid = $2`,
		h.clock.now(), h.partner, h.merchant, h.application, count)
	h.clock.move(time.Second)
}

// New deliveries keep coming in while the set is frozen: what was agreed to is
// what is frozen, and nothing is added later.
func TestBulkSetIsExactWhileDeliveriesComeIn(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.subscribe(t, "https://hooks.example.com", nil)
	h.manyFailed(t, 300)
	stop, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() {
			for stop.Err() == nil {
				err := h.try(func(ctx context.Context, tx *postgres.Tx) error {
					_, err := h.Publish(ctx, tx, h.event())
					return err
				})
				if err != nil {
					t.Errorf("publishing: %v", err)
					return
				}
			}
		})
	}
	uid := h.draft(t, h.everything(), func(o *webhook.BulkOptions) { o.Pace = webhook.MaxPace })
	planned := h.plan(t, uid).Total
	total := h.confirm(t, uid)
	for range 3 {
		h.advance(t, uid, 1)
		h.clock.move(time.Second)
	}
	cancel()
	all.Wait()
	if counts := h.bulk(t, uid).Counts; planned != 300 || total != 300 || counts.Total() != 300 {
		t.Errorf("planned %d, confirmed %d, frozen %+v", planned, total, counts)
	}
	h.wantConsistent(t, uid)
}

// A worker dies between claiming and committing: nothing was sent, and the next
// one sends everything once.
func TestBulkSurvivesADyingWorker(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.subscribe(t, "https://hooks.example.com", nil)
	h.manyFailed(t, 10)
	uid := h.begin(t, h.everything(), nil)
	dying, kill := context.WithCancel(t.Context())
	died := make(chan error, 1)
	// Whoever holds the table keeps the worker inside its statement.
	h.do(t, func(ctx context.Context, tx *postgres.Tx) error {
		if _, err := tx.ExecContext(ctx, `LOCK TABLE deliveries IN SHARE MODE`); err != nil {
			return err
		}
		go func() {
			_, err := h.AdvanceBulk(dying, webhook.BulkArgs{BulkUID: uid, Run: 1})
			died <- err
		}()
		h.waitForLock(t)
		kill()
		if err := <-died; err == nil {
			t.Error("the worker did not die")
		}
		return nil
	})
	if counts := h.bulk(t, uid).Counts; counts.Waiting != 10 {
		t.Errorf("after the death: %+v", counts)
	}
	h.advance(t, uid, 1)
	if counts := h.bulk(t, uid).Counts; counts.Sent != 10 {
		t.Errorf("after the next: %+v", counts)
	}
	h.wantConsistent(t, uid)
}

// Several workers, some of them killed, and somebody who pauses and resumes:
// each item is sent once.
func TestBulkWorkersShareTheWork(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	for range 3 {
		h.subscribe(t, "https://hooks.example.com", nil)
	}
	const count = 400
	h.manyFailed(t, count)
	uid := h.begin(t, h.everything(), func(o *webhook.BulkOptions) { o.Pace = webhook.MaxPace })
	stop, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var all sync.WaitGroup
	for n := range 4 {
		all.Go(func() {
			for round := 1; stop.Err() == nil; round++ {
				ctx, kill := context.WithCancel(stop)
				if n == 0 && round%3 == 0 {
					time.AfterFunc(time.Millisecond, kill)
				}
				bulk, err := h.Bulk(stop, uid)
				if err == nil && bulk.Counts.Waiting == 0 {
					cancel()
				}
				for run := 1; run < 20; run++ {
					_, _ = h.AdvanceBulk(ctx, webhook.BulkArgs{BulkUID: uid, Run: run})
				}
				h.clock.move(5 * time.Millisecond)
				kill()
			}
		})
	}
	all.Go(func() {
		for range 10 {
			for _, change := range []func(context.Context, *postgres.Tx, uuid.UUID) error{
				h.PauseBulk, h.ResumeBulk,
			} {
				err := h.try(func(ctx context.Context, tx *postgres.Tx) error {
					return change(ctx, tx, uid)
				})
				if err != nil && lending.ErrorCode(err) != lending.CodeInvalidState {
					t.Errorf("pausing and resuming: %v", err)
				}
			}
		}
	})
	all.Wait()
	if !errors.Is(stop.Err(), context.Canceled) {
		t.Fatalf("not done in time: %+v", h.bulk(t, uid))
	}
	h.wantConsistent(t, uid)
	if counts := h.bulk(t, uid).Counts; counts.Sent != 3*count {
		t.Errorf("%+v", counts)
	}
}

func TestBulkPausesInTheMiddleOfAThousand(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.subscribe(t, "https://hooks.example.com", nil)
	h.manyFailed(t, 1000)
	uid := h.begin(t, h.everything(), func(o *webhook.BulkOptions) { o.Pace = 100 })
	for range 4 {
		h.advance(t, uid, 1)
		h.clock.move(time.Second)
	}
	pause := func() error {
		return h.try(func(ctx context.Context, tx *postgres.Tx) error {
			return h.PauseBulk(ctx, tx, uid)
		})
	}
	if err := errors.Join(pause(), pause()); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		h.advance(t, uid, 1)
		h.clock.move(time.Minute)
	}
	counts := h.bulk(t, uid).Counts
	if counts.Sent != 400 || counts.Waiting != 600 {
		t.Errorf("paused at %+v", counts)
	}
	h.do(t, func(ctx context.Context, tx *postgres.Tx) error { return h.ResumeBulk(ctx, tx, uid) })
	if next := h.advance(t, uid, 1); next != 0 {
		t.Errorf("the job from before the pause goes on in %s", next)
	}
	for range 3 {
		h.advance(t, uid, 2)
		h.clock.move(time.Second)
	}
	var withdrawn int
	h.do(t, func(ctx context.Context, tx *postgres.Tx) (err error) {
		withdrawn, err = h.CancelBulk(ctx, tx, uid)
		return err
	})
	bulk := h.bulk(t, uid)
	if bulk.State != webhook.BulkCancelled || bulk.Counts.Waiting != 0 ||
		bulk.Counts.Cancelled != withdrawn || bulk.Counts.Sent+withdrawn != 1000 || withdrawn == 0 {
		t.Errorf("cancelled %d: %+v", withdrawn, bulk)
	}
	h.wantConsistent(t, uid)
	if made := h.count(t, `SELECT count(*) FROM deliveries WHERE resend_of IS NOT NULL`); made !=
		bulk.Counts.Sent {
		t.Errorf("%d new deliveries for %d sent", made, bulk.Counts.Sent)
	}
	// Those that were sent still end.
	h.failAll(t)
	h.clock.move(time.Minute)
	h.advance(t, uid, 2)
	if got := h.bulk(t, uid); got.Counts.Failed != bulk.Counts.Sent ||
		got.State != webhook.BulkCancelled {
		t.Errorf("after the attempts: %+v", got)
	}
}

func TestLostBulkIsRevived(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.subscribe(t, "https://hooks.example.com", nil)
	h.manyFailed(t, 5)
	uid := h.begin(t, h.everything(), nil)
	forgotten := h.draft(t, h.everything(), nil)
	h.clock.move(2 * time.Minute)
	revive := func(want int) {
		t.Helper()
		if got, err := h.ReviveBulks(t.Context()); err != nil || got != want {
			t.Errorf("revived %d, %v, want %d", got, err, want)
		}
	}
	revive(0) // its job waits
	h.exec(t, `DELETE FROM river_job`)
	revive(1)
	revive(0)
	if next := h.advance(t, uid, 1); next != 0 {
		t.Error("the old run goes on")
	}
	h.advance(t, uid, 2)
	if counts := h.bulk(t, uid).Counts; counts.Sent != 5 {
		t.Errorf("%+v", counts)
	}
	h.clock.move(8 * 24 * time.Hour)
	revive(0)
	if _, err := h.Bulk(t.Context(), forgotten); lending.ErrorCode(err) != lending.CodeNotFound {
		t.Errorf("an old draft is still there: %v", err)
	}
}

// Whatever is chosen by whom: no partner gets, or is counted for, what is
// another's.
func TestBulkStaysWithinItsPartner(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	type side struct{ partner, merchant, application, subscription uuid.UUID }
	var sides []side
	for range 3 {
		h.partner = h.newPartner(t)
		h.merchant = h.newMerchant(t, h.partner)
		h.application = h.newApplication(t, h.merchant)
		early, _ := h.subscribe(t, "https://hooks.example.com", nil)
		h.manyFailed(t, 4)
		h.subscribe(t, "https://hooks.example.com", nil) // never got those
		sides = append(sides, side{h.partner, h.merchant, h.application, early.UID})
	}
	since := h.clock.now().Add(-time.Hour)
	var deliveries, subscriptions []uuid.UUID
	if err := errors.Join(h.DB.Select(&deliveries, `SELECT delivery_uid FROM deliveries`),
		h.DB.Select(&subscriptions, `SELECT subscription_uid FROM subscriptions`)); err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(draw *rapid.T) {
		mine := rapid.SampledFrom(sides).Draw(draw, "partner")
		other := rapid.SampledFrom(sides).Draw(draw, "named")
		scope := webhook.BulkScope{
			PartnerUID: mine.partner, Since: since,
			Kind: rapid.SampledFrom([]webhook.BulkKind{
				webhook.BulkSelection, webhook.BulkFilter, webhook.BulkRecover, webhook.BulkReplay,
			}).Draw(draw, "kind"),
			Deliveries: rapid.SliceOfN(rapid.SampledFrom(deliveries), 0, 3).
				Draw(draw, "deliveries"),
			Subscriptions: rapid.SliceOfN(rapid.SampledFrom(subscriptions), 0, 3).
				Draw(draw, "subscriptions"),
		}
		if rapid.Bool().Draw(draw, "narrowed") {
			scope.Filter.SubscriptionUID = other.subscription
			scope.Filter.ApplicationUID = other.application
		}
		h.clock.move(time.Second)
		err := h.try(func(ctx context.Context, tx *postgres.Tx) error {
			uid, err := h.DraftBulk(ctx, tx, scope, webhook.BulkOptions{Pace: 500}, "support")
			if err != nil {
				return err
			}
			_, err = h.ConfirmBulk(ctx, tx, uid, webhook.BulkConsent{By: "s", Reason: "r"})
			return err
		})
		code := lending.ErrorCode(err)
		if err != nil && code != lending.CodeNotFound && code != lending.CodeInvalidState &&
			code != lending.CodeValidation {
			draw.Fatal(err)
		}
		foreign := h.count(t, `
			SELECT count(*)
			  FROM bulk_resend_items i
			  JOIN bulk_resends b USING (bulk_uid)
			  JOIN subscriptions s USING (subscription_uid)
			  JOIN events e ON e.event_uid = i.event_uid
			 WHERE s.partner_uid <> b.partner_uid
			    OR e.partner_uid <> b.partner_uid`)
		if foreign != 0 {
			draw.Fatalf("%d items are another partner's", foreign)
		}
		var uids []uuid.UUID
		if err := h.DB.Select(&uids,
			`SELECT bulk_uid FROM bulk_resends WHERE state = 'running'`); err != nil {
			draw.Fatal(err)
		}
		for _, uid := range uids {
			h.advance(t, uid, 1)
		}
		if crossed := h.count(t, `
			SELECT count(*)
			  FROM deliveries d
			  JOIN subscriptions s USING (subscription_uid)
			  JOIN events e ON e.event_uid = d.event_uid
			 WHERE s.partner_uid <> e.partner_uid`); crossed != 0 {
			draw.Fatalf("%d deliveries carry another partner's event", crossed)
		}
		h.failAll(t)
	})
	if n := h.count(t, `SELECT count(*) FROM bulk_resend_items WHERE new_uid IS NOT NULL`); n == 0 {
		t.Error("nothing was ever sent, so nothing was tested")
	}
}
