package subscriptions

import (
	"fmt"
	"strings"
	"time"

	"drawbridge/internal/webhook/health"
	"drawbridge/internal/webhook/sender"
	"drawbridge/internal/webhook/subscription"
	"drawbridge/views/ui"
)

// plot is the large plot of attempts per hour.
func plot(h health.Health) ui.BarPlotProps {
	props := ui.BarPlotProps{
		ID: "health-plot", Title: "Attempts by hour", Step: "Hour",
		Series: []ui.Series{{Name: "Failed", Tone: ui.Bad}, {Name: "Succeeded", Tone: ui.Good}},
	}
	for _, hour := range h.Hours {
		props.Bars = append(props.Bars, ui.Bar{
			Start: hour.Start, Values: []int{hour.Attempts - hour.Succeeded, hour.Succeeded},
		})
	}
	return props
}

// times is the plot of how long the slowest successful attempts took.
func times(h health.Health) ui.LinePlotProps {
	props := ui.LinePlotProps{
		ID: "health-times", Title: "Time to answer by hour, 95 % of the successes within",
		Step: "Hour", Empty: "No successful attempt in this time",
		Series: []ui.Series{{Name: "95 % within", Tone: ui.Calm}},
	}
	for _, hour := range h.Hours {
		props.Bars = append(props.Bars, ui.Bar{
			Start: hour.Start, Values: []int{int(hour.Latency.Percentile(0.95).Milliseconds())},
		})
	}
	return props
}

// CheckItem is one finding about an address.
type CheckItem struct {
	Tone  ui.Tone
	Title string
	Text  string
}

// Checked describes the findings about an address that was checked without sending to it.
func Checked(found subscription.URLCheck) []CheckItem {
	tones := map[subscription.CheckVerdict]ui.Tone{
		subscription.CheckGood: ui.Good, subscription.CheckWarning: ui.Warn,
		subscription.CheckRefused: ui.Bad,
	}
	titles := map[string]string{
		"url": "Format", "name": "Name", "address": "Address", "connection": "Connection",
		"certificate": "Certificate",
	}
	var items []CheckItem
	for _, step := range found.Steps {
		if step.Verdict != subscription.CheckSkipped {
			text := strings.Replace(step.Text, `"url"`, "The URL", 1)
			items = append(items, CheckItem{tones[step.Verdict], titles[step.Name], text})
		}
	}
	return items
}

// probed describes the result of a probe.
func probed(p health.ProbeRecord, now time.Time) []CheckItem {
	items := []CheckItem{{ui.Good, "Reachable", "A delivery would get through to it."}}
	if p.Class != "" {
		items[0] = CheckItem{ui.Bad, "Not reachable as it should be", ui.Sentence(p.Error)}
	}
	days := sender.CertificateWarning(p.Expires, now)
	switch {
	case p.Expires.IsZero() || days == 0:
	case days < 0:
		items = append(items, CheckItem{Tone: ui.Bad, Title: "The certificate has expired"})
	default:
		items = append(items, CheckItem{
			ui.Warn, "The certificate ends soon",
			fmt.Sprintf("It is valid for less than %s.", ui.Plural(days, "day", "days")),
		})
	}
	return items
}

func probeTable(changes []health.ProbeChange) ui.TableProps[health.ProbeChange] {
	return ui.TableProps[health.ProbeChange]{
		Caption: "What the probes found, newest first",
		RowID:   func(c health.ProbeChange) string { return "probe-" + fmt.Sprint(c.At.UnixMicro()) },
		Rows:    changes,
		Columns: []ui.Column[health.ProbeChange]{
			{Title: "Found", Header: true, Cell: probeFindingCell},
			ui.Times("Since", "w-time end", func(c health.ProbeChange) time.Time { return c.At }),
		},
	}
}

func finding(c health.ProbeChange) string { return strings.TrimSuffix(ui.Sentence(c.Finding), ".") }
