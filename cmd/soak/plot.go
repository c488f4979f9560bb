package main

import (
	"fmt"
	"strings"
)

// The drawing of a plot, in units of its own.
const (
	plotWidth  = 600
	plotHeight = 120
	plotMargin = 4
)

// plot is a drawing of points, on an axis that begins at zero.
type plot struct {
	Width, Height int
	// Line holds the corners of the line.
	Line string
	// WarmUntil is where the part begins that is judged.
	WarmUntil string
	Top, End  string
}

// newPlot draws points.
func newPlot(points []point) plot {
	p := plot{Width: plotWidth, Height: plotHeight}
	if len(points) == 0 {
		return p
	}
	end, top := points[len(points)-1].At, 0.0
	for _, one := range points {
		top = max(top, one.Value)
	}
	across := func(at float64) float64 {
		return plotMargin + at/max(end, 1)*(plotWidth-2*plotMargin)
	}
	var line strings.Builder
	for _, one := range points {
		share := one.Value / max(top, 1e-9)
		fmt.Fprintf(&line, "%.1f,%.1f ", across(one.At),
			plotHeight-plotMargin-share*(plotHeight-2*plotMargin))
	}
	p.Line = strings.TrimSpace(line.String())
	p.WarmUntil = fmt.Sprintf("%.1f", across(end/3))
	p.Top, p.End = digits(top), clockText(end)
	return p
}
