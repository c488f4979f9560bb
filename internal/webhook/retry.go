package webhook

import (
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const (
	// MaxAttempts is how often an event is tried (specification section 6.1).
	MaxAttempts = 3
	// jitterShare is the largest part of a delay that is added to it, so that
	// deliveries that failed together do not come back together.
	jitterShare = 0.1
)

// maxDelay bounds what an endpoint may ask for.
const maxDelay = 7 * 24 * time.Hour

// Schedule says when a failed delivery is tried again.
type Schedule struct {
	// Delays are those before the second and the third attempt.
	Delays []time.Duration
	// RetryAfterMax is how far Retry-After may move an attempt; 0 ignores it.
	RetryAfterMax time.Duration
}

// Next returns when to make the attempt that follows the made-th, which failed
// at now, and false when there is none. Retry-After on 429 and 503 moves the
// attempt later, never earlier, and never adds one.
func (s Schedule) Next(made int, now time.Time, failed Attempt) (time.Time, bool) {
	if made < 1 || made > len(s.Delays) || made >= MaxAttempts {
		return time.Time{}, false
	}
	delay := s.Delays[made-1]
	//nolint:gosec // jitter is no secret
	delay += time.Duration(rand.Float64() * jitterShare * float64(delay))
	if asked := min(failed.RetryAfter, s.RetryAfterMax); asksForDelay(failed.Status) && asked > delay {
		delay = asked
	}
	return now.Add(delay), true
}

// asksForDelay tells whether Retry-After means something with a status.
func asksForDelay(status int) bool {
	return status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable
}

// parseRetryAfter reads the header (RFC 9110 section 10.2.3), seconds or a
// date, as a duration from now. Anything else, and the past, is 0.
func parseRetryAfter(value string, now time.Time) time.Duration {
	value = strings.TrimSpace(value)
	if seconds, err := strconv.ParseUint(value, 10, 64); err == nil {
		return time.Duration(min(seconds, uint64(maxDelay/time.Second))) * time.Second
	}
	date, err := http.ParseTime(value)
	if err != nil {
		return 0
	}
	return min(max(date.Sub(now), 0), maxDelay)
}

// answeredAt is when an endpoint says that it answered, by its own clock, as a
// date in Retry-After is. The time of an endpoint that does not say is ours.
func answeredAt(header http.Header) time.Time {
	if date, err := http.ParseTime(header.Get("Date")); err == nil {
		return date
	}
	return time.Now()
}
