package sender

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

var retryNow = time.Date(2026, 11, 21, 9, 30, 0, 0, time.UTC)

func TestParseRetryAfter(t *testing.T) {
	t.Parallel()
	tests := []struct {
		value string
		want  time.Duration
	}{
		{"", 0},
		{"0", 0},
		{"120", 2 * time.Minute},
		{" 120 ", 2 * time.Minute},
		{"-5", 0},
		{"1.5", 0},
		{"soon", 0},
		{"99999999999", maxDelay},
		{"99999999999999999999", maxDelay},
		{strings.Repeat("9", 1000), maxDelay},
		{"-99999999999999999999", 0},
		{"99999999999999999999.5", 0},
		{"9999999999999999999x", 0},
		{"0x99999999999999999999", 0},
		{"Sat, 21 Nov 2026 09:31:30 GMT", 90 * time.Second},
		{"Saturday, 21-Nov-26 09:31:30 GMT", 90 * time.Second},
		{"Sat Nov 21 09:31:30 2026", 90 * time.Second},
		{"Sat, 21 Nov 2026 09:00:00 GMT", 0},
		{"Sat, 21 Nov 2099 09:00:00 GMT", maxDelay},
		{"2026-11-21T09:31:30Z", 0},
	}
	for _, test := range tests {
		if got := parseRetryAfter(test.value, retryNow); got != test.want {
			t.Errorf("parseRetryAfter(%q) = %s, want %s", test.value, got, test.want)
		}
	}
}

func FuzzParseRetryAfter(f *testing.F) {
	f.Add("120")
	f.Add("-1")
	f.Add("18446744073709551615")
	f.Add("Sat, 21 Nov 2026 09:31:30 GMT")
	f.Fuzz(func(t *testing.T, value string) {
		if got := parseRetryAfter(value, retryNow); got < 0 || got > maxDelay {
			t.Errorf("parseRetryAfter(%q) = %s", value, got)
		}
	})
}

// TestRetryAfterGoesByTheEndpointsClock: it does not matter whose clock is wrong.
func TestRetryAfterGoesByTheEndpointsClock(t *testing.T) {
	t.Parallel()
	for _, off := range []time.Duration{-12 * time.Hour, 0, 12 * time.Hour} {
		answered := time.Now().Add(off).Truncate(time.Second)
		header := http.Header{"Date": {answered.UTC().Format(http.TimeFormat)}}
		until := answered.Add(90 * time.Second).UTC().Format(http.TimeFormat)
		if got := parseRetryAfter(until, answeredAt(header, retryNow)); got != 90*time.Second {
			t.Errorf("an endpoint whose clock is %s off asks for %s", off, got)
		}
	}
	if got := answeredAt(http.Header{}, retryNow); !got.Equal(retryNow) {
		t.Errorf("an answer without a date is of %s, want %s", got, retryNow)
	}
}
