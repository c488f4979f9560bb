package partner_test

import (
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"drawbridge/internal/partner"
)

// bucketModel is the specification: what a single bucket would allow.
type bucketModel struct {
	rate, burst, tokens float64
	at                  time.Time
}

func (m *bucketModel) take(now time.Time) bool {
	m.tokens = math.Min(m.burst, m.tokens+now.Sub(m.at).Seconds()*m.rate)
	m.at = now
	if m.tokens < 1 {
		return false
	}
	m.tokens--
	return true
}

// Below the rate at which chunks begin, any number of processes together decide exactly as a
// single bucket would.
func TestProcessesShareOneBucketExactly(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	limiters := processes(t, h, 3)
	rapid.Check(t, func(rt *rapid.T) {
		// Powers of two, so that the model's arithmetic is exact.
		rate := 1 << rapid.IntRange(0, 6).Draw(rt, "log2 of the rate")
		burst := rapid.IntRange(1, 20).Draw(rt, "burst")
		caller := h.limited(t, rate, burst)
		model := bucketModel{
			rate: float64(rate), burst: float64(burst), tokens: float64(burst), at: h.clock.now(),
		}
		for range rapid.IntRange(1, 40).Draw(rt, "requests") {
			ticks := rapid.IntRange(0, 80).Draw(rt, "64ths of a second")
			if rapid.Bool().Draw(rt, "at once") {
				ticks = 0
			}
			h.clock.advance(time.Duration(ticks) * time.Second / 64)
			limiter := rapid.SampledFrom(limiters).Draw(rt, "process")
			want := model.take(h.clock.now())
			if got := take(t, limiter, caller, 1)[0]; got.Allowed != want {
				rt.Fatalf("allowed %v, want %v with %v tokens", got.Allowed, want, model.tokens)
			}
		}
	})
}

// At any rate, processes together never allow more than the bucket held at the start plus what
// has flowed in since.
func TestProcessesNeverExceedTheRate(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	limiters := processes(t, h, 2)
	rapid.Check(t, func(rt *rapid.T) {
		rate := rapid.IntRange(1, 5000).Draw(rt, "rate")
		burst := rapid.IntRange(1, 300).Draw(rt, "burst")
		caller := h.limited(t, rate, burst)
		start, count := h.clock.now(), 0
		for range rapid.IntRange(1, 15).Draw(rt, "rounds") {
			h.clock.advance(time.Duration(rapid.Int64Range(0, 1_500_000).Draw(rt, "micros")) *
				time.Microsecond)
			limiter := rapid.SampledFrom(limiters).Draw(rt, "process")
			count += allowed(take(t, limiter, caller, rapid.IntRange(1, 80).Draw(rt, "requests")))
			elapsed := h.clock.now().Sub(start).Seconds()
			if bound := float64(burst) + float64(rate)*elapsed + 1e-6; float64(count) > bound {
				rt.Fatalf("%d requests in %v s exceed %v", count, elapsed, bound)
			}
		}
	})
}

func processes(t *testing.T, h harness, count int) []*partner.Limiter {
	t.Helper()
	limiters := []*partner.Limiter{{DB: h.DB}}
	for len(limiters) < count {
		limiters = append(limiters, &partner.Limiter{DB: h.neighbour(t).DB})
	}
	return limiters
}

// The clock stands still, so nothing flows in: exactly the burst is allowed, whoever requests it
// and however many at the same moment.
func TestRacingProcessesShareTheBurst(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name        string
		rate, burst int
	}{
		{"a token each", 50, 100},
		{"chunks", 1000, 400},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t)
			caller := h.limited(t, test.rate, test.burst)
			var count atomic.Int64
			var group sync.WaitGroup
			for _, limiter := range processes(t, h, 2) {
				for range 20 {
					group.Go(func() {
						count.Add(int64(allowed(take(t, limiter, caller, 30))))
					})
				}
			}
			group.Wait()
			if got := int(count.Load()); got != test.burst {
				t.Errorf("%d of 1200 racing requests were allowed, want %d", got, test.burst)
			}
		})
	}
}
