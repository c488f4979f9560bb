package ui

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/a-h/templ"
)

// Series is one part of each bar, or one line, of a plot.
type Series struct {
	Name string
	Tone Tone
}

// Bar is one time step of a plot, with a value for each series.
type Bar struct {
	Start  time.Time
	Values []int
}

// BarPlotProps is a plot of counts over time, stacked by series. The first series is at the
// bottom, where even a small bar is seen first.
type BarPlotProps struct {
	// ID is unique on the page.
	ID string
	// Title describes the plot; it is the picture's name and the table's caption.
	Title string
	// Step names the time step of a bar: "Hour"; Unit names what is counted.
	Step, Unit string
	Series     []Series
	// Bars are in the order of time, oldest first.
	Bars []Bar
}

// LinePlotProps is a plot of durations over time, in milliseconds, one line per series. A
// value of 0 means no value, and interrupts the line.
type LinePlotProps struct {
	ID, Title, Step string
	// Empty is the text shown if there are no values.
	Empty  string
	Series []Series
	Bars   []Bar
}

// SparklineProps is a small plot for a row of a list: counts of a good and a bad
// outcome over time.
type SparklineProps struct {
	// Title describes the picture in words; empty if the text beside it does.
	Title string
	// Points are in the order of time, oldest first.
	Points []SparkPoint
}

// SparkPoint is one step of a sparkline.
type SparkPoint struct{ Good, Bad int }

// plotBar is one coloured part of a bar, in the units of its plot.
type plotBar struct {
	class               string
	x, y, width, height string
}

// Sizes of plots in their own units.
const (
	plotWidth  = 960.0
	plotHeight = 120.0
	// A sparkline of twelve steps fits its column.
	sparkHeight, sparkStep = 24, 8
)

func units(value float64) string { return strconv.FormatFloat(value, 'f', 1, 64) }

// parts places the bars in the plot. Every non-zero value is visible.
func (p BarPlotProps) parts() []plotBar {
	highest, step := float64(p.axis()), plotWidth/float64(max(len(p.Bars), 1))
	var parts []plotBar
	for i, bar := range p.Bars {
		floor := plotHeight
		for s, value := range bar.Values {
			if value <= 0 {
				continue
			}
			tall := max(float64(value)*(plotHeight-2)/highest, 1.5)
			floor -= tall
			parts = append(parts, plotBar{
				class: "plot-" + string(p.Series[s].Tone), width: units(step * 3 / 4),
				x: units(float64(i)*step + step/8), y: units(max(floor, 0)), height: units(tall),
			})
		}
	}
	return parts
}

// summary describes the plot in one sentence.
func (p BarPlotProps) summary() string {
	totals := make([]int, len(p.Series))
	for _, bar := range p.Bars {
		for i, value := range bar.Values {
			totals[i] += value
		}
	}
	words := make([]string, len(totals))
	for i, total := range totals {
		words[i] = Number(total) + " " + strings.ToLower(p.Series[i].Name)
	}
	return p.Title + ": " + strings.Join(words, ", ")
}

func (p SparklineProps) width() int { return max(len(p.Points), 1) * sparkStep }

// areas returns two outlines, of everything and of the bad part in front of it, because a
// list shows fifty of them. Every non-zero value is visible.
func (p SparklineProps) areas() (all, bad string) {
	highest := 1
	for _, point := range p.Points {
		highest = max(highest, point.Good+point.Bad)
	}
	step := "h" + strconv.Itoa(sparkStep)
	outline := func(value func(SparkPoint) int) string {
		path, some := "M0 24", false
		for _, point := range p.Points {
			tall := 0
			if value(point) > 0 {
				tall, some = max(value(point)*(sparkHeight-2)/highest, 1), true
			}
			path += "V" + strconv.Itoa(sparkHeight-tall) + step
		}
		if !some {
			return ""
		}
		return path + "V24z"
	}
	return outline(func(s SparkPoint) int { return s.Good + s.Bad }),
		outline(func(s SparkPoint) int { return s.Bad })
}

