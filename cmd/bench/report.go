package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

// table prints columns of cells that line up.
type table struct{ *tabwriter.Writer }

func newTable(out io.Writer, head ...string) table {
	t := table{tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)}
	t.line(head...)
	return t
}

func (t table) line(cells ...string) { fmt.Fprintln(t, strings.Join(cells, "\t")+"\t") }

// writeLines writes values to a file, one JSON document a line; none without a path.
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

// report is what a run found.
type report struct {
	Machine machine
	Rows    []row
}

// row is one figure beside its floor.
type row struct {
	// Section and Name say what was measured.
	Section string `json:"section"`
	Name    string `json:"name"`
	// Unit is that of Value and Floor: "µs", "ms", "/s" or "MiB".
	Unit  string  `json:"unit"`
	Value float64 `json:"value"`
	Floor float64 `json:"floor"`
	// FloorName says what the floor did.
	FloorName string `json:"floor_name"`
	// Ratio is Value divided by Floor. Of rates a high one is good, of times and
	// sizes a low one.
	Ratio float64 `json:"ratio"`
	// Aim is what the figure should be, empty without one.
	Aim string `json:"aim"`
}

// add appends a row and computes its ratio.
func (r *report) add(line row) {
	if line.Floor != 0 {
		line.Ratio = line.Value / line.Floor
	}
	r.Rows = append(r.Rows, line)
}

// share is a quantile of times that is shown, and its aim.
type share struct {
	name string
	q    float64
	aim  string
}

// addTimes appends a row like the given one for each share of two timings.
func (r *report) addTimes(line row, ours, floor timing, shares ...share) {
	name := line.Name
	for _, one := range shares {
		line.Name, line.Unit, line.Aim = name+", "+one.name, "ms", one.aim
		line.Value = milliseconds(ours.quantile(one.q))
		line.Floor = milliseconds(floor.quantile(one.q))
		r.add(line)
	}
}

// print writes the machine and the table. A name is printed once when several
// floors stand beside one figure.
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
		t.line(name, value, quantity(line.Floor, line.Unit), digits(line.Ratio), line.FloorName,
			line.Aim)
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

// digits keeps as many decimals as a measurement deserves: about three figures.
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
