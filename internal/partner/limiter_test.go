package partner_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"drawbridge/internal/partner"
	"drawbridge/internal/postgres/pgtest"
)

// limited makes a client with the given limits and returns it as a caller.
func (h harness) limited(t testing.TB, rate, burst int) partner.Caller {
	t.Helper()
	issued := h.plain(t)
	return partner.Caller{ClientID: issued.ClientID, RatePerSecond: rate, Burst: burst}
}

// take makes count requests and returns the decisions.
func take(
	t testing.TB, limiter *partner.Limiter, caller partner.Caller, count int,
) []partner.Decision {
	t.Helper()
	var decisions []partner.Decision
	for range count {
		decision, err := limiter.Take(context.Background(), caller)
		if err != nil {
			t.Fatal(err)
		}
		decisions = append(decisions, decision)
	}
	return decisions
}

func allowed(decisions []partner.Decision) int {
	count := 0
	for _, decision := range decisions {
		if decision.Allowed {
			count++
		}
	}
	return count
}

func TestBurstThenRate(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name        string
		rate, burst int
	}{
		{"default", partner.DefaultRatePerSecond, partner.DefaultBurst},
		{"one a second", 1, 1},
		{"burst below a chunk", 5000, 3},
		{"chunked", 1000, 250},
		{"largest chunk", 100_000, 1000},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t)
			limiter := &partner.Limiter{DB: h.DB}
			caller := h.limited(t, test.rate, test.burst)
			if got := allowed(take(t, limiter, caller, test.burst+20)); got != test.burst {
				t.Errorf("%d requests at once were allowed, want %d", got, test.burst)
			}
			h.clock.advance(time.Second)
			want := min(test.rate, test.burst)
			if got := allowed(take(t, limiter, caller, want+20)); got != want {
				t.Errorf("%d more were allowed a second later, want %d", got, want)
			}
			h.clock.advance(time.Hour)
			if got := allowed(take(t, limiter, caller, test.burst+20)); got != test.burst {
				t.Errorf("%d were allowed after an hour, want %d", got, test.burst)
			}
		})
	}
}

func TestDecisionTellsTheHeaders(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	limiter := &partner.Limiter{DB: h.DB}
	caller := h.limited(t, 2, 4)
	steps := []struct {
		name    string
		advance time.Duration
		want    partner.Decision
	}{
		{"first", 0, partner.Decision{Allowed: true, Limit: 4, Remaining: 3, Reset: 1}},
		{"second", 0, partner.Decision{Allowed: true, Limit: 4, Remaining: 2, Reset: 1}},
		{"third", 0, partner.Decision{Allowed: true, Limit: 4, Remaining: 1, Reset: 2}},
		{"last", 0, partner.Decision{Allowed: true, Limit: 4, Remaining: 0, Reset: 2}},
		{"refused", 0, partner.Decision{Limit: 4, Reset: 2, RetryAfter: 1}},
		{
			"refused a little later", 499 * time.Millisecond,
			partner.Decision{Limit: 4, Reset: 2, RetryAfter: 1},
		},
		{"next token", time.Millisecond, partner.Decision{Allowed: true, Limit: 4, Reset: 2}},
		{
			"half full", time.Second,
			partner.Decision{Allowed: true, Limit: 4, Remaining: 1, Reset: 2},
		},
		{"full", time.Minute, partner.Decision{Allowed: true, Limit: 4, Remaining: 3, Reset: 1}},
	}
	for _, step := range steps {
		h.clock.advance(step.advance)
		got := take(t, limiter, caller, 1)[0]
		if diff := cmp.Diff(step.want, got); diff != "" {
			t.Errorf("%s:\n%s", step.name, diff)
		}
	}
	slow := h.limited(t, 1, 5)
	take(t, limiter, slow, 5)
	if got := take(t, limiter, slow, 1)[0]; got.RetryAfter != 1 || got.Reset != 5 {
		t.Errorf("empty bucket of five: %+v, want to retry in 1 s and be full in 5 s", got)
	}
}

func TestChunksAndRefusalsSpareStatements(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	limiter := &partner.Limiter{DB: h.DB}
	statements := countStatements(t, h.DB, "INSERT", "rate_buckets")
	tests := []struct {
		name                  string
		rate, burst, requests int
		want                  int
	}{
		{"one each at the default", 50, 100, 10, 10},
		{"one for twenty at 1000/s", 1000, 200, 100, 5},
		{"one for 64 at the most", 100_000, 200_000, 640, 10},
		{"none while the bucket is empty", 1, 1, 100, 1},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			caller := h.limited(t, test.rate, test.burst)
			before := statements()
			take(t, limiter, caller, test.requests)
			if got := statements() - before; got != test.want {
				t.Errorf("%d statements for %d requests, want %d", got, test.requests, test.want)
			}
		})
	}
}

