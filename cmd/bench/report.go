package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"text/tabwriter"
	"time"
)

// report is what a run found.
type report struct {
	Machine machine `json:"machine"`
	Rows    []row   `json:"rows"`
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

func (r *report) writeJSON(out io.Writer) error {
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(r); err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	return nil
}

// writeText prints the machine and the table. A name is printed once when
// several floors stand beside one figure.
func (r *report) writeText(out io.Writer) error {
	fmt.Fprintf(out, "%s\n", r.Machine)
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	// Lines without the cells of the others would break the columns.
	const empty = "\t\t\t\t\t\n"
	fmt.Fprint(table, empty+"figure\tvalue\tfloor\tratio\tfloor is\taim\n")
	var last row
	for _, line := range r.Rows {
		if line.Section != last.Section {
			fmt.Fprint(table, empty+line.Section+empty)
		}
		name, value := "  "+line.Name, quantity(line.Value, line.Unit)
		if line.Section == last.Section && line.Name == last.Name {
			name, value = "", ""
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n", name, value,
			quantity(line.Floor, line.Unit), digits(line.Ratio), line.FloorName, line.Aim)
		last = line
	}
	if err := table.Flush(); err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	return nil
}

func quantity(value float64, unit string) string { return digits(value) + " " + unit }

// digits keeps as many decimals as a measurement deserves: about three figures.
func digits(value float64) string {
	decimals := 2
	switch {
	case value >= 100:
		decimals = 0
	case value >= 10:
		decimals = 1
	}
	return strconv.FormatFloat(value, 'f', decimals, 64)
}

// microseconds of a duration.
func microseconds(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// milliseconds of a duration.
func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
