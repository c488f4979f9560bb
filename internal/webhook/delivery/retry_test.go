package delivery

import (
	"testing"
	"time"

	"drawbridge/internal/webhook/sender"
)

// retryNow is when the attempts in these tests failed.
var retryNow = time.Date(2026, 11, 21, 9, 30, 0, 0, time.UTC)

func TestScheduleNext(t *testing.T) {
	t.Parallel()
	const minute, hour = time.Minute, time.Hour
	schedule := Schedule{Delays: []time.Duration{minute, 10 * minute}, RetryAfterMax: hour}
	deaf := Schedule{Delays: schedule.Delays}
	failed := func(status int, after time.Duration) sender.Attempt {
		return sender.Attempt{Status: status, RetryAfter: after}
	}
	tests := []struct {
		name     string
		schedule Schedule
		made     int
		attempt  sender.Attempt
		min, max time.Duration // max 0: there is no next attempt
	}{
		{"after the first", schedule, 1, failed(500, 0), minute, minute * 11 / 10},
		{"after the second", schedule, 2, failed(500, 0), 10 * minute, 11 * minute},
		{"after the third", schedule, 3, failed(500, 0), 0, 0},
		{"after a fourth", schedule, 4, failed(500, 0), 0, 0},
		{"before any", schedule, 0, failed(500, 0), 0, 0},
		{
			"without an answer", schedule, 1,
			sender.Attempt{Class: sender.ClassTimeout},
			minute,
			minute * 11 / 10,
		},
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
		next, _ := schedule.Next(1, retryNow, sender.Attempt{Class: sender.ClassTimeout})
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
