package subscriptions

import (
	"fmt"
	"time"

	"drawbridge/views/ui"
)

// HealthView is how the sending to one subscription goes.
type HealthView struct {
	// Rate is the share of attempts that succeeded, such as "98.4 %"; empty
	// without any attempt.
	Rate string
	// P50 and P95 are how long successful attempts took, zero without any.
	P50, P95 time.Duration
	Attempts int
	// LastSuccess is zero when there was none yet.
	LastSuccess time.Time
	Hours       []HealthHour
}

// HealthHour is one hour of attempts.
type HealthHour struct {
	Start     time.Time
	Succeeded int
	Failed    int
	P95       time.Duration
}

// HealthTab is the page's part about the endpoint's health.
type HealthTab struct {
	HealthView
	Probe ProbeView
}

// ProbeView is the last look at an endpoint between events.
type ProbeView struct {
	// At is zero before the first probe.
	At   time.Time
	Next time.Time
	// Check lists what was found.
	Check   URLCheck
	Address string
	// Expires is when the certificate ends, zero without one.
	Expires time.Time
	Issuer  string
	TLS     string
	Took    time.Duration
	Changes []ProbeChange
}

// ProbeChange is when probes began to find something else.
type ProbeChange struct {
	At      time.Time
	Finding string
}

// spark is the small plot of the hours.
func (h HealthView) spark() ui.SparklineProps {
	props := ui.SparklineProps{Title: h.sparkLabel()}
	for _, hour := range h.Hours {
		props.Points = append(props.Points, ui.SparkPoint{Good: hour.Succeeded, Bad: hour.Failed})
	}
	return props
}

// plot is the large plot of the hours.
func (h HealthView) plot() ui.BarPlotProps {
	props := ui.BarPlotProps{
		ID: "health-plot", Title: "Attempts by hour", Step: "Hour",
		Series: []ui.Series{{Name: "Failed", Tone: ui.Bad}, {Name: "Succeeded", Tone: ui.Good}},
	}
	for _, hour := range h.Hours {
		props.Bars = append(props.Bars, ui.Bar{
			Start: hour.Start, Values: []int{hour.Failed, hour.Succeeded},
		})
	}
	return props
}

// times is the plot of how long the slowest of the successful attempts took.
func (h HealthView) times() ui.LinePlotProps {
	props := ui.LinePlotProps{
		ID: "health-times", Title: "Time to answer by hour, 95 % of the successes within",
		Step: "Hour", Empty: "No successful attempt in this time",
		Series: []ui.Series{{Name: "95 % within", Tone: ui.Calm}},
	}
	for _, hour := range h.Hours {
		props.Bars = append(props.Bars, ui.Bar{
			Start: hour.Start, Values: []int{int(hour.P95.Milliseconds())},
		})
	}
	return props
}

func (h HealthView) sparkLabel() string {
	failed := 0
	for _, hour := range h.Hours {
		failed += hour.Failed
	}
	if h.Attempts == 0 {
		return "No attempts in the last 24 hours"
	}
	return fmt.Sprintf("%s in the last 24 hours, %s failed",
		ui.Plural(h.Attempts, "attempt", "attempts"), ui.Number(failed))
}

// rate is the success rate, or a word where there is none.
func (h HealthView) rate() string {
	if h.Rate == "" {
		return "no traffic"
	}
	return h.Rate
}

// success is the rate as part of a sentence.
func (h HealthView) success() string {
	if h.Rate == "" {
		return h.rate()
	}
	return h.Rate + " succeeded"
}

func probeTable(changes []ProbeChange) ui.TableProps[ProbeChange] {
	return ui.TableProps[ProbeChange]{
		Caption: "What the probes found, newest first",
		RowID:   func(c ProbeChange) string { return "probe-" + fmt.Sprint(c.At.UnixMicro()) },
		Rows:    changes,
		Columns: []ui.Column[ProbeChange]{
			{Title: "Found", Header: true, Cell: probeFindingCell},
			{Title: "Since", Class: "w-time end", Cell: probeAtCell},
		},
	}
}
