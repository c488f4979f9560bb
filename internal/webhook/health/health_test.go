package health_test

import (
	"context"
	"net/http"
	"testing"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
	"drawbridge/internal/waittest"
	"drawbridge/internal/webhook/sender"
	"drawbridge/internal/webhook/webhooktest"
)

func TestHealthSumsUpWhatHappened(t *testing.T) {
	t.Parallel()
	h := webhooktest.New(t)
	answers := webhooktest.NewReceiver(t, webhooktest.Answering(200, 500, 500, 503, 200, 404, 200))
	made, _ := h.Subscribe(t, answers.URL, nil)
	started := h.Clock.Now()
	for range 4 { // delivered; used up; delivered; delivered at the second try
		h.Publish(t)
		h.Finish(t)
	}
	trouble := h.Tally(t)
	if len(trouble) != 1 || trouble[0].UsedUp != 1 || trouble[0].Subscription != made.UID {
		t.Errorf("trouble %+v, want one delivery used up", trouble)
	}
	health := h.HealthOf(t, made.UID)
	if len(health.Hours) != 24 {
		t.Errorf("%d hours, want 24", len(health.Hours))
	}
	got := [4]int{health.Attempts, health.Succeeded, health.Delivered, health.Failed}
	if want := [4]int{7, 3, 3, 1}; got != want {
		t.Errorf("attempts, succeeded, delivered, failed are %v, want %v", got, want)
	}
	if rate, known := health.SuccessRate(); !known || rate < 0.42 || rate > 0.43 {
		t.Errorf("success rate %v, %v", rate, known)
	}
	if health.P50() <= 0 || health.P95() < health.P50() {
		t.Errorf("p50 %s, p95 %s", health.P50(), health.P95())
	}
	if health.LastSuccess == nil || health.FailingSince != nil || health.ConsecutiveFailures != 0 {
		t.Errorf("after a success: %+v", health)
	}
	groups := map[int]int{}
	for _, group := range health.Errors {
		groups[group.Status] = group.Count
		if group.First.Before(started) || group.Last.Before(group.First) {
			t.Errorf("group %+v", group)
		}
	}
	if len(groups) != 3 || groups[500] != 2 || groups[503] != 1 || groups[404] != 1 {
		t.Errorf("error groups %v", groups)
	}
}

// TestTallyIsSmallAfterAPIRequests sums up more outcomes than a small batch holds: without API
// requests in one batch, and soon after an API request in several.
func TestTallyIsSmallAfterAPIRequests(t *testing.T) {
	t.Parallel()
	const outcomes = 501
	for name, test := range map[string]struct{ called, more bool }{
		"no call": {}, "a call": {called: true, more: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := webhooktest.New(t)
			made, _ := h.Subscribe(t, webhooktest.NewReceiver(t, webhooktest.Answering(200)).URL, nil)
			h.Exec(t, `
				INSERT INTO attempt_outcomes (subscription_uid, delivery_uid, ended_at, http_status,
				                              duration_us, attempts, delivered)
				SELECT $1, drawbridge_uid($2), $2, 200, 1000, 1, 1
				  FROM generate_series(1, $3)`, made.UID, h.Clock.Now(), outcomes)
			if test.called {
				h.Deliveries.Gate.Begin()()
			}
			h.Do(t, func(ctx context.Context, tx *postgres.Tx) error {
				tallied, err := h.Health.Tally(ctx, tx)
				if tallied.More != test.more || tallied.Outcomes == outcomes == test.more {
					t.Errorf("the first batch took %d, more is %t", tallied.Outcomes, tallied.More)
				}
				return err
			})
			h.Tally(t)
			if got := h.HealthOf(t, made.UID).Delivered; got != outcomes {
				t.Errorf("%d in the summaries, want %d", got, outcomes)
			}
		})
	}
}

