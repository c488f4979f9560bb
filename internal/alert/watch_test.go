package alert_test

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/alert"
	"drawbridge/internal/email"
	"drawbridge/internal/postgres"
	"drawbridge/internal/webhook/delivery"
	"drawbridge/internal/webhook/subscription"
)

// An endpoint that fails for a day makes its subscription failing, with one mail, and the first
// success makes it active again, with one more, however many processes run at the same time.
func TestFailingAndRecovered(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.publish()
	h.finish()
	h.move(time.Hour)
	h.fail(20)
	h.look()
	if state := h.state(); state != subscription.StateActive {
		t.Fatalf("after 20 hours of failures it is %s", state)
	}
	h.fail(5)
	lookTogether(h)
	if state, mails := h.state(), h.mails(email.KindSubscriptionFailing); mails != 1 ||
		state != subscription.StateFailing {
		t.Fatalf("after 25 hours it is %s, with %d mails", state, mails)
	}
	item, ok := h.open(alert.KindFailing)
	if !ok || item.Subscription.UUID != h.subscription || item.Count != 75 {
		t.Errorf("item %+v", item)
	}
	h.fail(3)
	lookTogether(h)
	h.status.Store(http.StatusNoContent)
	h.publish()
	h.finish()
	lookTogether(h)
	if state, mails := h.state(), h.mails(email.KindSubscriptionRecovered); mails != 1 ||
		state != subscription.StateActive || h.mails(email.KindSubscriptionFailing) != 1 {
		t.Errorf("after a success it is %s, with %d mails", state, mails)
	}
	if _, ok := h.open(alert.KindFailing); ok {
		t.Error("the item of a recovered subscription is still open")
	}
	var versions []string
	h.must(h.DB.SelectContext(t.Context(), &versions, `
		SELECT change || ' by ' || changed_by
		  FROM subscription_versions
		 WHERE subscription_uid = $1
		 ORDER BY version`, h.subscription))
	got := strings.Join(versions, ", ")
	if got != "created by operator, failing by system, recovered by system" {
		t.Errorf("versions: %s", got)
	}
	if audited := h.count(`
		SELECT count(*) FROM audit_log WHERE actor = 'system' AND subject = $1::text`,
		h.subscription); audited != 2 {
		t.Errorf("%d audit entries, want one for each change", audited)
	}
}

// lookTogether runs look in several processes at once.
func lookTogether(h *harness) {
	h.Helper()
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			if _, err := h.Tally(h.Context()); err != nil {
				h.Errorf("tally: %v", err)
			}
		})
	}
	group.Wait()
	for range 4 {
		group.Go(func() {
			if err := h.Watch(h.Context()); err != nil {
				h.Errorf("watch: %v", err)
			}
		})
	}
	group.Wait()
}

func TestTooFewEventsDoNotFail(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.fail(9)
	h.move(48 * time.Hour)
	h.look()
	if state := h.state(); state != subscription.StateActive {
		t.Errorf("after nine failed events it is %s", state)
	}
	h.fail(1)
	h.look()
	if state := h.state(); state != subscription.StateFailing {
		t.Errorf("after the tenth it is %s", state)
	}
}

