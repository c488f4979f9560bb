package sender

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// maxDelay bounds the delay that an endpoint may ask for.
const maxDelay = 7 * 24 * time.Hour

// AsksForDelay reports whether Retry-After has a meaning with a status.
func AsksForDelay(status int) bool {
	return status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable
}

// parseRetryAfter parses the header (RFC 9110 section 10.2.3), seconds or a date, as a
// duration from now, at most maxDelay. Anything else, and the past, is 0.
func parseRetryAfter(value string, now time.Time) time.Duration {
	value = strings.TrimSpace(value)
	if value != "" && strings.Trim(value, "0123456789") == "" {
		// For a number out of range it returns the largest, along with an error.
		seconds, _ := strconv.ParseUint(value, 10, 64)
		return time.Duration(min(seconds, uint64(maxDelay/time.Second))) * time.Second
	}
	date, err := http.ParseTime(value)
	if err != nil {
		return 0
	}
	return min(max(date.Sub(now), 0), maxDelay)
}

// answeredAt is when an endpoint answered according to its own clock, by which it also
// sets a date in Retry-After. If the endpoint does not say, it is now.
func answeredAt(header http.Header, now time.Time) time.Time {
	if date, err := http.ParseTime(header.Get("Date")); err == nil {
		return date
	}
	return now
}
