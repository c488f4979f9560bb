package bulk_test

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
	"drawbridge/internal/postgres/pgtest"
	"drawbridge/internal/retention"
	"drawbridge/internal/waittest"
	"drawbridge/internal/webhook/bulk"
	"drawbridge/internal/webhook/webhooktest"
)

// New deliveries keep coming in while the set is frozen: exactly the set that was agreed
// to is frozen, and nothing is added later.
func TestBulkSetIsExactWhileDeliveriesComeIn(t *testing.T) {
	t.Parallel()
	h := webhooktest.New(t)
	h.Subscribe(t, "https://hooks.example.com", nil)
	h.ManyFailed(t, 300)
	stop, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() {
			for stop.Err() == nil {
				err := h.Try(func(ctx context.Context, tx *postgres.Tx) error {
					_, err := h.Deliveries.Publish(ctx, tx, h.NewEvent())
					return err
				})
				if err != nil {
					t.Errorf("publishing: %v", err)
					return
				}
			}
		})
	}
	uid := h.Draft(t, h.Everything(), func(o *bulk.Options) { o.Pace = bulk.MaxPace })
	planned := h.Plan(t, uid).Total
	total := h.Confirm(t, uid)
	for range 3 {
		h.Advance(t, uid, 1)
		h.Clock.Move(time.Second)
	}
	cancel()
	all.Wait()
	if counts := h.LoadBulk(t, uid).Counts; planned != 300 || total != 300 || counts.Total() != 300 {
		t.Errorf("planned %d, confirmed %d, frozen %+v", planned, total, counts)
	}
	h.WantConsistent(t, uid)
}

// A worker dies between claiming and committing: nothing was sent, and the next one sends
// everything once.
func TestBulkSurvivesADyingWorker(t *testing.T) {
	t.Parallel()
	h := webhooktest.New(t)
	h.Subscribe(t, "https://hooks.example.com", nil)
	h.ManyFailed(t, 10)
	uid := h.Begin(t, h.Everything(), nil)
	dying, kill := context.WithCancel(t.Context())
	died := make(chan error, 1)
	// Holding the lock on the table keeps the worker inside its statement.
	h.Do(t, func(ctx context.Context, tx *postgres.Tx) error {
		if _, err := tx.ExecContext(ctx, `LOCK TABLE deliveries IN SHARE MODE`); err != nil {
			return err
		}
		go func() {
			_, err := h.Bulk.Advance(dying, bulk.Args{BulkUID: uid, Run: 1})
			died <- err
		}()
		pgtest.WaitForLock(t, h.DB)
		kill()
		if err := <-died; err == nil {
			t.Error("the worker did not die")
		}
		return nil
	})
	if counts := h.LoadBulk(t, uid).Counts; counts.Waiting != 10 {
		t.Errorf("after the death: %+v", counts)
	}
	h.Advance(t, uid, 1)
	if counts := h.LoadBulk(t, uid).Counts; counts.Sent != 10 {
		t.Errorf("after the next: %+v", counts)
	}
	h.WantConsistent(t, uid)
}

