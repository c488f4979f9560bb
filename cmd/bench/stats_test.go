package main

import (
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestQuantile(t *testing.T) {
	t.Parallel()
	var hundred timing
	for i := range 100 {
		hundred.each = append(hundred.each, time.Duration(100-i)*time.Millisecond)
	}
	tests := []struct {
		name  string
		of    timing
		share float64
		want  time.Duration
	}{
		{"none", timing{}, 0.5, 0},
		{"one", timing{each: []time.Duration{time.Second}}, 0.99, time.Second},
		{"the median", hundred, 0.5, 51 * time.Millisecond},
		{"the slowest", hundred, 0.99, 100 * time.Millisecond},
		{"beyond the last", hundred, 1, 100 * time.Millisecond},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if got := test.of.quantile(test.share); got != test.want {
				t.Errorf("%s, want %s", got, test.want)
			}
		})
	}
}

func TestJoinedRounds(t *testing.T) {
	t.Parallel()
	first := timing{each: []time.Duration{1, 2}, total: time.Second}
	both := first.join(timing{each: []time.Duration{3}, total: 2 * time.Second})
	if !slices.Equal(both.each, []time.Duration{1, 2, 3}) || both.rate() != 1 {
		t.Errorf("%v in %s", both.each, both.total)
	}
}

// over makes a series of 10 minutes, with a sample every five seconds.
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
			bound{Share: .10, Slack: 5},
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

// TestSlopeOfALine: the slope of a line is found, whatever its direction and offset.
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

// sampleResult has one series that is flat and one that is not.
func sampleResult() *result {
	flat := over(bound{Share: .1}, func(float64) float64 { return 100 })
	leak := over(bound{Share: .1}, func(at float64) float64 { return at })
	flat.Name, leak.Name, leak.Unit = "goroutines", "memory", "MiB"
	flat.judge()
	leak.judge()
	return &result{
		Minutes: 10, Carried: 100, Offered: 60, Calls: 36_000, series: []*series{flat, leak},
	}
}

func TestResultIsFlat(t *testing.T) {
	t.Parallel()
	r := sampleResult()
	if r.flat() {
		t.Error("a leak is flat")
	}
	r.series = r.series[:1]
	if !r.flat() {
		t.Error("a constant is not flat")
	}
	r.Failures = map[string]int{"draw: refused": 1}
	if r.flat() {
		t.Error("a failed call is flat")
	}
}

func TestSoakTable(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	r := sampleResult()
	r.Failures = map[string]int{"draw: refused\n": 3}
	if err := r.print(&out); err != nil {
		t.Fatal(err)
	}
	lines := cellsOf(out.String())
	for _, want := range []string{
		"100 calls/s are carried, 60 were offered for 10 min: 36000 calls",
		"goroutines 100 +0.00 +10.0 flat", "memory 400 MiB +400 MiB +40.0 MiB not flat",
		"failed: draw: refused 3 not flat",
	} {
		if !slices.Contains(lines, want) {
			t.Errorf("no line %q in\n%s", want, out.String())
		}
	}
	path := filepath.Join(t.TempDir(), "soak.jsonl")
	if err := writeLines(path, r, r.series[0], r.series[1]); err != nil {
		t.Fatal(err)
	}
	written := readLines(t, path)
	if len(written) != 3 || written[0]["calls"] != 36_000.0 || written[2]["name"] != "memory" ||
		len(written[2]["points"].([]any)) != 120 {
		t.Errorf("the file holds %.300v", written)
	}
}

func TestListFigure(t *testing.T) {
	t.Parallel()
	f := newListFigure("/console/things", map[string][]time.Duration{
		"/a": {time.Millisecond, 3 * time.Millisecond}, "/b": {9 * time.Millisecond},
	}, time.Second)
	if f.Addresses != 2 || f.P50 != 3 || f.Max != 9 || f.Slowest[0].Address != "/b" {
		t.Errorf("the figure is %+v", f)
	}
}

func TestMixAddsUp(t *testing.T) {
	t.Parallel()
	seen := map[string]int{}
	for range 5000 {
		seen[pick().name]++
	}
	for _, one := range mix {
		if share := float64(seen[one.name]) / 5000 * 100; share < float64(one.weight)/2 {
			t.Errorf("%s comes in %.1f%% of the cases, want %d%%", one.name, share, one.weight)
		}
	}
}
