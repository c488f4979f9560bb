package delivery_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
	"drawbridge/internal/postgres/pgtest"
	"drawbridge/internal/webhook/delivery"
	"drawbridge/internal/webhook/subscription"
	"drawbridge/internal/webhook/webhooktest"
)

func TestPausedDeliveriesWaitAndGoOutOnResume(t *testing.T) {
	t.Parallel()
	h := webhooktest.New(t)
	endpoint := webhooktest.NewReceiver(t, webhooktest.Answering(500, 200))
	subscribed, _ := h.Subscribe(t, endpoint.URL, nil)
	h.Publish(t)
	h.Work(t) // fails, and is due again in a minute

	h.Pause(t, subscribed.UID)
	h.Publish(t)
	h.Clock.Move(time.Hour)
	if enqueued, worked := h.EnqueueDue(t), h.Work(t); enqueued != 1 || worked != 2 {
		t.Errorf("%d enqueued, %d worked", enqueued, worked)
	}
	for _, found := range h.List(t) {
		if !found.Parked || found.State.IsFinal() || found.NextAttemptAt == nil {
			t.Errorf("while paused: %+v", found)
		}
	}
	if h.EnqueueDue(t)+h.Work(t) != 0 || len(endpoint.Requests()) != 1 {
		t.Error("a paused subscription was sent to")
	}

	h.Resume(t, subscribed.UID)
	if enqueued, worked := h.EnqueueDue(t), h.Work(t); enqueued != 2 || worked != 2 {
		t.Errorf("after the resumption %d enqueued, %d worked", enqueued, worked)
	}
	requests := endpoint.Requests()
	if len(requests) != 3 {
		t.Fatalf("%d requests, want 3", len(requests))
	}
	for _, found := range h.List(t) {
		if found.State != delivery.StateDelivered || found.Parked {
			t.Errorf("after the resumption: %+v", found)
		}
	}
	// The longest overdue went first: the new event, then the retry.
	for i, want := range []string{"1", "1", "2"} {
		if got := requests[i].Header.Get("x-drawbridge-attempt"); got != want {
			t.Errorf("request %d is attempt %s, want %s", i+1, got, want)
		}
	}
}

