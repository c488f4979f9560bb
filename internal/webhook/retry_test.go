package webhook

import (
	"net/http"
	"testing"
	"time"
)

var retryNow = time.Date(2026, 11, 21, 9, 30, 0, 0, time.UTC)

func TestScheduleNext(t *testing.T) {
	t.Parallel()
	const minute, hour = time.Minute, time.Hour
	schedule := Schedule{Delays: []time.Duration{minute, 10 * minute}, RetryAfterMax: hour}
	deaf := Schedule{Delays: schedule.Delays}
	failed := func(status int, after time.Duration) Attempt {
		return Attempt{Status: status, Class: statusClass(status), RetryAfter: after}
	}
	tests := []struct {
		name     string
		schedule Schedule
		made     int
		attempt  Attempt
		min, max time.Duration // max 0: there is no next attempt
	}{
		{"after the first", schedule, 1, failed(500, 0), minute, minute * 11 / 10},
		{"after the second", schedule, 2, failed(500, 0), 10 * minute, 11 * minute},
		{"after the third", schedule, 3, failed(500, 0), 0, 0},
		{"after a fourth", schedule, 4, failed(500, 0), 0, 0},
		{"before any", schedule, 0, failed(500, 0), 0, 0},
		{"without an answer", schedule, 1, Attempt{Class: ClassTimeout}, minute, minute * 11 / 10},
		{"410 is like any other", schedule, 1, failed(410, 0), minute, minute * 11 / 10},
		{"429 asks for later", schedule, 1, failed(429, 5*minute), 5 * minute, 5 * minute},
		{"503 asks for later", schedule, 1, failed(503, 5*minute), 5 * minute, 5 * minute},
		{"503 asks for sooner", schedule, 2, failed(503, 5*minute), 10 * minute, 11 * minute},
		{"503 asks for too much", schedule, 1, failed(503, 48*hour), hour, hour},
		{"503 asks on the last", schedule, 3, failed(503, minute), 0, 0},
		{"500 has no say", schedule, 1, failed(500, 5*minute), minute, minute * 11 / 10},
		{"nobody has", deaf, 1, failed(503, 5*minute), minute, minute * 11 / 10},
		{"no delay", Schedule{Delays: []time.Duration{0, 0}}, 1, failed(500, 0), 0, 1},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			for range 1000 {
				next, more := test.schedule.Next(test.made, retryNow, test.attempt)
				if more != (test.max > 0) {
					t.Fatalf("a next attempt: %v", more)
				}
				delay := next.Sub(retryNow)
				if more && (delay < test.min || delay > test.max) {
					t.Fatalf("delay %s, want %s to %s", delay, test.min, test.max)
				}
			}
		})
	}
}

func TestScheduleNextSpreads(t *testing.T) {
	t.Parallel()
	schedule := Schedule{Delays: []time.Duration{time.Hour, time.Hour}}
	var low, high int
	for range 1000 {
		next, _ := schedule.Next(1, retryNow, Attempt{Class: ClassTimeout})
		switch delay := next.Sub(retryNow); {
		case delay < time.Hour+90*time.Second:
			low++
		case delay > time.Hour+270*time.Second:
			high++
		}
	}
	if low < 100 || high < 100 {
		t.Errorf("of 1000 delays %d are in the lowest and %d in the highest quarter", low, high)
	}
}

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
		{"99999999999999999999999", 0},
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

// TestRetryAfterGoesByTheEndpointsClock: whose clock is wrong does not matter.
func TestRetryAfterGoesByTheEndpointsClock(t *testing.T) {
	t.Parallel()
	for _, off := range []time.Duration{-12 * time.Hour, 0, 12 * time.Hour} {
		answered := time.Now().Add(off).Truncate(time.Second)
		header := http.Header{"Date": {answered.UTC().Format(http.TimeFormat)}}
		until := answered.Add(90 * time.Second).UTC().Format(http.TimeFormat)
		if got := parseRetryAfter(until, answeredAt(header)); got != 90*time.Second {
			t.Errorf("an endpoint whose clock is %s off asks for %s", off, got)
		}
	}
	if off := time.Since(answeredAt(http.Header{})); off < 0 || off > time.Minute {
		t.Errorf("an answer without a date is %s old", off)
	}
}
