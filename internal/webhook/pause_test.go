package webhook_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
	"drawbridge/internal/webhook"
)

func (h *house) pause(t testing.TB, uid uuid.UUID) webhook.Subscription {
	t.Helper()
	return h.changeState(t, uid, h.Pause)
}

func (h *house) resume(t testing.TB, uid uuid.UUID) webhook.Subscription {
	t.Helper()
	return h.changeState(t, uid, h.Resume)
}

func (h *house) delete(t testing.TB, uid uuid.UUID) webhook.Subscription {
	t.Helper()
	return h.changeState(t, uid, h.Delete)
}

type stateChange func(
	ctx context.Context, tx *postgres.Tx, uid uuid.UUID, by string,
) (webhook.Subscription, error)

func (h *house) changeState(
	t testing.TB, uid uuid.UUID, change stateChange,
) webhook.Subscription {
	t.Helper()
	var changed webhook.Subscription
	h.do(t, func(ctx context.Context, tx *postgres.Tx) (err error) {
		changed, err = change(ctx, tx, uid, "operator")
		return err
	})
	return changed
}

func TestPausedDeliveriesWaitAndGoOutOnResume(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	endpoint := newReceiver(t, answering(500, 200))
	subscription, _ := h.subscribe(t, endpoint.URL, nil)
	h.publish(t)
	h.work(t) // fails, and is due again in a minute

	h.pause(t, subscription.UID)
	h.publish(t)
	h.clock.move(time.Hour)
	if promoted, worked := h.promote(t), h.work(t); promoted != 1 || worked != 2 {
		t.Errorf("%d promoted, %d worked", promoted, worked)
	}
	for _, delivery := range h.list(t) {
		if !delivery.Parked || delivery.State.IsFinal() || delivery.NextAttemptAt == nil {
			t.Errorf("while paused: %+v", delivery)
		}
	}
	if h.promote(t)+h.work(t) != 0 || len(endpoint.requests()) != 1 {
		t.Error("a paused subscription was sent to")
	}

	h.resume(t, subscription.UID)
	if promoted, worked := h.promote(t), h.work(t); promoted != 2 || worked != 2 {
		t.Errorf("after the resumption %d promoted, %d worked", promoted, worked)
	}
	requests := endpoint.requests()
	if len(requests) != 3 {
		t.Fatalf("%d requests, want 3", len(requests))
	}
	for _, delivery := range h.list(t) {
		if delivery.State != webhook.DeliveryDelivered || delivery.Parked {
			t.Errorf("after the resumption: %+v", delivery)
		}
	}
	// What had been due longest went first: the new event, then the retry.
	for i, want := range []string{"1", "1", "2"} {
		if got := requests[i].header.Get("x-drawbridge-attempt"); got != want {
			t.Errorf("request %d is attempt %s, want %s", i+1, got, want)
		}
	}
}

func TestStatesOfASubscription(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	subscription, _ := h.subscribe(t, "https://hooks.example.com", nil)
	uid := subscription.UID
	steps := []struct {
		name    string
		change  stateChange
		state   webhook.State
		version int
	}{
		{"resume an active one", h.Resume, webhook.StateActive, 1},
		{"pause", h.Pause, webhook.StatePaused, 2},
		{"pause again", h.Pause, webhook.StatePaused, 2},
		{"resume", h.Resume, webhook.StateActive, 3},
		{"pause it again", h.Pause, webhook.StatePaused, 4},
		{"delete", h.Delete, webhook.StateDeleted, 5},
	}
	for _, step := range steps {
		got := h.changeState(t, uid, step.change)
		if got.State != step.state || got.Version != step.version {
			t.Errorf("%s: %s in version %d, want %s in %d",
				step.name, got.State, got.Version, step.state, step.version)
		}
	}
	if loaded, err := h.Subscription(t.Context(), uid); err != nil ||
		loaded.State != webhook.StateDeleted {
		t.Errorf("loaded %+v (%v)", loaded, err)
	}
	for name, change := range map[string]stateChange{
		"Pause": h.Pause, "Resume": h.Resume, "Delete": h.Delete,
	} {
		for _, target := range []uuid.UUID{uid, uuid.New()} {
			err := h.try(func(ctx context.Context, tx *postgres.Tx) error {
				_, err := change(ctx, tx, target, "operator")
				return err
			})
			if lending.ErrorCode(err) != lending.CodeNotFound {
				t.Errorf("%s of a deleted or unknown one: %v", name, err)
			}
		}
	}
	changes := map[string]int{"created": 1, "paused": 2, "active": 1, "deleted": 1}
	for change, want := range changes {
		if got := h.count(t, `
			SELECT count(*)
			  FROM subscription_versions
			 WHERE change = $1
			   AND changed_by = 'operator'`, change); got != want {
			t.Errorf("%d versions %q, want %d", got, change, want)
		}
	}
}