func TestHealthFollowsTheStreakOfFailures(t *testing.T) {
	t.Parallel()
	h := webhooktest.New(t)
	end := webhooktest.NewReceiver(t, webhooktest.Answering(200, 502))
	made, _ := h.Subscribe(t, end.URL, nil)
	h.Publish(t)
	h.Finish(t)
	before := h.Clock.Now()
	for range 2 {
		h.Publish(t)
		h.Finish(t)
	}
	h.Tally(t)
	health := h.HealthOf(t, made.UID)
	if health.ConsecutiveFailures != 6 || health.FailingSince == nil ||
		health.FailingSince.Before(before) || health.LastStatus != http.StatusBadGateway ||
		health.LastClass != sender.ClassHTTP5xx {
		t.Errorf("streak %+v", health)
	}
	again := h.HealthOf(t, made.UID)
	if h.Tally(t); again.Attempts != health.Attempts {
		t.Errorf("a second tally changed the counts")
	}
}

func TestTestEventsDoNotCount(t *testing.T) {
	t.Parallel()
	h := webhooktest.New(t)
	made, _ := h.Subscribe(t, webhooktest.NewReceiver(t, nil).URL, nil)
	h.Do(t, func(ctx context.Context, tx *postgres.Tx) error {
		_, err := h.Deliveries.Test(ctx, tx, made.UID, lending.EventTaskCreated)
		return err
	})
	h.Work(t)
	h.Tally(t)
	if health := h.HealthOf(t, made.UID); health.Attempts != 0 || health.LastSuccess != nil {
		t.Errorf("a test event counted: %+v", health)
	}
}

// A process that was taken for dead records later how its attempt ended: the unknown
// outcome is removed from the counts, and a delivery that had failed by then counts as
// delivered.
func TestLateOutcomesCorrectTheSums(t *testing.T) {
	t.Parallel()
	h := webhooktest.New(t)
	release := make(chan struct{})
	end := webhooktest.NewReceiver(t, func(w http.ResponseWriter, n int) {
		if n == 1 {
			<-release
			return
		}
		w.WriteHeader(http.StatusInternalServerError)
	})
	made, _ := h.Subscribe(t, end.URL, nil)
	h.Publish(t)
	job := h.Job(t)
	late := make(chan error)
	go func() { late <- h.Deliveries.Deliver(context.Background(), job, webhooktest.First) }()
	waittest.Until(t, "the request arrives", func() bool { return len(end.Requests()) == 1 })
	if err := h.Deliveries.Deliver(t.Context(), job, webhooktest.Again); err != nil {
		t.Fatal(err)
	}
	h.EnqueueDue(t)
	h.Finish(t)
	h.Exec(t, `UPDATE partners SET contact = 'it@sunvolt.example'`)
	trouble := h.Tally(t)
	h.Do(t, func(ctx context.Context, tx *postgres.Tx) error {
		told, err := h.Health.TakeUnreported(ctx, tx)
		if len(told) != 1 {
			t.Errorf("the contact is told of %+v", told)
		}
		return err
	})
	if len(trouble) != 1 || trouble[0].Unknown != 1 || trouble[0].UsedUp != 1 {
		t.Errorf("trouble %+v, want an unknown outcome and a delivery used up", trouble)
	}
	before := h.HealthOf(t, made.UID)
	if before.Attempts != 3 || before.Failed != 1 || before.Delivered != 0 {
		t.Errorf("before: %+v", before.Counts)
	}
	close(release)
	if err := <-late; err != nil {
		t.Fatal(err)
	}
	if found := h.Tally(t); len(found) != 0 {
		t.Errorf("the correction is trouble: %+v", found)
	}
	if left := h.Count(t, `SELECT count(*) FROM untold_failures`); left != 0 {
		t.Error("what the contact was told of already would make up for the next failure")
	}
	after := h.HealthOf(t, made.UID)
	if after.Attempts != 3 || after.Succeeded != 1 || after.Failed != 0 || after.Delivered != 1 {
		t.Errorf("after: %+v", after.Counts)
	}
	for _, group := range after.Errors {
		if group.Class == sender.ClassUnknown {
			t.Errorf("the unknown outcome is still listed: %+v", group)
		}
	}
}
