package views

import (
	"strconv"
	"time"

	"github.com/a-h/templ"
)

// Overview is the console's first page.
type Overview struct {
	Frame
	// Span words the time that the numbers cover: "last 24 hours".
	Span  string
	Tiles []Tile
	// Hours are the bars of the chart, oldest first.
	Hours []HourBar
	// Attention lists failed deliveries, newest first.
	Attention []DeliveryRow
	// AttentionHref leads to all of them.
	AttentionHref string
	// Unavailable tells that the numbers could not be loaded.
	Unavailable bool
}

// Tile is one number and where it leads.
type Tile struct {
	Label string
	Value string
	Note  string
	Icon  string
	Tone  Tone
	Href  string
}

// HourBar counts the deliveries that were created in one hour, by outcome.
type HourBar struct {
	Start     time.Time
	Delivered int
	Waiting   int
	Failed    int
}

func (h HourBar) total() int { return h.Delivered + h.Waiting + h.Failed }

// chartBar is one coloured part of a bar, in the units of the chart.
type chartBar struct {
	class               string
	x, y, width, height int
}

// Size of the chart in its own units.
const (
	chartWidth  = 960
	chartHeight = 120
)

// chart stacks the hours' outcomes; failures stand at the bottom, where a bar
// of one is seen first.
func chart(hours []HourBar) []chartBar {
	highest := 1
	for _, hour := range hours {
		highest = max(highest, hour.total())
	}
	var bars []chartBar
	step := chartWidth / max(len(hours), 1)
	for i, hour := range hours {
		floor := chartHeight
		for _, part := range []struct {
			class string
			count int
		}{{"chart-bad", hour.Failed}, {"chart-warn", hour.Waiting}, {"chart-good", hour.Delivered}} {
			if part.count == 0 {
				continue
			}
			height := max(part.count*(chartHeight-4)/highest, 2)
			floor -= height
			bars = append(bars, chartBar{part.class, i*step + step/8, floor, step * 3 / 4, height})
		}
	}
	return bars
}

// busiest is the highest hour's count, the chart's top.
func busiest(hours []HourBar) int {
	highest := 0
	for _, hour := range hours {
		highest = max(highest, hour.total())
	}
	return highest
}

// hoursTable is the chart for those who do not see it.
func hoursTable(hours []HourBar) TableProps[HourBar] {
	count := func(of func(HourBar) int) func(HourBar) templ.Component {
		return func(h HourBar) templ.Component { return countCell(of(h)) }
	}
	return TableProps[HourBar]{
		Caption: "Deliveries per hour, oldest first",
		RowID:   func(h HourBar) string { return "hour-" + strconv.FormatInt(h.Start.Unix(), 10) },
		Rows:    hours,
		Columns: []Column[HourBar]{
			{Title: "Hour", Header: true, Cell: hourCell},
			{Title: "Delivered", Class: "end", Cell: count(func(h HourBar) int { return h.Delivered })},
			{Title: "Waiting", Class: "end", Cell: count(func(h HourBar) int { return h.Waiting })},
			{Title: "Failed", Class: "end", Cell: count(func(h HourBar) int { return h.Failed })},
		},
	}
}
