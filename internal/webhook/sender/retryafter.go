package sender

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// maxDelay bounds what an endpoint may ask for.
const maxDelay = 7 * 24 * time.Hour

// AsksForDelay tells whether Retry-After means something with a status.
func AsksForDelay(status int) bool {
	return status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable
}

// parseRetryAfter reads the header (RFC 9110 section 10.2.3), seconds or a
// date, as a duration from now, at most the longest. Anything else, and the past, is 0.
func parseRetryAfter(value string, now time.Time) time.Duration {
	value = strings.TrimSpace(value)
	if value != "" && strings.Trim(value, "0123456789") == "" {
		// Of a number beyond the range it returns the largest, beside an error.
		seconds, _ := strconv.ParseUint(value, 10, 64)
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
func answeredAt(header http.Header, now time.Time) time.Time {
	if date, err := http.ParseTime(header.Get("Date")); err == nil {
		return date
	}
	return now
}