func TestResumingAFailingSubscriptionLeavesItFailing(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	endpoint := newReceiver(t, nil)
	subscription, _ := h.subscribe(t, endpoint.URL, nil)
	h.exec(t, `UPDATE subscriptions SET state = 'failing'`)
	if got := h.resume(t, subscription.UID); got.State != webhook.StateFailing || got.Version != 1 {
		t.Errorf("resumed: %s in version %d", got.State, got.Version)
	}
	h.publish(t)
	if h.work(t); len(endpoint.requests()) != 1 {
		t.Error("a failing subscription is not sent to")
	}
	if got := h.pause(t, subscription.UID); got.State != webhook.StatePaused {
		t.Errorf("paused: %s", got.State)
	}
}

func TestDeletionCancelsWhatHasNotGoneOut(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	endpoint := newReceiver(t, answering(200, 500, 200))
	subscription, _ := h.subscribe(t, endpoint.URL, nil)
	h.publish(t)
	h.work(t) // delivered
	h.publish(t)
	h.work(t) // retrying
	h.pause(t, subscription.UID)
	h.publish(t)
	h.work(t) // parked
	h.publish(t)
	queued := h.job(t) // on its way to a worker

	h.delete(t, subscription.UID)
	h.publish(t) // for nobody
	h.clock.move(time.Hour)
	if err := h.Deliver(t.Context(), queued, first); err != nil {
		t.Fatal(err)
	}
	if count := h.promote(t) + h.work(t); count != 0 {
		t.Errorf("%d jobs after the deletion", count)
	}
	states := make(map[webhook.DeliveryState]int)
	for _, delivery := range h.list(t) {
		states[delivery.State]++
		if delivery.FinishedAt == nil || delivery.Parked || delivery.NextAttemptAt != nil {
			t.Errorf("after the deletion: %+v", delivery)
		}
	}
	if states[webhook.DeliveryDelivered] != 1 || states[webhook.DeliveryCancelled] != 3 ||
		len(endpoint.requests()) != 2 {
		t.Errorf("states %v, %d requests", states, len(endpoint.requests()))
	}
}

// The change of a subscription commits while a worker is about to park a
// delivery of it: the worker waits for the change and does what is right then.
func TestWorkerCrossesAChangeOfThePausedSubscription(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		change func(h *house) stateChange
		want   webhook.DeliveryState
		sent   int
	}{
		{
			"resumed", func(h *house) stateChange { return h.Resume },
			webhook.DeliveryDelivered, 1,
		},
		{
			"deleted", func(h *house) stateChange { return h.Delete },
			webhook.DeliveryCancelled, 0,
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t)
			endpoint := newReceiver(t, nil)
			subscription, _ := h.subscribe(t, endpoint.URL, nil)
			h.pause(t, subscription.UID)
			h.publish(t)
			job := h.job(t)
			done := make(chan error, 1)
			h.do(t, func(ctx context.Context, tx *postgres.Tx) error {
				_, err := test.change(h)(ctx, tx, subscription.UID, "operator")
				if err != nil {
					return err
				}
				go func() { done <- h.Deliver(context.Background(), job, first) }()
				h.waitForLock(t)
				return nil
			})
			if err := <-done; err != nil {
				t.Fatal(err)
			}
			got := h.newest(t)
			if got.State != test.want || got.Parked || len(endpoint.requests()) != test.sent {
				t.Errorf("%d requests, delivery %+v", len(endpoint.requests()), got)
			}
		})
	}
}

// An event is being recorded while its subscription is deleted: whoever commits
// last, nothing goes out and nothing stays pending.
func TestEventCrossesTheDeletion(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	endpoint := newReceiver(t, nil)
	subscription, _ := h.subscribe(t, endpoint.URL, nil)
	h.do(t, func(ctx context.Context, tx *postgres.Tx) error {
		if count, err := h.Publish(ctx, tx, h.event()); err != nil || count != 1 {
			t.Fatalf("%d deliveries (%v), want 1", count, err)
		}
		h.delete(t, subscription.UID)
		return nil
	})
	h.work(t)
	if got := h.newest(t); got.State != webhook.DeliveryCancelled || got.FinishedAt == nil {
		t.Errorf("delivery %+v", got)
	}
	if len(endpoint.requests()) != 0 || h.promote(t) != 0 {
		t.Error("a deleted subscription was sent to")
	}
}