// With several workers, some of them killed, and somebody who pauses and resumes, each
// item is sent once.
func TestBulkWorkersShareTheWork(t *testing.T) {
	t.Parallel()
	h := webhooktest.New(t)
	for range 3 {
		h.Subscribe(t, "https://hooks.example.com", nil)
	}
	const count = 400
	h.ManyFailed(t, count)
	uid := h.Begin(t, h.Everything(), func(o *bulk.Options) { o.Pace = bulk.MaxPace })
	stop, cancel := context.WithTimeout(t.Context(), waittest.Patience)
	defer cancel()
	var all sync.WaitGroup
	for n := range 4 {
		all.Go(func() {
			for round := 1; stop.Err() == nil; round++ {
				ctx, kill := context.WithCancel(stop)
				if n == 0 && round%3 == 0 {
					time.AfterFunc(time.Millisecond, kill)
				}
				resend, err := h.Bulk.Get(stop, uid)
				if err == nil && resend.Counts.Waiting == 0 {
					cancel()
				}
				for run := 1; run < 20; run++ {
					_, _ = h.Bulk.Advance(ctx, bulk.Args{BulkUID: uid, Run: run})
				}
				h.Clock.Move(5 * time.Millisecond)
				kill()
			}
		})
	}
	all.Go(func() {
		for range 10 {
			for _, change := range []func(context.Context, *postgres.Tx, uuid.UUID) error{
				h.Bulk.Pause, h.Bulk.Resume,
			} {
				err := h.Try(func(ctx context.Context, tx *postgres.Tx) error {
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
		t.Fatalf("not done in time: %+v", h.LoadBulk(t, uid))
	}
	h.WantConsistent(t, uid)
	if counts := h.LoadBulk(t, uid).Counts; counts.Sent != 3*count {
		t.Errorf("%+v", counts)
	}
}

// Two bulk re-sends were confirmed at the same time, so that neither saw the other, and
// their workers collide: each event is sent once.
func TestBulksOfTheSameSendItOnce(t *testing.T) {
	t.Parallel()
	for _, kind := range []bulk.Kind{bulk.KindRecover, bulk.KindFilter} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			meet(t, kind)
		})
	}
}

func meet(t *testing.T, kind bulk.Kind) {
	t.Helper()
	h := webhooktest.New(t)
	one, _ := h.Subscribe(t, "https://hooks.example.com", nil)
	since := h.Clock.Now()
	h.ManyFailed(t, 5)
	scope := h.Everything()
	if kind == bulk.KindRecover {
		scope.Kind, scope.Since, scope.Subscriptions = kind, since, []uuid.UUID{one.UID}
	}
	first, second := h.Draft(t, scope, nil), h.Draft(t, scope, nil)
	confirm := func(ctx context.Context, tx *postgres.Tx, uid uuid.UUID, by string) {
		total, err := h.Bulk.Confirm(ctx, tx, uid, bulk.Consent{
			By: by, Reason: "the partner was down", Count: 5,
		})
		if err != nil || total != 5 {
			t.Errorf("%s confirmed %d: %v", by, total, err)
		}
	}
	h.Do(t, func(ctx context.Context, tx *postgres.Tx) error {
		confirm(ctx, tx, first, "ada@lender.example")
		return h.Try(func(ctx context.Context, other *postgres.Tx) error {
			confirm(ctx, other, second, "sam@lender.example")
			return nil
		})
	})
	var workers sync.WaitGroup
	h.Do(t, func(ctx context.Context, tx *postgres.Tx) error {
		if _, err := tx.ExecContext(ctx, `LOCK TABLE deliveries IN SHARE MODE`); err != nil {
			return err
		}
		for _, uid := range []uuid.UUID{first, second} {
			workers.Go(func() {
				if _, err := h.Bulk.Advance(t.Context(), bulk.Args{BulkUID: uid, Run: 1}); err != nil {
					t.Error(err)
				}
			})
		}
		waittest.Until(t, "both workers are at it", func() bool {
			return h.Count(t, `
				SELECT count(*)
				  FROM pg_stat_activity
				 WHERE datname = current_database()
				   AND wait_event_type = 'Lock'`) == 2
		})
		return nil
	})
	workers.Wait()
	if made := h.Count(t, `SELECT count(*) FROM deliveries WHERE resend_of IS NOT NULL`); made != 5 {
		t.Errorf("%d deliveries were made of 5 events", made)
	}
}

// A clock that ran ahead for a while delays nothing once it is right again.
func TestBulkGoesOnAfterAClockThatRanAhead(t *testing.T) {
	t.Parallel()
	h := webhooktest.New(t)
	h.Subscribe(t, "https://hooks.example.com", nil)
	h.ManyFailed(t, 10)
	uid := h.Begin(t, h.Everything(), nil)
	h.Exec(t, `UPDATE bulk_resend_lanes SET paced_at = $1`, h.Clock.Now().Add(5*time.Hour))
	for range 4 {
		h.Advance(t, uid, 1)
		h.Clock.Move(time.Second)
	}
	if counts := h.LoadBulk(t, uid).Counts; counts.Sent != 10 {
		t.Errorf("%+v", counts)
	}
}

func TestBulkPausesInTheMiddleOfAThousand(t *testing.T) {
	t.Parallel()
	h := webhooktest.New(t)
	h.Subscribe(t, "https://hooks.example.com", nil)
	h.ManyFailed(t, 1000)
	uid := h.Begin(t, h.Everything(), func(o *bulk.Options) { o.Pace = 100 })
	for range 4 {
		h.Advance(t, uid, 1)
		h.Clock.Move(time.Second)
	}
	pause := func() error {
		return h.Try(func(ctx context.Context, tx *postgres.Tx) error {
			return h.Bulk.Pause(ctx, tx, uid)
		})
	}
	if err := errors.Join(pause(), pause()); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		h.Advance(t, uid, 1)
		h.Clock.Move(time.Minute)
	}
	counts := h.LoadBulk(t, uid).Counts
	if counts.Sent != 400 || counts.Waiting != 600 {
		t.Errorf("paused at %+v", counts)
	}
	h.Do(t, func(ctx context.Context, tx *postgres.Tx) error { return h.Bulk.Resume(ctx, tx, uid) })
	if next := h.Advance(t, uid, 1); next != 0 {
		t.Errorf("the job from before the pause goes on in %s", next)
	}
	for range 3 {
		h.Advance(t, uid, 2)
		h.Clock.Move(time.Second)
	}
	var withdrawn int
	h.Do(t, func(ctx context.Context, tx *postgres.Tx) (err error) {
		withdrawn, err = h.Bulk.Cancel(ctx, tx, uid)
		return err
	})
	resend := h.LoadBulk(t, uid)
	if resend.State != bulk.StateCancelled || resend.Counts.Waiting != 0 ||
		resend.Counts.Cancelled != withdrawn || resend.Counts.Sent+withdrawn != 1000 || withdrawn == 0 {
		t.Errorf("cancelled %d: %+v", withdrawn, resend)
	}
	h.WantConsistent(t, uid)
	if made := h.Count(t, `SELECT count(*) FROM deliveries WHERE resend_of IS NOT NULL`); made !=
		resend.Counts.Sent {
		t.Errorf("%d new deliveries for %d sent", made, resend.Counts.Sent)
	}
	// The deliveries that were sent still end.
	h.FailAll(t)
	h.Clock.Move(time.Minute)
	h.Advance(t, uid, 2)
	if got := h.LoadBulk(t, uid); got.Counts.Failed != resend.Counts.Sent ||
		got.State != bulk.StateCancelled {
		t.Errorf("after the attempts: %+v", got)
	}
}

func TestLostBulkIsRevived(t *testing.T) {
	t.Parallel()
	h := webhooktest.New(t)
	h.Subscribe(t, "https://hooks.example.com", nil)
	h.ManyFailed(t, 5)
	uid := h.Begin(t, h.Everything(), nil)
	forgotten := h.Draft(t, h.Everything(), nil)
	h.Clock.Move(2 * time.Minute)
	revive := func(want int) {
		t.Helper()
		if got, err := h.Bulk.Revive(t.Context()); err != nil || got != want {
			t.Errorf("revived %d, %v, want %d", got, err, want)
		}
	}
	revive(0) // its job is waiting
	h.Exec(t, `DELETE FROM river_job`)
	revive(1)
	revive(0)
	if next := h.Advance(t, uid, 1); next != 0 {
		t.Error("the old run goes on")
	}
	h.Advance(t, uid, 2)
	if counts := h.LoadBulk(t, uid).Counts; counts.Sent != 5 {
		t.Errorf("%+v", counts)
	}
	h.Clock.Move(8 * 24 * time.Hour)
	revive(0)
	if _, err := h.Bulk.Get(t.Context(), forgotten); lending.ErrorCode(err) != lending.CodeNotFound {
		t.Errorf("an old draft is still there: %v", err)
	}
}

// Whoever selects whatever: no partner receives, or is counted for, another's deliveries.
func TestBulkStaysWithinItsPartner(t *testing.T) {
	t.Parallel()
	h := webhooktest.New(t)
	type side struct{ partner, merchant, application, subscription uuid.UUID }
	var sides []side
	for range 3 {
		h.Partner = h.NewPartner(t)
		h.Merchant = h.NewMerchant(t, h.Partner)
		h.Application = h.NewApplication(t, h.Merchant)
		early, _ := h.Subscribe(t, "https://hooks.example.com", nil)
		h.ManyFailed(t, 4)
		h.Subscribe(t, "https://hooks.example.com", nil) // never got those
		sides = append(sides, side{h.Partner, h.Merchant, h.Application, early.UID})
	}
	since := h.Clock.Now().Add(-time.Hour)
	var deliveries, subscriptions []uuid.UUID
	if err := errors.Join(h.DB.Select(&deliveries, `SELECT delivery_uid FROM deliveries`),
		h.DB.Select(&subscriptions, `SELECT subscription_uid FROM subscriptions`)); err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(draw *rapid.T) {
		mine := rapid.SampledFrom(sides).Draw(draw, "partner")
		other := rapid.SampledFrom(sides).Draw(draw, "named")
		scope := bulk.Scope{
			PartnerUID: mine.partner, Since: since,
			Kind: rapid.SampledFrom([]bulk.Kind{
				bulk.KindSelection, bulk.KindFilter, bulk.KindRecover, bulk.KindReplay,
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
		h.Clock.Move(time.Second)
		err := h.Try(func(ctx context.Context, tx *postgres.Tx) error {
			uid, err := h.Bulk.Draft(ctx, tx, scope, bulk.Options{Pace: 500}, "support")
			if err != nil {
				return err
			}
			_, err = h.Bulk.Confirm(ctx, tx, uid, bulk.Consent{By: "s", Reason: "r"})
			return err
		})
		code := lending.ErrorCode(err)
		if err != nil && code != lending.CodeNotFound && code != lending.CodeInvalidState &&
			code != lending.CodeValidation {
			draw.Fatal(err)
		}
		foreign := h.Count(t, `
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
			h.Advance(t, uid, 1)
		}
		if crossed := h.Count(t, `
			SELECT count(*)
			  FROM deliveries d
			  JOIN subscriptions s USING (subscription_uid)
			  JOIN events e ON e.event_uid = d.event_uid
			 WHERE s.partner_uid <> e.partner_uid`); crossed != 0 {
			draw.Fatalf("%d deliveries carry another partner's event", crossed)
		}
		h.FailAll(t)
	})
	if n := h.Count(t, `SELECT count(*) FROM bulk_resend_items WHERE new_uid IS NOT NULL`); n == 0 {
		t.Error("nothing was ever sent, so nothing was tested")
	}
}

// Bodies due for removal while a recovery sends their events are kept for it.
func TestRetentionWaitsForWhatIsBeingSentAgain(t *testing.T) {
	t.Parallel()
	h := webhooktest.New(t)
	endpoint := webhooktest.NewReceiver(t, nil)
	made, _ := h.Subscribe(t, endpoint.URL, nil)
	h.ManyFailed(t, 5)
	h.Exec(t, `UPDATE retention_settings SET body_days = 7`)
	h.Clock.Move(8 * 24 * time.Hour)
	uid := recoverAll(t, h, made.UID)
	sent := make(chan struct{})
	h.Do(t, func(ctx context.Context, tx *postgres.Tx) error {
		// Holding the counts keeps the worker after its statement, before it commits.
		_, err := tx.ExecContext(ctx,
			`SELECT FROM bulk_resend_lanes WHERE bulk_uid = $1 FOR UPDATE`, uid)
		if err != nil {
			return err
		}
		go func() {
			defer close(sent)
			h.Advance(t, uid, 1)
		}()
		pgtest.WaitForLock(t, h.DB)
		// Retention skips locked events, and removes them another time.
		_, err = (&retention.Service{DB: h.DB}).Run(ctx)
		if err != nil && !postgres.IsLockTimeout(err) {
			return err
		}
		return nil
	})
	<-sent
	h.EnqueueDue(t)
	h.Work(t)
	h.Clock.Move(time.Minute)
	h.EnqueueDue(t)
	h.Work(t)
	h.Advance(t, uid, 1)
	if got := len(endpoint.Requests()); got != 5 {
		t.Errorf("%d of 5 events were sent again", got)
	}
	if counts := h.LoadBulk(t, uid).Counts; counts.Delivered != 5 {
		t.Errorf("the recovery says %+v", counts)
	}
	h.WantConsistent(t, uid)
}

// A recovery waits for retention, and skips the events that have lost their bodies by then.
func TestWhatLosesItsBodyMeanwhileIsSkipped(t *testing.T) {
	t.Parallel()
	h := webhooktest.New(t)
	made, _ := h.Subscribe(t, "https://hooks.example.com", nil)
	h.ManyFailed(t, 5)
	h.Clock.Move(time.Hour)
	uid := recoverAll(t, h, made.UID)
	sent := make(chan struct{})
	h.Do(t, func(ctx context.Context, tx *postgres.Tx) error {
		_, err := tx.ExecContext(ctx, `UPDATE events SET body = '', body_removed_at = $1`, tx.Now)
		if err != nil {
			return err
		}
		go func() {
			defer close(sent)
			h.Advance(t, uid, 1)
		}()
		pgtest.WaitForLock(t, h.DB)
		return nil
	})
	<-sent
	if counts := h.LoadBulk(t, uid).Counts; counts.Skipped != 5 || counts.Ended() != 0 {
		t.Errorf("the recovery says %+v", counts)
	}
	h.WantConsistent(t, uid)
}

// An attempt under way while its delivery is cancelled may arrive: the recovery counts
// it, whether or not it had counted the cancellation already.
func TestBulkCountsWhatArrivesAfterItsCancellation(t *testing.T) {
	t.Parallel()
	for name, settled := range map[string]bool{"counted": true, "not counted yet": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := webhooktest.New(t)
			reached, answer := make(chan struct{}), make(chan struct{})
			endpoint := webhooktest.NewReceiver(t, func(http.ResponseWriter, int) {
				close(reached)
				<-answer
			})
			made, _ := h.Subscribe(t, endpoint.URL, nil)
			h.ManyFailed(t, 1)
			h.Clock.Move(time.Minute)
			uid := recoverAll(t, h, made.UID)
			h.Advance(t, uid, 1)
			h.EnqueueDue(t)
			job := h.Job(t)
			done := make(chan error, 1)
			go func() { done <- h.Deliveries.Deliver(t.Context(), job, webhooktest.First) }()
			<-reached
			h.Do(t, func(ctx context.Context, tx *postgres.Tx) error {
				_, err := h.Deliveries.Cancel(ctx, tx, []uuid.UUID{job.DeliveryUID})
				return err
			})
			h.Clock.Move(time.Minute)
			if settled {
				h.Advance(t, uid, 1)
				if counts := h.LoadBulk(t, uid).Counts; counts.Cancelled != 1 {
					t.Errorf("before it arrives: %+v", counts)
				}
			}
			close(answer)
			if err := <-done; err != nil {
				t.Fatal(err)
			}
			for range 2 {
				counts := h.LoadBulk(t, uid).Counts
				if counts.Delivered != 1 || counts.All() != 1 {
					t.Errorf("once it has arrived: %+v", counts)
				}
				h.WantConsistent(t, uid)
				h.Clock.Move(time.Minute)
				h.Advance(t, uid, 1)
			}
			if state := h.LoadBulk(t, uid).State; state != bulk.StateFinished {
				t.Errorf("the recovery is %s", state)
			}
		})
	}
}

// recoverAll begins a recovery of all that a subscription missed in ten days.
func recoverAll(t *testing.T, h *webhooktest.Harness, subscription uuid.UUID) (uid uuid.UUID) {
	t.Helper()
	h.Do(t, func(ctx context.Context, tx *postgres.Tx) error {
		begun, err := h.Bulk.Recover(ctx, tx, bulk.Recovery{
			PartnerUID: h.Partner, SubscriptionUID: subscription,
			Merchants: []uuid.UUID{h.Merchant},
			Since:     h.Clock.Now().AddDate(0, 0, -10), By: "client x",
		})
		uid = begun.UID
		return err
	})
	return uid
}
