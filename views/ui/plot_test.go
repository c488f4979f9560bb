package ui

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/a-h/templ"
	"pgregory.net/rapid"
)

var plotStart = time.Date(2026, 11, 21, 9, 30, 0, 0, time.UTC)

func samplePlot() BarPlotProps {
	return BarPlotProps{
		ID: "plot", Title: "Deliveries per hour", Step: "Hour",
		Series: []Series{{Name: "Failed", Tone: Bad}, {Name: "Delivered", Tone: Good}},
		Bars: []Bar{
			{Start: plotStart, Values: []int{1, 9}},
			{Start: plotStart.Add(time.Hour), Values: []int{0, 0}},
		},
	}
}

func TestBarPlotShowsItsNumbers(t *testing.T) {
	t.Parallel()
	page := html(t, BarPlot(samplePlot()))
	for _, want := range []string{
		"<title>Deliveries per hour: 1 failed, 9 delivered</title>", `class="plot-bad"`,
		`class="plot-good"`, `<caption class="visually-hidden">Deliveries per hour, oldest first`,
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the plot lacks %q", want)
		}
	}
	if strings.Contains(page, "style=") {
		t.Error("the plot has an inline style, which the browser refuses")
	}
	if got := strings.Count(page, "<rect class=\"plot-bad\" x="); got != 1 {
		t.Errorf("%d bars for failures, want 1", got)
	}
}

func TestLinePlotBreaksWhereNothingIs(t *testing.T) {
	t.Parallel()
	plot := LinePlotProps{
		ID: "lines", Title: "Time to answer", Step: "Hour",
		Series: []Series{{Name: "Median", Tone: Calm}},
		Bars: []Bar{
			{Values: []int{10}}, {Values: []int{0}}, {Values: []int{20}}, {Values: []int{30}},
		},
	}
	if runs := plot.lines(0); len(runs) != 2 {
		t.Errorf("lines %q, want two runs", runs)
	}
	if page := html(t, LinePlot(plot)); strings.Count(page, "<polyline") != 2 {
		t.Error("the plot does not draw both runs")
	}
}

func TestALinePlotWithoutValuesClaimsNoHighest(t *testing.T) {
	t.Parallel()
	page := html(t, LinePlot(LinePlotProps{
		ID: "lines", Title: "Time to answer", Step: "Hour", Empty: "No successful attempt",
		Series: []Series{{Name: "95 % within", Tone: Calm}}, Bars: []Bar{{Values: []int{0}}},
	}))
	if !strings.Contains(page, "No successful attempt") || strings.Contains(page, "plot-ticks") ||
		strings.Contains(page, "plot-legend") || strings.Contains(page, "Show as a table") {
		t.Errorf("the plot says %s", page)
	}
}

func TestSparklineIsNamed(t *testing.T) {
	t.Parallel()
	page := html(t, Sparkline(SparklineProps{
		Title: "24 hours: 99 % of 120 attempts", Points: []SparkPoint{{Good: 3}, {Bad: 1}},
	}))
	if !strings.Contains(page, "<title>24 hours: 99 % of 120 attempts</title>") ||
		strings.Count(page, "<path") != 2 {
		t.Errorf("sparkline %s", page)
	}
}

// The axis ends at a round number with a round half, just above the highest value.
func TestAxisEndsAtARoundNumber(t *testing.T) {
	t.Parallel()
	for value, want := range map[int]string{
		1: "1 0", 2: "2 1 0", 3: "4 2 0", 9: "10 5 0", 11: "20 10 0", 61: "80 40 0",
		4100: "6,000 3,000 0",
	} {
		plot := samplePlot()
		plot.Bars, plot.Unit = []Bar{{Start: plotStart, Values: []int{0, value}}}, "deliveries"
		if got := strings.Join(plot.ticks(), " "); got != want {
			t.Errorf("up to %d the axis says %q, want %q", value, got, want)
		}
		page := html(t, BarPlot(plot))
		if strings.Count(page, "plot-grid") != 4 || !strings.Contains(page, ">deliveries</p>") {
			t.Error("the plot lacks its grid or its unit")
		}
	}
}

// Whatever the numbers, bars stay inside their box and non-zero values are visible.
func TestBarsStayInTheirBox(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		bars := make([]Bar, rapid.IntRange(1, 100).Draw(t, "bars"))
		for i := range bars {
			bars[i].Values = rapid.SliceOfN(rapid.IntRange(0, 1_000_000), 2, 2).Draw(t, "values")
		}
		want := 0
		for _, bar := range bars {
			for _, value := range bar.Values {
				want += min(value, 1)
			}
		}
		parts := BarPlotProps{Series: make([]Series, 2), Bars: bars}.parts()
		if len(parts) != want {
			t.Fatalf("%d parts, want %d", len(parts), want)
		}
		for _, part := range parts {
			var x, y, width, height float64
			for text, into := range map[string]*float64{
				part.x: &x, part.y: &y, part.width: &width, part.height: &height,
			} {
				if _, err := fmt.Sscan(text, into); err != nil {
					t.Fatal(err)
				}
			}
			if x < 0 || y < 0 || x+width > plotWidth+1 || y+height > plotHeight+2 || height <= 0 {
				t.Fatalf("part %+v leaves the box", part)
			}
		}
	})
}

// html renders a component.
func html(t *testing.T, component templ.Component) string {
	t.Helper()
	var out strings.Builder
	if err := component.Render(t.Context(), &out); err != nil {
		t.Fatal(err)
	}
	return out.String()
}