func TestSubscriptionsOwnRules(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	watch := subscription.Watch{
		FailingMinutes: 30, FailingEvents: 2, Pause: true, AlertEmail: "owner@sunvolt.example",
	}
	h.do(func(ctx context.Context, tx *postgres.Tx) error {
		_, _, err := h.Webhooks.Subscriptions.Amend(ctx, tx, h.subscription,
			subscription.Patch{Watch: &watch}, "operator")
		return err
	})
	h.fail(2)
	h.publish() // waits in the queue while the subscription pauses itself
	h.look()
	if state := h.state(); state != subscription.StatePaused {
		t.Fatalf("it is %s, want it to have paused itself", state)
	}
	recipients := h.count(`
		SELECT count(*) FROM emails WHERE kind = 'subscription_failing'
		   AND to_address IN ($1, $2) AND params ->> 'paused' = 'true'`, alertTo, watch.AlertEmail)
	if recipients != 2 {
		t.Errorf("%d mails, want one to the operators and one to the subscription's own", recipients)
	}
	h.work()
	h.look()
	// Once resumed, it gets its full time again.
	h.do(func(ctx context.Context, tx *postgres.Tx) error {
		_, err := h.Webhooks.Subscriptions.Resume(ctx, tx, h.subscription, "operator")
		return err
	})
	h.look()
	if state := h.state(); state != subscription.StateActive {
		t.Errorf("right after it was resumed it is %s", state)
	}
	h.fail(3)
	h.look()
	if state := h.state(); state != subscription.StatePaused {
		t.Errorf("failing on after that it is %s", state)
	}
}

func TestResumedFailingSubscriptionBeginsAgain(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.fail(25)
	h.look()
	for _, change := range []func(
		context.Context, *postgres.Tx,
	) (subscription.Subscription, error){
		func(ctx context.Context, tx *postgres.Tx) (subscription.Subscription, error) {
			return h.Webhooks.Subscriptions.Pause(ctx, tx, h.subscription, "operator")
		},
		func(ctx context.Context, tx *postgres.Tx) (subscription.Subscription, error) {
			return h.Webhooks.Subscriptions.Resume(ctx, tx, h.subscription, "operator")
		},
	} {
		h.do(func(ctx context.Context, tx *postgres.Tx) error {
			_, err := change(ctx, tx)
			return err
		})
	}
	h.look()
	if state, mails := h.state(), h.mails(email.KindSubscriptionFailing); mails != 1 ||
		state != subscription.StateActive {
		t.Errorf("after pause and resumption it is %s, with %d mails", state, mails)
	}
}

// However many deliveries fail for good, there is one item and one mail, until every event has
// been delivered after all.
func TestUsedUpDeliveries(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.fail(3)
	h.look()
	item, ok := h.open(alert.KindUsedUp)
	if !ok || item.Count != 3 || item.Partner != "Sunvolt Energy" || item.URL != h.receiver.URL {
		t.Fatalf("item %+v", item)
	}
	if mails := h.mails(email.KindAttemptsUsedUp); mails != 1 {
		t.Errorf("%d mails", mails)
	}
	h.status.Store(http.StatusOK)
	found, _, err := h.Webhooks.Deliveries.List(t.Context(), delivery.Filter{},
		postgres.Paging{Limit: 10})
	h.must(err)
	for i, sent := range found {
		if _, ok := h.open(alert.KindUsedUp); !ok {
			t.Errorf("the item is closed although %d deliveries are not made good", 3-i)
		}
		h.do(func(ctx context.Context, tx *postgres.Tx) error {
			_, err := h.Webhooks.Deliveries.Resend(ctx, tx, []uuid.UUID{sent.UID}, "sam", "it is up again")
			return err
		})
		h.work()
		h.look()
	}
	if item, ok := h.open(alert.KindUsedUp); ok {
		t.Errorf("the item is open although everything was delivered: %+v", item)
	}
	h.fail(1)
	h.look()
	if item, ok = h.open(alert.KindUsedUp); !ok || item.Count != 1 {
		t.Errorf("the next failure makes no item of its own: %+v", item)
	}
}

func TestUnknownOutcome(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.publish()
	found, _, err := h.Webhooks.Deliveries.List(t.Context(), delivery.Filter{},
		postgres.Paging{Limit: 1})
	h.must(err)
	sent := found[0]
	h.exec(`DELETE FROM river_job`)
	h.must(h.Webhooks.Deliveries.Deliver(t.Context(), delivery.Args{
		DeliveryUID: sent.UID, CreatedAt: sent.CreatedAt, Number: 1,
	}, delivery.Run{Number: 2}))
	h.look()
	if item, ok := h.open(alert.KindUnknown); !ok || item.Severity != alert.Warning {
		t.Errorf("item %+v", item)
	}
	_, err = h.Webhooks.Deliveries.EnqueueDue(t.Context())
	h.must(err)
	h.work()
	h.look()
	if _, ok := h.open(alert.KindUnknown); ok {
		t.Error("the item is open although the delivery succeeded")
	}
}

