package main

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// over makes a series of 10 minutes, a sample every five seconds.
func over(b bound, value func(at float64) float64) *series {
	s := &series{Name: "any", Bound: b}
	for at := 5.0; at <= 600; at += 5 {
		s.Points = append(s.Points, point{at, value(at)})
	}
	return s
}

func TestVerdicts(t *testing.T) {
	t.Parallel()
	noise := rand.New(rand.NewPCG(1, 2))
	tenth := bound{Share: .10}
	for _, test := range []struct {
		name  string
		bound bound
		value func(at float64) float64
		flat  bool
	}{
		{"constant", tenth, func(float64) float64 { return 100 }, true},
		{"noise", tenth, func(float64) float64 { return 100 + 40*noise.Float64() }, true},
		{"a leak", tenth, func(at float64) float64 { return 100 + at/20 }, false},
		{
			"a leak in noise", tenth,
			func(at float64) float64 { return 100 + at/15 + 20*noise.Float64() }, false,
		},
		{"warming up", tenth, func(at float64) float64 { return min(100, at) }, true},
		{"outliers at the end", tenth, func(at float64) float64 {
			if at > 550 {
				return 1000
			}
			return 100
		}, true},
		{"a slow rise within the bound", tenth, func(at float64) float64 { return 100 + at/100 }, true},
		{"a fall that is welcome", tenth, func(at float64) float64 { return 200 - at/5 }, true},
		{
			"a fall that is not",
			bound{Share: .10, Both: true},
			func(at float64) float64 { return 200 - at/5 }, false,
		},
		{
			"a rise of what is next to nothing",
			bound{Share: .10, Amount: 5},
			func(at float64) float64 { return at / 200 }, true,
		},
		{"growth that is only shown", bound{None: true}, func(at float64) float64 { return at }, true},
	} {
		s := over(test.bound, test.value)
		if s.judge(); s.Verdict.Flat != test.flat {
			t.Errorf("%s: %+v", test.name, s.Verdict)
		}
	}
}

func TestTooFewSamplesAreNotJudged(t *testing.T) {
	t.Parallel()
	for count := range leastPoints {
		s := &series{}
		for i := range count {
			s.Points = append(s.Points, point{100 + float64(i), math.Pow(10, float64(i))})
		}
		if s.judge(); !s.Verdict.Flat || s.Verdict.Judged || s.Verdict.word() != "shown only" {
			t.Errorf("%d samples: %+v", count, s.Verdict)
		}
	}
}

// TestSlopeOfALine: a line's slope is found whatever its direction, and adding a
// constant or scaling moves it as it should.
func TestSlopeOfALine(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		rise := rapid.Float64Range(-100, 100).Draw(t, "rise")
		base := rapid.Float64Range(-1e4, 1e4).Draw(t, "base")
		var points []point
		for i := range rapid.IntRange(2, 900).Draw(t, "count") {
			points = append(points, point{float64(i), base + rise*float64(i)})
		}
		if got := slope(points); math.Abs(got-rise) > 1e-6 {
			t.Fatalf("the slope is %v, want %v", got, rise)
		}
	})
}

func TestQuantiles(t *testing.T) {
	t.Parallel()
	if median(nil) != 0 || quantile([]float64{3, 1, 2}, 0.5) != 2 ||
		quantile([]float64{7}, 0.99) != 7 {
		t.Error("the middle of three, one and none")
	}
}