func TestStatesOfASubscription(t *testing.T) {
	t.Parallel()
	h := webhooktest.New(t)
	subscribed, _ := h.Subscribe(t, "https://hooks.example.com", nil)
	uid := subscribed.UID
	steps := []struct {
		name    string
		change  webhooktest.StateChange
		state   subscription.State
		version int
	}{
		{"resume an active one", h.Subscriptions.Resume, subscription.StateActive, 1},
		{"pause", h.Subscriptions.Pause, subscription.StatePaused, 2},
		{"pause again", h.Subscriptions.Pause, subscription.StatePaused, 2},
		{"resume", h.Subscriptions.Resume, subscription.StateActive, 3},
		{"pause it again", h.Subscriptions.Pause, subscription.StatePaused, 4},
		{"delete", h.Subscriptions.Delete, subscription.StateDeleted, 5},
	}
	for _, step := range steps {
		got := h.ChangeState(t, uid, step.change)
		if got.State != step.state || got.Version != step.version {
			t.Errorf("%s: %s in version %d, want %s in %d",
				step.name, got.State, got.Version, step.state, step.version)
		}
	}
	if loaded, err := h.Subscriptions.Get(t.Context(), uid); err != nil ||
		loaded.State != subscription.StateDeleted {
		t.Errorf("loaded %+v (%v)", loaded, err)
	}
	for name, change := range map[string]webhooktest.StateChange{
		"Pause": h.Subscriptions.Pause, "Resume": h.Subscriptions.Resume,
		"Delete": h.Subscriptions.Delete,
	} {
		for _, target := range []uuid.UUID{uid, uuid.New()} {
			err := h.Try(func(ctx context.Context, tx *postgres.Tx) error {
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
		if got := h.Count(t, `
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
	h := webhooktest.New(t)
	endpoint := webhooktest.NewReceiver(t, nil)
	subscribed, _ := h.Subscribe(t, endpoint.URL, nil)
	h.Exec(t, `UPDATE subscriptions SET state = 'failing'`)
	if got := h.Resume(t, subscribed.UID); got.State != subscription.StateFailing || got.Version != 1 {
		t.Errorf("resumed: %s in version %d", got.State, got.Version)
	}
	h.Publish(t)
	if h.Work(t); len(endpoint.Requests()) != 1 {
		t.Error("a failing subscription is not sent to")
	}
	if got := h.Pause(t, subscribed.UID); got.State != subscription.StatePaused {
		t.Errorf("paused: %s", got.State)
	}
}

func TestDeletionCancelsWhatHasNotGoneOut(t *testing.T) {
	t.Parallel()
	h := webhooktest.New(t)
	endpoint := webhooktest.NewReceiver(t, webhooktest.Answering(200, 500, 200))
	subscribed, _ := h.Subscribe(t, endpoint.URL, nil)
	h.Publish(t)
	h.Work(t) // delivered
	h.Publish(t)
	h.Work(t) // retrying
	h.Pause(t, subscribed.UID)
	h.Publish(t)
	h.Work(t) // parked
	h.Publish(t)
	queued := h.Job(t) // on its way to a worker

	h.Delete(t, subscribed.UID)
	h.Publish(t) // no subscription wants it
	h.Clock.Move(time.Hour)
	if err := h.Deliveries.Deliver(t.Context(), queued, webhooktest.First); err != nil {
		t.Fatal(err)
	}
	if count := h.EnqueueDue(t) + h.Work(t); count != 0 {
		t.Errorf("%d jobs after the deletion", count)
	}
	states := make(map[delivery.State]int)
	for _, found := range h.List(t) {
		states[found.State]++
		if found.FinishedAt == nil || found.Parked || found.NextAttemptAt != nil {
			t.Errorf("after the deletion: %+v", found)
		}
	}
	if states[delivery.StateDelivered] != 1 || states[delivery.StateCancelled] != 3 ||
		len(endpoint.Requests()) != 2 {
		t.Errorf("states %v, %d requests", states, len(endpoint.Requests()))
	}
}

// The change of a subscription commits while a worker is about to park a delivery of it:
// the worker waits for the change and then acts on the new state.
func TestWorkerCrossesAChangeOfThePausedSubscription(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		change func(h *webhooktest.Harness) webhooktest.StateChange
		want   delivery.State
		sent   int
	}{
		{
			"resumed",
			func(h *webhooktest.Harness) webhooktest.StateChange { return h.Subscriptions.Resume },
			delivery.StateDelivered, 1,
		},
		{
			"deleted",
			func(h *webhooktest.Harness) webhooktest.StateChange { return h.Subscriptions.Delete },
			delivery.StateCancelled, 0,
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			h := webhooktest.New(t)
			endpoint := webhooktest.NewReceiver(t, nil)
			subscribed, _ := h.Subscribe(t, endpoint.URL, nil)
			h.Pause(t, subscribed.UID)
			h.Publish(t)
			job := h.Job(t)
			done := make(chan error, 1)
			h.Do(t, func(ctx context.Context, tx *postgres.Tx) error {
				_, err := test.change(h)(ctx, tx, subscribed.UID, "operator")
				if err != nil {
					return err
				}
				go func() { done <- h.Deliveries.Deliver(context.Background(), job, webhooktest.First) }()
				pgtest.WaitForLock(t, h.DB)
				return nil
			})
			if err := <-done; err != nil {
				t.Fatal(err)
			}
			got := h.Newest(t)
			if got.State != test.want || got.Parked || len(endpoint.Requests()) != test.sent {
				t.Errorf("%d requests, delivery %+v", len(endpoint.Requests()), got)
			}
		})
	}
}

// An event is being recorded while its subscription is deleted: whichever commits last,
// nothing is sent and nothing stays pending.
func TestEventCrossesTheDeletion(t *testing.T) {
	t.Parallel()
	h := webhooktest.New(t)
	endpoint := webhooktest.NewReceiver(t, nil)
	subscribed, _ := h.Subscribe(t, endpoint.URL, nil)
	h.Do(t, func(ctx context.Context, tx *postgres.Tx) error {
		if made, err := h.Deliveries.Publish(ctx, tx, h.NewEvent()); err != nil ||
			made.Deliveries != 1 {
			t.Fatalf("%d deliveries (%v), want 1", made.Deliveries, err)
		}
		h.Delete(t, subscribed.UID)
		return nil
	})
	h.Work(t)
	if got := h.Newest(t); got.State != delivery.StateCancelled || got.FinishedAt == nil {
		t.Errorf("delivery %+v", got)
	}
	if len(endpoint.Requests()) != 0 || h.EnqueueDue(t) != 0 {
		t.Error("a deleted subscription was sent to")
	}
}

// A backlog too large for one transaction follows the state that its subscription has by then.
func TestALargeBacklogFollowsItsSubscription(t *testing.T) {
	t.Parallel()
	h := webhooktest.New(t)
	subscribed, _ := h.Subscribe(t, "https://hooks.example.com/", nil)
	h.Pause(t, subscribed.UID)
	h.Backlog(t, 2500, h.Clock.Now())
	park := func() { h.Exec(t, `UPDATE deliveries SET parked = true WHERE state = 'pending'`) }
	wantParked := func(when string, want int) {
		t.Helper()
		if got := h.Parked(t); got != want {
			t.Errorf("%s %d deliveries are set aside, want %d", when, got, want)
		}
	}
	follow := func() {
		t.Helper()
		if err := h.Subscriptions.Backlogs.Follow(t.Context(), subscribed.UID); err != nil {
			t.Fatal(err)
		}
	}
	park()
	h.Resume(t, subscribed.UID)
	wantParked("after the resumption", 1500)
	h.Pause(t, subscribed.UID)
	follow() // paused again
	wantParked("while it is paused", 1500)
	h.Resume(t, subscribed.UID)
	wantParked("after another resumption", 500)
	follow()
	wantParked("in the end", 0)
	if jobs := h.Count(t, `SELECT count(*) FROM river_job WHERE kind = 'webhook_backlog'`); jobs != 2 {
		t.Errorf("%d jobs were made, want one for each backlog that was too large", jobs)
	}
}

// A backlog whose job is gone gets one new job and follows its subscription after all,
// even if the database makes the transaction run again.
func TestABacklogWithoutAJobGetsOne(t *testing.T) {
	t.Parallel()
	h := webhooktest.New(t)
	subscribed, _ := h.Subscribe(t, "https://hooks.example.com/", nil)
	h.Pause(t, subscribed.UID)
	h.Backlog(t, 1500, h.Clock.Now())
	h.Exec(t, `UPDATE deliveries SET parked = true`)
	revived := func() int {
		t.Helper()
		count, err := h.Subscriptions.Backlogs.Revive(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return count
	}
	h.Clock.Move(2 * time.Hour)
	if count := revived(); count != 0 {
		t.Errorf("%d backlogs of a paused subscription were revived", count)
	}
	h.Resume(t, subscribed.UID)
	h.Exec(t, `DELETE FROM river_job`)
	if count := revived(); count != 0 {
		t.Errorf("%d backlogs were revived just after the resumption", count)
	}
	h.Clock.Move(2 * time.Hour)
	h.Exec(t, `
		CREATE SEQUENCE tries;
		CREATE FUNCTION fail_once() RETURNS trigger LANGUAGE plpgsql AS $$
		BEGIN
			IF nextval('tries') = 1 THEN
				RAISE serialization_failure;
			END IF;
			RETURN NULL;
		END $$;
		CREATE TRIGGER fail_once AFTER INSERT ON river_job
			FOR EACH STATEMENT EXECUTE FUNCTION fail_once()`)
	const jobs = `SELECT count(*) FROM river_job WHERE kind = 'webhook_backlog'`
	if count := revived(); count != 1 || h.Count(t, jobs) != 1 {
		t.Errorf("%d backlogs were revived by %d jobs, want one", count, h.Count(t, jobs))
	}
	if err := h.Subscriptions.Backlogs.Follow(t.Context(), subscribed.UID); err != nil {
		t.Fatal(err)
	}
	if parked, count := h.Parked(t), revived(); parked != 0 || count != 0 {
		t.Errorf("in the end %d deliveries are set aside, %d backlogs revived", parked, count)
	}
}

// While its subscription is paused no delivery has a next attempt, even one that is not due yet.
func TestNoNextAttemptWhilePaused(t *testing.T) {
	t.Parallel()
	h := webhooktest.New(t)
	endpoint := webhooktest.NewReceiver(t, webhooktest.Answering(500))
	subscribed, _ := h.Subscribe(t, endpoint.URL, nil)
	h.Publish(t)
	h.Work(t)
	due := *h.Newest(t).NextAttemptAt
	want := func(when string, want time.Time) {
		t.Helper()
		reader := delivery.Reader{PartnerUID: h.Partner, Merchants: []uuid.UUID{h.Merchant}}
		rows, _, err := h.Deliveries.ListFor(t.Context(), reader, delivery.Filter{},
			postgres.Paging{Limit: 1})
		if err != nil {
			t.Fatal(err)
		}
		for _, got := range []delivery.Delivery{rows[0].Delivery, h.List(t)[0], h.Newest(t).Delivery} {
			if got.State != delivery.StateRetrying || got.Parked || !got.Due().Equal(want) {
				t.Errorf("%s: %s, the next attempt is due %s, want %s", when, got.State, got.Due(), want)
			}
		}
	}
	want("before", due)
	h.Pause(t, subscribed.UID)
	want("while paused", time.Time{})
	h.Resume(t, subscribed.UID)
	want("after the resumption", due)
}