// axis returns the value at the top of the vertical axis, at least the highest bar's total.
func (p BarPlotProps) axis() int {
	highest := 1
	for _, bar := range p.Bars {
		total := 0
		for _, value := range bar.Values {
			total += value
		}
		highest = max(highest, total)
	}
	return roundUp(highest)
}

// ticks returns the labels of the vertical axis, from the top; none for an empty plot.
func (p BarPlotProps) ticks() []string {
	if len(p.parts()) == 0 {
		return nil
	}
	return tickWords(p.axis(), Number)
}

// roundUp returns the smallest of 1, 2, 4, 6, 8, 10, 20, 40 ... that is at least the value,
// so that half of it is a round number too.
func roundUp(value int) int {
	if value <= 1 {
		return 1
	}
	for unit := 1; ; unit *= 10 {
		for _, step := range []int{2, 4, 6, 8, 10} {
			if step*unit >= value {
				return step * unit
			}
		}
	}
}

// tickWords returns the labels for the top of an axis, for half of it if that is whole, and for 0.
func tickWords(top int, word func(int) string) []string {
	if top == 1 {
		return []string{word(1), "0"}
	}
	return []string{word(top), word(top / 2), "0"}
}

// tallest returns the highest value of any line, at least 1.
func (p LinePlotProps) tallest() int {
	highest := 1
	for _, bar := range p.Bars {
		for _, value := range bar.Values {
			highest = max(highest, value)
		}
	}
	return highest
}

// lines returns the points of the unbroken runs of a series. A run of one point becomes a
// short line, so that it is visible.
func (p LinePlotProps) lines(series int) []string {
	highest := float64(roundUp(p.tallest()))
	step := plotWidth / float64(max(len(p.Bars), 1))
	var runs []string
	var run []string
	end := func() {
		if len(run) > 0 {
			runs = append(runs, strings.Join(run, " "))
		}
		run = nil
	}
	for i, bar := range p.Bars {
		value := bar.Values[series]
		if value <= 0 {
			end()
			continue
		}
		y := plotHeight - float64(value)*(plotHeight-4)/highest
		from, to := float64(i)*step+step/4, float64(i)*step+step*3/4
		run = append(run, units(from)+","+units(y), units(to)+","+units(y))
	}
	end()
	return runs
}

// none reports whether there are no values.
func (p LinePlotProps) none() bool {
	for i := range p.Series {
		if len(p.lines(i)) > 0 {
			return false
		}
	}
	return true
}

// ticks returns the labels of the vertical axis, from the top; none if there are no values.
func (p LinePlotProps) ticks() []string {
	if p.none() {
		return nil
	}
	return tickWords(roundUp(p.tallest()), func(value int) string {
		return Duration(time.Duration(value) * time.Millisecond)
	})
}

func (p LinePlotProps) summary() string {
	if p.none() {
		return p.Title + ": none"
	}
	return p.Title + ": " + Duration(time.Duration(p.tallest())*time.Millisecond) + " at most"
}

// inMilliseconds returns the series named with the unit of their values, for the table.
func (p LinePlotProps) inMilliseconds() []Series {
	named := slices.Clone(p.Series)
	for i := range named {
		named[i].Name += ", ms"
	}
	return named
}

// axisTime formats an end of a plot's time axis, in the reader's zone.
func axisTime(ctx context.Context, at time.Time) string {
	return at.In(ZoneOf(ctx)).Format("Jan 2, 15:04")
}

// plotTable is the table of a plot's values, for readers who cannot see the plot.
func plotTable(id, title, step string, series []Series, bars []Bar) TableProps[Bar] {
	columns := []Column[Bar]{{Title: step, Header: true, Cell: barTimeCell}}
	for i, one := range series {
		columns = append(columns, Column[Bar]{
			Title: one.Name, Class: "end",
			Cell: func(b Bar) templ.Component { return countCell(b.Values[i]) },
		})
	}
	return TableProps[Bar]{
		Caption: title + ", oldest first",
		RowID:   func(b Bar) string { return id + "-" + strconv.FormatInt(b.Start.Unix(), 10) },
		Rows:    bars, Columns: columns,
	}
}
