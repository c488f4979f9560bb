package health

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"drawbridge/internal/webhook/sender"
	"drawbridge/internal/webhook/subscription"
)

// TestStatesFollowAModel drives the streak and the verdict with random attempts, pauses
// and resumptions, and compares them with a model that remembers every attempt and
// evaluates all of them each time.
func TestStatesFollowAModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		r := rule{
			window: time.Duration(rapid.IntRange(1, 48).Draw(t, "window")) * time.Hour,
			events: rapid.IntRange(1, 6).Draw(t, "events"),
			pause:  rapid.Bool().Draw(t, "pause"),
		}
		now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		var kept streak
		var failures []time.Time // of the model: those since the last success
		state, model := subscription.StateActive, subscription.StateActive
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(1, 600).Draw(t, "minutes")) * time.Minute)
			switch rapid.SampledFrom([]string{"fail", "fail", "fail", "succeed", "resume"}).
				Draw(t, "step") {
			case "succeed":
				kept.apply(outcomeRow{EndedAt: now, Attempts: 1})
				failures = nil
			case "fail":
				kept.apply(outcomeRow{EndedAt: now, Attempts: 1, Class: sender.ClassConnect})
				failures = append(failures, now)
			case "resume":
				if state != subscription.StatePaused {
					continue
				}
				state, model, failures = subscription.StateActive, subscription.StateActive, nil
				kept.Since, kept.Failures = nil, 0
			}
			state = r.verdict(state, kept.Since, len(failures), now)
			model = modelVerdict(r, model, failures, now)
			if state != model || kept.Failures != len(failures) {
				t.Fatalf("state %s with %d failures, want %s with %d", state, kept.Failures, model,
					len(failures))
			}
		}
	})
}

// modelVerdict implements the rule as it is documented.
func modelVerdict(
	r rule, state subscription.State, failures []time.Time, now time.Time,
) subscription.State {
	longEnough := len(failures) > 0 && !failures[0].After(now.Add(-r.window))
	switch {
	case state == subscription.StateFailing && len(failures) == 0:
		return subscription.StateActive
	case state == subscription.StateActive && longEnough && len(failures) >= r.events && r.pause:
		return subscription.StatePaused
	case state == subscription.StateActive && longEnough && len(failures) >= r.events:
		return subscription.StateFailing
	}
	return state
}

// Outcomes may be summed up in another order than the attempts ended in: a run of
// failures is then never longer than it really was.
func TestStreaksNeverBeginTooEarly(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		rows := make([]outcomeRow, rapid.IntRange(1, 12).Draw(t, "outcomes"))
		for i := range rows {
			rows[i] = outcomeRow{EndedAt: start.Add(time.Duration(i) * time.Minute), Attempts: 1}
			if rapid.Bool().Draw(t, "failed") {
				rows[i].Class = sender.ClassTimeout
			}
		}
		var inOrder, mixed streak
		for _, row := range rows {
			inOrder.apply(row)
		}
		for _, row := range rapid.Permutation(rows).Draw(t, "order") {
			mixed.apply(row)
		}
		switch {
		case (mixed.Since == nil) != (inOrder.Since == nil):
			t.Fatalf("since %v, in order %v", mixed.Since, inOrder.Since)
		case mixed.Since != nil && mixed.Since.Before(*inOrder.Since):
			t.Fatalf("since %s, in order %s", mixed.Since, inOrder.Since)
		case (mixed.LastSuccess == nil) != (inOrder.LastSuccess == nil):
			t.Fatalf("last success %v, in order %v", mixed.LastSuccess, inOrder.LastSuccess)
		}
	})
}

// TestPercentilesStayWithinTheirBucket compares with the sorted durations.
func TestPercentilesStayWithinTheirBucket(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		millis := rapid.SliceOfN(rapid.IntRange(1, 59_000), 1, 200).Draw(t, "durations")
		var h, half Histogram
		longest := 0
		for i, one := range millis {
			if i%2 == 0 {
				h.Observe(time.Duration(one)*time.Millisecond, 1)
			} else {
				half.Observe(time.Duration(one)*time.Millisecond, 1)
			}
			longest = max(longest, one)
		}
		h.Add(half)
		if h.Count() != int64(len(millis)) {
			t.Fatalf("%d durations, want %d", h.Count(), len(millis))
		}
		p50, p95, top := h.Percentile(0.5), h.Percentile(0.95), h.Percentile(1)
		low, high := edges(bucket(time.Duration(longest) * time.Millisecond))
		if p50 > p95 || p95 > top || top < low || top > high {
			t.Fatalf("p50 %s, p95 %s, all %s; the longest is %d ms", p50, p95, top, longest)
		}
	})
}
