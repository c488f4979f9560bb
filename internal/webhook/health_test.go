package webhook_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
	"drawbridge/internal/webhook"
)

// tally moves every outcome into the summaries and returns the trouble found.
func (h *house) tally(t testing.TB) []webhook.Trouble {
	t.Helper()
	var found []webhook.Trouble
	for more := true; more; {
		h.do(t, func(ctx context.Context, tx *postgres.Tx) error {
			tallied, err := h.Tally(ctx, tx)
			found, more = append(found, tallied.Trouble...), tallied.More
			return err
		})
	}
	return found
}

// health is that of one subscription over the last day.
func (h *house) health(t testing.TB, uid uuid.UUID) webhook.Health {
	t.Helper()
	now := h.clock.now()
	found, err := h.Health(t.Context(), []uuid.UUID{uid}, now.Add(-23*time.Hour), now)
	if err != nil {
		t.Fatal(err)
	}
	return found[uid]
}

// finish makes every attempt of what was published, as they fall due.
func (h *house) finish(t testing.TB) {
	t.Helper()
	for range 3 {
		h.work(t)
		h.clock.move(12 * time.Minute)
		h.promote(t)
	}
	h.work(t)
}

func TestHealthSumsUpWhatHappened(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	answers := newReceiver(t, answering(200, 500, 500, 503, 200, 404, 200))
	made, _ := h.subscribe(t, answers.URL, nil)
	started := h.clock.now()
	for range 4 { // delivered; used up; delivered; delivered at the second try
		h.publish(t)
		h.finish(t)
	}
	trouble := h.tally(t)
	if len(trouble) != 1 || trouble[0].UsedUp != 1 || trouble[0].Subscription != made.UID {
		t.Errorf("trouble %+v, want one delivery used up", trouble)
	}
	health := h.health(t, made.UID)
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
		if group.First.Before(started) || group.Last.Before(group.First) || group.Error == "" {
			t.Errorf("group %+v", group)
		}
	}
	if len(groups) != 3 || groups[500] != 2 || groups[503] != 1 || groups[404] != 1 {
		t.Errorf("error groups %v", groups)
	}
}

// TestTallyIsSmallBesideCalls sums up more outcomes than a small batch holds, without
// calls in one, and soon after a call in several.
func TestTallyIsSmallBesideCalls(t *testing.T) {
	t.Parallel()
	const outcomes = 501
	for name, test := range map[string]struct{ called, more bool }{
		"no call": {}, "a call": {called: true, more: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t)
			made, _ := h.subscribe(t, newReceiver(t, answering(200)).URL, nil)
			_, err := h.DB.ExecContext(t.Context(), `
				INSERT INTO attempt_outcomes (subscription_uid, delivery_uid, ended_at, http_status,
				                              duration_us, attempts, delivered)
				SELECT $1, drawbridge_uid($2), $2, 200, 1000, 1, 1
				  FROM generate_series(1, $3)`, made.UID, h.clock.now(), outcomes)
			if err != nil {
				t.Fatal(err)
			}
			if test.called {
				h.Calls.Begin()()
			}
			h.do(t, func(ctx context.Context, tx *postgres.Tx) error {
				tallied, err := h.Tally(ctx, tx)
				if tallied.More != test.more || tallied.Outcomes == outcomes == test.more {
					t.Errorf("the first batch took %d, more is %t", tallied.Outcomes, tallied.More)
				}
				return err
			})
			h.tally(t)
			if got := h.health(t, made.UID).Delivered; got != outcomes {
				t.Errorf("%d in the summaries, want %d", got, outcomes)
			}
		})
	}
}

func TestHealthFollowsTheStreakOfFailures(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	end := newReceiver(t, answering(200, 502))
	made, _ := h.subscribe(t, end.URL, nil)
	h.publish(t)
	h.finish(t)
	before := h.clock.now()
	for range 2 {
		h.publish(t)
		h.finish(t)
	}
	h.tally(t)
	health := h.health(t, made.UID)
	if health.ConsecutiveFailures != 6 || health.FailingSince == nil ||
		health.FailingSince.Before(before) || health.LastStatus != http.StatusBadGateway ||
		health.LastClass != webhook.ClassHTTP5xx {
		t.Errorf("streak %+v", health)
	}
	again := h.health(t, made.UID)
	if h.tally(t); again.Attempts != health.Attempts {
		t.Errorf("a second tally changed the counts")
	}
}

func TestTestEventsDoNotCount(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	made, _ := h.subscribe(t, newReceiver(t, nil).URL, nil)
	h.do(t, func(ctx context.Context, tx *postgres.Tx) error {
		_, err := h.Test(ctx, tx, made.UID, lending.EventTaskCreated)
		return err
	})
	h.work(t)
	h.tally(t)
	if health := h.health(t, made.UID); health.Attempts != 0 || health.LastSuccess != nil {
		t.Errorf("a test event counted: %+v", health)
	}
}

// A process that was taken for dead tells later how its attempt ended: the
// unknown outcome leaves the counts again, and a delivery that had failed by
// then counts as delivered.
func TestLateOutcomesCorrectTheSums(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	release := make(chan struct{})
	end := newReceiver(t, func(w http.ResponseWriter, n int) {
		if n == 1 {
			<-release
			return
		}
		w.WriteHeader(http.StatusInternalServerError)
	})
	made, _ := h.subscribe(t, end.URL, nil)
	h.publish(t)
	job := h.job(t)
	late := make(chan error)
	go func() { late <- h.Deliver(context.Background(), job, first) }()
	waitUntil(t, "the request arrives", func() bool { return len(end.requests()) == 1 })
	if err := h.Deliver(t.Context(), job, again); err != nil {
		t.Fatal(err)
	}
	h.promote(t)
	h.finish(t)
	trouble := h.tally(t)
	if len(trouble) != 1 || trouble[0].Unknown != 1 || trouble[0].UsedUp != 1 {
		t.Errorf("trouble %+v, want an unknown outcome and a delivery used up", trouble)
	}
	before := h.health(t, made.UID)
	if before.Attempts != 3 || before.Failed != 1 || before.Delivered != 0 {
		t.Errorf("before: %+v", before.Counts)
	}
	close(release)
	if err := <-late; err != nil {
		t.Fatal(err)
	}
	if found := h.tally(t); len(found) != 0 {
		t.Errorf("the correction is trouble: %+v", found)
	}
	after := h.health(t, made.UID)
	if after.Attempts != 3 || after.Succeeded != 1 || after.Failed != 0 || after.Delivered != 1 {
		t.Errorf("after: %+v", after.Counts)
	}
	for _, group := range after.Errors {
		if group.Class == webhook.ClassUnknown {
			t.Errorf("the unknown outcome is still listed: %+v", group)
		}
	}
}
