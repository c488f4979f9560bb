package processes

import (
	"testing"
	"time"
)

// TestSpansOfThePresentAreOne keeps the activity up to now under one key as time goes on, and that
// of a day that is over under its own.
func TestSpansOfThePresentAreOne(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 2, 9, 59, 59, 0, time.UTC)
	const day = 24 * time.Hour
	first := spanOf(now, now.Add(-day), now)
	for _, later := range []time.Duration{time.Second, time.Minute, day} {
		then := now.Add(later)
		if got := spanOf(then, then.Add(-day), then); got != first {
			t.Errorf("%s later the last day is kept under %+v, not under %+v", later, got, first)
		}
	}
	yesterday := spanOf(now, now.Add(-2*day), now.Add(-day))
	before := spanOf(now, now.Add(-3*day), now.Add(-2*day))
	if yesterday == first || yesterday == before {
		t.Error("days that are over are kept under one span")
	}
	if spanOf(now, now.Add(-7*day), now) == first {
		t.Error("a week is kept under the span of a day")
	}
}
