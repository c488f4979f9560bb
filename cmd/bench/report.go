package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

// table prints aligned columns.
type table struct{ *tabwriter.Writer }

func newTable(out io.Writer, head ...string) table {
	t := table{tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)}
	t.line(head...)
	return t
}

func (t table) line(cells ...string) { fmt.Fprintln(t, strings.Join(cells, "\t")+"\t") }

// writeLines writes values to a file, one JSON document per line; nothing if path is empty.
func writeLines(path string, values ...any) (err error) {
	if path == "" {
		return nil
	}
	file, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("writing the results: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	encoder := json.NewEncoder(file)
	for _, value := range values {
		if err := encoder.Encode(value); err != nil {
			return fmt.Errorf("writing the results: %w", err)
		}
	}
	return nil
}

// report has the results of a run.
type report struct {
	Machine machine
	Rows    []row
}

// row is one figure and its floor.
type row struct {
	// Section and Name say what was measured.
	Section string `json:"section"`
	Name    string `json:"name"`
	// Unit is the unit of Value and Floor: "µs", "ms", "/s" or "MiB".
	Unit  string  `json:"unit"`
	Value float64 `json:"value"`
	Floor float64 `json:"floor"`
	// FloorName says what the floor measures.
	FloorName string `json:"floor_name"`
	// Ratio is Value divided by Floor. A high ratio is good for rates; a low one is good
	// for times and sizes.
	Ratio float64 `json:"ratio"`
	// Aim is what the figure should be, empty if there is no aim.
	Aim string `json:"aim"`
}

// add appends a row and computes its ratio.
func (r *report) add(line row) {
	if line.Floor != 0 {
		line.Ratio = line.Value / line.Floor
	}
	r.Rows = append(r.Rows, line)
}

// share is a quantile of times to show, and its aim.
type share struct {
	name string
	q    float64
	aim  string
}

// addTimes appends a row like the given one for each quantile of two timings.
func (r *report) addTimes(line row, ours, floor timing, shares ...share) {
	name := line.Name
	for _, one := range shares {
		line.Name, line.Unit, line.Aim = name+", "+one.name, "ms", one.aim
		line.Value = milliseconds(ours.quantile(one.q))
		line.Floor = milliseconds(floor.quantile(one.q))
		r.add(line)
	}
}

// print writes the machine and the table. If one figure has several floors, its name is
// printed once.
func (r *report) print(out io.Writer) error {
	fmt.Fprintf(out, "%s\n\n", r.Machine)
	t := newTable(out, "figure", "value", "floor", "ratio", "floor is", "aim")
	var last row
	for _, line := range r.Rows {
		if line.Section != last.Section {
			t.line("", "", "", "", "", "")
			t.line(line.Section, "", "", "", "", "")
		}
		name, value := "  "+line.Name, quantity(line.Value, line.Unit)
		if line.Section == last.Section && line.Name == last.Name {
			name, value = "", ""
		}
		t.line(name, value, quantity(line.Floor, line.Unit), digits(line.Ratio), line.FloorName, line.Aim)
		last = line
	}
	return t.Flush()
}

// write writes the machine and each row to a file of JSON lines.
func (r *report) write(path string) error {
	lines := []any{r.Machine}
	for _, line := range r.Rows {
		lines = append(lines, line)
	}
	return writeLines(path, lines...)
}

// quantity writes a value with its unit, if it has one.
func quantity(value float64, unit string) string {
	return strings.TrimSpace(digits(value) + " " + unit)
}

// digits formats a value with as many decimals as are significant: about three figures.
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

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// quantile is the value that a share q of the values, from 0 to 1, does not exceed; zero if
// there are none.
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
	// processor is the processor time that they used, 0 if it was not measured.
	processor time.Duration
	// busy is how long processors were busy meanwhile, with any work.
	busy time.Duration
}

// rate is how many things were done per second.
func (t timing) rate() float64 { return float64(len(t.each)) / t.total.Seconds() }

func (t timing) quantile(q float64) time.Duration { return quantile(t.each, q) }

// join adds the timing of a later round.
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

// bound is how much a series may change over the last two thirds of a run: by a share of its
// median or by an absolute amount, whichever is more.
type bound struct {
	Share float64 `json:"share"`
	Slack float64 `json:"slack"`
	// Both says that a fall is as bad as a rise; otherwise only a rise is bad.
	Both bool `json:"both"`
	// None says that the series has no limit, since it grows with the data kept, and is only shown.
	None bool `json:"none,omitempty"`
}

// verdict is the judgement of a series.
type verdict struct {
	Flat bool `json:"flat"`
	// Median is the median of the last two thirds, Change the slope times their length,
	// Limit the largest allowed change.
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

// series is one measured quantity over a run.
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

// judge evaluates the last two thirds; the first third is warm-up.
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

// slope is the median of the slopes between all pairs of points (Theil and Sen), per second.
// A few outliers, such as a checkpoint or a slow second, do not change it.
func slope(points []point) float64 {
	const most = 300 // the number of pairs grows with the square
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

// cells are the cells of the series' row in the table.
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
