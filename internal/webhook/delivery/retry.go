package delivery

import (
	"math/rand/v2"
	"time"

	"drawbridge/internal/webhook/sender"
	"drawbridge/internal/webhook/subscription"
)

const (
	// MaxAttempts is how many attempts a delivery gets (specification section 6.1).
	MaxAttempts = 3
	// jitterShare is the largest share of a delay that is added to it as jitter, so that
	// deliveries that failed together are not retried together.
	jitterShare = 0.1
)

// Schedule says when a failed delivery is tried again.
type Schedule struct {
	// Delays are those before the second and the third attempt.
	Delays []time.Duration
	// RetryAfterMax is how far Retry-After may move an attempt; 0 ignores it.
	RetryAfterMax time.Duration
}

// Of is the schedule of a subscription, which may have delays of its own.
func (s Schedule) Of(own subscription.Delays) Schedule {
	if own.IsSet() {
		s.Delays = own[:]
	}
	return s
}

// Next returns when to make the attempt that follows the made-th, which failed
// at now, and false when there is none. Retry-After on 429 and 503 moves the
// attempt later, never earlier, and never adds one.
func (s Schedule) Next(made int, now time.Time, failed sender.Attempt) (time.Time, bool) {
	if made < 1 || made > len(s.Delays) || made >= MaxAttempts {
		return time.Time{}, false
	}
	delay := s.Delays[made-1]
	//nolint:gosec // jitter is no secret
	delay += time.Duration(rand.Float64() * jitterShare * float64(delay))
	if sender.AsksForDelay(failed.Status) {
		delay = max(delay, min(failed.RetryAfter, s.RetryAfterMax))
	}
	return now.Add(delay), true
}
