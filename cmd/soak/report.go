package main

import (
	_ "embed"
	"fmt"
	"html/template"
	"os"
	"slices"
)

//go:embed report.html
var reportHTML string

// reportTemplate is the page; it needs nothing from elsewhere.
var reportTemplate = template.Must(template.New("report").Parse(reportHTML))

// reportPage is what the page shows.
type reportPage struct {
	*result

	Flat    bool
	Figures []figure
}

// figure is a series as it is shown.
type figure struct {
	Name, Why, Verdict string
	// Class is how the verdict is coloured.
	Class                 string
	Median, Change, Bound string
	Least, Most           string
	Plot                  plot
	Rows                  []figureRow
	Unit                  string
}

// figureRow is a line of the table behind a plot.
type figureRow struct{ At, Value string }

// mostRows bounds the table behind a plot.
const mostRows = 60

func newFigure(s series) figure {
	f := figure{
		Name: s.Name, Why: s.Why, Verdict: s.Verdict.word(), Class: s.Verdict.class(), Unit: s.Unit,
		Median: s.quantity(s.Verdict.Median), Change: s.signed(s.Verdict.Change),
		Bound: s.boundText(), Plot: newPlot(s.Points),
	}
	if len(s.Points) == 0 {
		return f
	}
	byValue := func(a, b point) int {
		switch {
		case a.Value < b.Value:
			return -1
		case a.Value > b.Value:
			return 1
		}
		return 0
	}
	f.Least = s.quantity(slices.MinFunc(s.Points, byValue).Value)
	f.Most = s.quantity(slices.MaxFunc(s.Points, byValue).Value)
	step := (len(s.Points) + mostRows - 1) / mostRows
	for i := 0; i < len(s.Points); i += step {
		f.Rows = append(f.Rows, figureRow{clockText(s.Points[i].At), digits(s.Points[i].Value)})
	}
	return f
}

// clockText writes seconds as minutes and seconds.
func clockText(seconds float64) string {
	return fmt.Sprintf("%d:%02d", int(seconds)/60, int(seconds)%60)
}

// writeReport writes the page to a file.
func writeReport(path string, r *result) (err error) {
	file, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	defer func() {
		if closeErr := file.Close(); err == nil && closeErr != nil {
			err = fmt.Errorf("writing the report: %w", closeErr)
		}
	}()
	page := reportPage{result: r, Flat: r.flat()}
	for _, one := range r.Series {
		page.Figures = append(page.Figures, newFigure(one))
	}
	if err := reportTemplate.Execute(file, page); err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	return nil
}