// A failed delivery whose event arrived by another one alerts neither the operators nor the
// contact, neither for its attempts nor for their unknown outcome.
func TestMadeGoodFailuresAlertNobody(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.contact("it@sunvolt.example")
	h.publish()
	h.work()
	found, _, err := h.Webhooks.Deliveries.List(t.Context(), delivery.Filter{},
		postgres.Paging{Limit: 1})
	h.must(err)
	h.look()
	h.status.Store(http.StatusServiceUnavailable)
	h.do(func(ctx context.Context, tx *postgres.Tx) error {
		chosen := []uuid.UUID{found[0].UID}
		_, err := h.Webhooks.Deliveries.Resend(ctx, tx, chosen, "sam", "again")
		return err
	})
	h.finish()
	failed, err := h.Webhooks.Deliveries.Count(t.Context(),
		delivery.Filter{State: delivery.StateFailed}, 10)
	h.must(err)
	if failed != 1 {
		t.Fatalf("%d deliveries failed, want 1", failed)
	}
	h.exec(`UPDATE attempt_outcomes SET error_class = 'unknown' WHERE failed > 0`)
	h.look()
	for _, kind := range []alert.Kind{alert.KindUsedUp, alert.KindUnknown} {
		if item, ok := h.open(kind); ok {
			t.Errorf("item %+v", item)
		}
	}
	if mails := h.mails(email.KindAttemptsUsedUp); mails != 0 {
		t.Errorf("%d mails to the operators", mails)
	}
	if mails := h.contactMails(0); len(mails) != 0 {
		t.Errorf("the contact was told %v", mails[0].Params)
	}
}

// Deliveries that fail after waiting behind a pause for six weeks do not count as delivered.
func TestFailuresAfterALongPauseStayOpen(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	change := func(by func(context.Context, *postgres.Tx, uuid.UUID, string) (
		subscription.Subscription, error),
	) {
		t.Helper()
		h.do(func(ctx context.Context, tx *postgres.Tx) error {
			_, err := by(ctx, tx, h.subscription, "operator")
			return err
		})
	}
	h.status.Store(http.StatusInternalServerError)
	change(h.Webhooks.Subscriptions.Pause)
	for range 3 {
		h.publish()
	}
	h.finish()
	h.move(42 * 24 * time.Hour)
	change(h.Webhooks.Subscriptions.Resume)
	_, err := h.Webhooks.Deliveries.EnqueueDue(h.Context())
	h.must(err)
	h.finish()
	for range 2 {
		h.look()
		if item, ok := h.open(alert.KindUsedUp); !ok || item.Count != 3 {
			t.Errorf("three deliveries failed for good, and the item is open: %t, %+v", ok, item)
		}
		h.move(time.Hour)
	}
	h.status.Store(http.StatusOK)
	found, _, err := h.Webhooks.Deliveries.List(t.Context(), delivery.Filter{},
		postgres.Paging{Limit: 10})
	h.must(err)
	h.do(func(ctx context.Context, tx *postgres.Tx) error {
		var uids []uuid.UUID
		for _, failed := range found {
			uids = append(uids, failed.UID)
		}
		_, err := h.Webhooks.Deliveries.Resend(ctx, tx, uids, "sam", "it is up again")
		return err
	})
	h.work()
	h.look()
	if item, ok := h.open(alert.KindUsedUp); ok {
		t.Errorf("the item is open although everything was delivered: %+v", item)
	}
}
