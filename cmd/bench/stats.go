package main

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// quantile is the value that the share q of the values, from 0 to 1, does not
// exceed; zero without any.
func quantile[T cmp.Ordered](values []T, q float64) T {
	if len(values) == 0 {
		return *new(T)
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)]
}

// timing is how long things took: each of them, and all together.
type timing struct {
	each  []time.Duration
	total time.Duration
	// processor is what they used of the processors, 0 where it was not measured.
	processor time.Duration
	// busy is how long processors had something to do meanwhile, whatever it was.
	busy time.Duration
}

// rate is how many came per second.
func (t timing) rate() float64 { return float64(len(t.each)) / t.total.Seconds() }

func (t timing) quantile(q float64) time.Duration { return quantile(t.each, q) }

// join adds what a later round found.
func (t timing) join(other timing) timing {
	return timing{
		each: append(t.each, other.each...), total: t.total + other.total,
		processor: t.processor + other.processor, busy: t.busy + other.busy,
	}
}

// point is a sample: seconds since the load began, and a value.
type point struct {
	At    float64 `json:"at"`
	Value float64 `json:"value"`
}

// bound is how much a series may change over the last two thirds of a run: by a
// share of its median or by so much, whichever is more.
type bound struct {
	Share float64 `json:"share"`
	Slack float64 `json:"slack"`
	// Both judges a fall like a rise; otherwise only a rise is a fault.
	Both bool `json:"both"`
	// None is for what grows with what is kept, and is shown only.
	None bool `json:"none,omitempty"`
}

// verdict is what became of a series.
type verdict struct {
	Flat bool `json:"flat"`
	// Median is that of the last two thirds, Change what the slope makes of it
	// over their length, Limit the most that it may be.
	Median float64 `json:"median"`
	Change float64 `json:"change"`
	Limit  float64 `json:"limit"`
	Judged bool    `json:"judged"`
}

func (v verdict) word() string {
	switch {
	case !v.Judged:
		return "shown only"
	case v.Flat:
		return "flat"
	}
	return "not flat"
}

// series is one measure over a run.
type series struct {
	Name    string  `json:"name"`
	Unit    string  `json:"unit"`
	Why     string  `json:"why"`
	Bound   bound   `json:"bound"`
	Verdict verdict `json:"verdict"`
	Points  []point `json:"points"`
}

// leastPoints is how many samples a verdict needs.
const leastPoints = 6

// judge looks at the last two thirds: what comes before is warming up.
func (s *series) judge() {
	s.Verdict = verdict{Flat: true}
	if len(s.Points) == 0 {
		return
	}
	from := s.Points[len(s.Points)-1].At / 3
	late := s.Points[slices.IndexFunc(s.Points, func(p point) bool { return p.At >= from }):]
	values := make([]float64, len(late))
	for i, p := range late {
		values[i] = p.Value
	}
	v := verdict{Median: quantile(values, 0.5), Judged: !s.Bound.None && len(late) >= leastPoints}
	v.Change = slope(late) * (late[len(late)-1].At - late[0].At)
	v.Limit = max(s.Bound.Share*math.Abs(v.Median), s.Bound.Slack)
	v.Flat = !v.Judged || v.Change <= v.Limit && (!s.Bound.Both || -v.Change <= v.Limit)
	s.Verdict = v
}

// slope is the median of the slopes between all pairs of points (Theil and Sen), per
// second, which a few outliers, a checkpoint or a slow second, do not move.
func slope(points []point) float64 {
	const most = 300 // pairs grow with the square
	step := max(1, (len(points)+most-1)/most)
	var slopes []float64
	for i := 0; i < len(points); i += step {
		for j := i + step; j < len(points); j += step {
			if length := points[j].At - points[i].At; length > 0 {
				slopes = append(slopes, (points[j].Value-points[i].Value)/length)
			}
		}
	}
	return quantile(slopes, 0.5)
}

// cells are the series in the table.
func (s *series) cells() []string {
	change, limit := quantity(s.Verdict.Change, s.Unit), "none"
	if s.Verdict.Change >= 0 {
		change = "+" + change
	}
	if !s.Bound.None {
		limit = "+" + quantity(s.Verdict.Limit, s.Unit)
	}
	if s.Bound.Both {
		limit = "±" + limit[1:]
	}
	return []string{s.Name, quantity(s.Verdict.Median, s.Unit), change, limit, s.Verdict.word()}
}
