package health_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/postgres"
	"drawbridge/internal/waittest"
	"drawbridge/internal/webhook/delivery"
	"drawbridge/internal/webhook/subscription"
	"drawbridge/internal/webhook/webhooktest"
)

const day = 24 * time.Hour

// judged returns the state that its health gives an active subscription.
func judged(t *testing.T, h *webhooktest.Harness, uid uuid.UUID) subscription.State {
	t.Helper()
	h.Tally(t)
	state := subscription.StateActive
	h.Do(t, func(ctx context.Context, tx *postgres.Tx) error {
		change, changed, err := h.Health.Judge(ctx, tx, uid)
		if changed {
			state = change.To
		}
		return err
	})
	return state
}

// giveFault makes the first attempt of each delivery without one fail on purpose.
func giveFault(t *testing.T, h *webhooktest.Harness, fault delivery.Fault) {
	t.Helper()
	h.Exec(t, `
		INSERT INTO sandbox_fault_uses (delivery_uid, created_at, subscription_uid, fault)
		SELECT delivery_uid, created_at, subscription_uid, $1
		  FROM deliveries
		 WHERE attempt_count = 0`, fault)
}

// Injected faults never make a subscription failing, whatever other failures there are.
func TestFaultsMakeNothingFailing(t *testing.T) {
	t.Parallel()
	h := webhooktest.New(t)
	endpoint := webhooktest.NewReceiver(t, webhooktest.Answering(500))
	made, _ := h.Subscribe(t, endpoint.URL, func(s *subscription.Settings) {
		s.Retry = subscription.Delays{day, day}
		s.Watch.FailingMinutes, s.Watch.FailingEvents = 10, 3
	})
	publish := func() {
		h.Clock.Move(time.Second)
		h.Publish(t)
	}
	publish()
	h.Work(t)
	for range 5 {
		publish()
		giveFault(t, h, delivery.FaultTruncate)
		h.Work(t)
	}
	h.Clock.Move(time.Hour)
	if got := judged(t, h, made.UID); got != subscription.StateActive {
		t.Errorf("one event that failed, and five by faults, make the subscription %s", got)
	}
	for range 2 {
		publish()
		h.Work(t)
	}
	if got := judged(t, h, made.UID); got != subscription.StateFailing {
		t.Errorf("three events that failed leave the subscription %s", got)
	}
}

// A late outcome of an attempt with a fault removes nothing from the counts, since the
// attempt did not count, and counts itself if it is a success.
func TestLateOutcomesOfFaults(t *testing.T) {
	t.Parallel()
	for status, want := range map[int][3]int{
		http.StatusOK: {1, 1, 0}, http.StatusInternalServerError: {0, 0, 0},
	} {
		h := webhooktest.New(t)
		release := make(chan struct{})
		end := webhooktest.NewReceiver(t, func(w http.ResponseWriter, _ int) {
			<-release
			w.WriteHeader(status)
		})
		made, _ := h.Subscribe(t, end.URL, nil)
		h.Publish(t)
		giveFault(t, h, delivery.FaultBadSignature)
		job := h.Job(t)
		late := make(chan error)
		go func() { late <- h.Deliveries.Deliver(context.Background(), job, webhooktest.First) }()
		waittest.Until(t, "the request arrives", func() bool { return len(end.Requests()) == 1 })
		if err := h.Deliveries.Deliver(t.Context(), job, webhooktest.Again); err != nil {
			t.Fatal(err)
		}
		close(release)
		if err := <-late; err != nil {
			t.Fatal(err)
		}
		h.Tally(t)
		health := h.HealthOf(t, made.UID)
		got := [3]int{health.Attempts, health.Succeeded, health.ConsecutiveFailures}
		if got != want {
			t.Errorf("attempts, succeeded, consecutive failures after %d are %v, want %v",
				status, got, want)
		}
	}
}

// A backlog that fails makes a subscription failing, however long it had waited.
func TestBacklogBehindAPauseMakesFailing(t *testing.T) {
	t.Parallel()
	for _, pause := range []time.Duration{3 * day, 9 * day, 60 * day} {
		h := webhooktest.New(t)
		endpoint := webhooktest.NewReceiver(t, webhooktest.Answering(500))
		made, _ := h.Subscribe(t, endpoint.URL, nil)
		h.Pause(t, made.UID)
		for range 10 {
			h.Clock.Move(time.Second)
			h.Publish(t)
		}
		h.Work(t)
		h.Clock.Move(pause)
		h.Resume(t, made.UID)
		h.EnqueueDue(t)
		h.Finish(t)
		if got := judged(t, h, made.UID); got != subscription.StateActive {
			t.Errorf("at once the subscription is %s", got)
		}
		h.Clock.Move(day)
		if got := judged(t, h, made.UID); got != subscription.StateFailing {
			t.Errorf("ten events that failed after %s leave the subscription %s", pause, got)
		}
	}
}

// Failures at the former URL do not count against the new one: that has the whole window
// to fail in, whether the subscription would then be reported or paused.
func TestAnotherURLBeginsAgain(t *testing.T) {
	t.Parallel()
	for _, pauses := range []bool{false, true} {
		h := webhooktest.New(t)
		endpoint := webhooktest.NewReceiver(t, webhooktest.Answering(500))
		made, _ := h.Subscribe(t, endpoint.URL, func(s *subscription.Settings) {
			s.Watch.Pause = pauses
		})
		fail := func() {
			t.Helper()
			for range 10 {
				h.Clock.Move(time.Second)
				h.Publish(t)
			}
			h.Work(t)
		}
		fail()
		h.Clock.Move(day - time.Hour)
		h.Amend(t, made.UID, subscription.Patch{URL: new(endpoint.URL + "/moved")})
		h.Clock.Move(time.Hour)
		if got := judged(t, h, made.UID); got != subscription.StateActive {
			t.Errorf("before anything was sent to its new URL the subscription is %s", got)
		}
		fail()
		h.Clock.Move(day - 2*time.Hour)
		if got := judged(t, h, made.UID); got != subscription.StateActive {
			t.Errorf("22 hours after it got its new URL the subscription is %s", got)
		}
		want := subscription.StateFailing
		if pauses {
			want = subscription.StatePaused
		}
		h.Clock.Move(2 * time.Hour)
		if got := judged(t, h, made.UID); got != want {
			t.Errorf("a day after it got its new URL the subscription is %s, want %s", got, want)
		}
	}
}
