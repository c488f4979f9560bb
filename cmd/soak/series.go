package main

import (
	"fmt"
	"math"
	"slices"
	"strconv"
)

// point is a sample: seconds since the load began, and a value.
type point struct {
	At    float64 `json:"at"`
	Value float64 `json:"value"`
}

// bound is how much a series may change over the last two thirds of a run: by a
// share of its median or by an amount, whichever is more.
type bound struct {
	Share  float64 `json:"share"`
	Amount float64 `json:"amount"`
	// Both judges a fall like a rise; otherwise only a rise is a fault.
	Both bool `json:"both"`
	// None is for what grows with what is kept, and is shown only.
	None bool `json:"none,omitempty"`
}

// limit is the change that is allowed around a median.
func (b bound) limit(median float64) float64 {
	return max(b.Share*math.Abs(median), b.Amount)
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

// class is how the word is coloured in the report.
func (v verdict) class() string {
	switch {
	case !v.Judged:
		return "soft"
	case v.Flat:
		return "good"
	}
	return "bad"
}

// series is one measure over a run.
type series struct {
	Name    string  `json:"name"`
	Unit    string  `json:"unit"`
	Why     string  `json:"why"`
	Bound   bound   `json:"bound"`
	Points  []point `json:"points"`
	Verdict verdict `json:"verdict"`
}

// leastPoints is how many samples a verdict needs.
const leastPoints = 6

// judge looks at the last two thirds: what comes before is warming up. The slope
// is the median of the slopes between all pairs of samples (Theil and Sen), which
// a few outliers, a checkpoint or a slow second, do not move.
func (s *series) judge() {
	s.Verdict = verdict{Flat: true}
	late := s.late()
	if len(late) == 0 {
		return
	}
	values := make([]float64, len(late))
	for i, p := range late {
		values[i] = p.Value
	}
	v := verdict{Median: median(values), Judged: !s.Bound.None && len(late) >= leastPoints}
	v.Change = slope(late) * (late[len(late)-1].At - late[0].At)
	v.Limit = s.Bound.limit(v.Median)
	change := v.Change
	if s.Bound.Both {
		change = math.Abs(change)
	}
	v.Flat = !v.Judged || change <= v.Limit
	s.Verdict = v
}

// late returns the points of the last two thirds.
func (s *series) late() []point {
	if len(s.Points) == 0 {
		return nil
	}
	from := s.Points[len(s.Points)-1].At / 3
	first := slices.IndexFunc(s.Points, func(p point) bool { return p.At >= from })
	return s.Points[first:]
}

// slope is the median slope of all pairs, per second; 0 without two points.
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
	return median(slopes)
}

// median is the middle value, 0 of none.
func median(values []float64) float64 { return quantile(values, 0.5) }

// quantile is the value that the share q of the values does not exceed.
func quantile(values []float64, q float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)]
}

// quantity writes a value with its unit.
func (s *series) quantity(value float64) string {
	if s.Unit == "" {
		return digits(value)
	}
	return digits(value) + " " + s.Unit
}

func (s *series) signed(value float64) string {
	if value >= 0 {
		return "+" + s.quantity(value)
	}
	return s.quantity(value)
}

// boundText is the bound as people read it.
func (s *series) boundText() string {
	if s.Bound.None {
		return "none"
	}
	sign := "+"
	if s.Bound.Both {
		sign = "±"
	}
	return fmt.Sprintf("%s%s", sign, s.quantity(s.Verdict.Limit))
}

// digits keeps about three figures.
func digits(value float64) string {
	decimals := 2
	switch size := math.Abs(value); {
	case size >= 100:
		decimals = 0
	case size >= 10:
		decimals = 1
	}
	return strconv.FormatFloat(value, 'f', decimals, 64)
}