func TestHeldTokensExpire(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	limiters := processes(t, h, 2)
	caller := h.limited(t, 1000, 1000)
	take(t, limiters[0], caller, 1) // holds 19 more
	if got := allowed(take(t, limiters[1], caller, 1200)); got != 980 {
		t.Errorf("the other process was allowed %d, want 980: 20 are with the first", got)
	}
	h.clock.advance(999 * time.Millisecond)
	if got := allowed(take(t, limiters[1], caller, 1200)); got != 999 {
		t.Errorf("the other process was allowed %d more, want 999", got)
	}
	if got := allowed(take(t, limiters[0], caller, 30)); got != 19 {
		t.Errorf("the first gave out %d of the 19 that it held", got)
	}
	h.clock.advance(100 * time.Millisecond)
	take(t, limiters[0], caller, 1) // again holds 19 more
	h.clock.advance(time.Second)
	if got := allowed(take(t, limiters[1], caller, 1200)); got != 1000 {
		t.Errorf("%d were allowed from a full bucket, want 1000", got)
	}
	if got := allowed(take(t, limiters[0], caller, 30)); got != 0 {
		t.Errorf("the first gave out %d tokens that it took a second ago", got)
	}
}

func TestNewLimitsApplyAtOnce(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	limiter := &partner.Limiter{DB: h.DB}
	caller := h.limited(t, 1, 1)
	take(t, limiter, caller, 2)
	h.clock.advance(100 * time.Millisecond)
	if got := allowed(take(t, limiter, caller, 1)); got != 0 {
		t.Fatal("a tenth of a second fills a token at 1/s")
	}
	caller.RatePerSecond, caller.Burst = 100, 10
	if got := allowed(take(t, limiter, caller, 20)); got != 10 {
		t.Errorf("%d were allowed under the raised limits, want 10", got)
	}
	h.clock.advance(time.Hour)
	caller.Burst = 2
	if got := allowed(take(t, limiter, caller, 20)); got != 2 {
		t.Errorf("%d were allowed under the lowered burst, want 2", got)
	}
}

func TestClocksThatDisagree(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	ahead, behind := &partner.Limiter{DB: h.DB}, &partner.Limiter{DB: h.neighbour(t).DB}
	offset := time.Duration(0)
	behind.DB.Now = func() time.Time { return h.clock.now().Add(-offset) }
	caller := h.limited(t, 10, 10)

	offset = 5 * time.Second
	count := allowed(take(t, ahead, caller, 20))
	for range 20 {
		h.clock.advance(100 * time.Millisecond)
		count += allowed(take(t, behind, caller, 3)) + allowed(take(t, ahead, caller, 3))
	}
	if count > 30 {
		t.Errorf("%d were allowed in 2 s at 10/s after a burst of 10: lag was given as time", count)
	}
	// The process whose clock was an hour ahead is gone: clients of the other must not wait an
	// hour.
	offset = time.Hour
	take(t, behind, caller, 1)
	h.clock.advance(time.Second)
	if got := allowed(take(t, behind, caller, 20)); got != 10 {
		t.Errorf("%d were allowed a second after the clock was set back, want 10", got)
	}
}

func TestClientsHaveBucketsOfTheirOwn(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	limiter := &partner.Limiter{DB: h.DB}
	greedy, modest := h.limited(t, 1, 3), h.limited(t, 1, 3)
	take(t, limiter, greedy, 50)
	if got := allowed(take(t, limiter, modest, 3)); got != 3 {
		t.Errorf("the modest client was allowed %d of 3 beside a greedy one", got)
	}
}

func TestTakeEndsWithTheRequest(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	limiter := &partner.Limiter{DB: h.DB}
	caller := h.limited(t, 1, 5)
	take(t, limiter, caller, 1)
	row := pgtest.Begin(t, h.DB, `UPDATE rate_buckets SET tokens = tokens`)
	ctx, cancel := context.WithCancel(t.Context())
	results := make(chan error, 3)
	for range cap(results) { // one waits for the row, the others for that one
		go func() {
			_, err := limiter.Take(ctx, caller)
			results <- err
		}()
	}
	cancel()
	for range cap(results) {
		if err := <-results; err == nil {
			t.Error("a cancelled request was decided")
		}
	}
	if err := row.Rollback(); err != nil {
		t.Fatal(err)
	}
	if got := allowed(take(t, limiter, caller, 5)); got != 4 {
		t.Errorf("%d were allowed afterwards, want the 4 that are left", got)
	}
}
