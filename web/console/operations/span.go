package operations

import (
	"maps"
	"net/url"
	"time"

	"github.com/labstack/echo/v4"

	"drawbridge/internal/webhook/delivery"
	"drawbridge/internal/webhook/health"
	"drawbridge/views/paths"
	"drawbridge/views/ui"
	"drawbridge/web/console/list"
)

// span is the period that the overview shows.
type span struct {
	since, until time.Time
	step         time.Duration
	// name is that of a predefined range, empty for a period that the reader entered.
	name, label string
	// live means that the period ends now, so that its numbers keep changing.
	live  bool
	query url.Values
	// by is what the plot of failures is split by; empty for the plot of outcomes.
	by health.Split
}

// ranges are the predefined periods; the second one is the default.
var ranges = []struct {
	name, tab, label string
	length           time.Duration
}{
	{"1h", "1 hour", "last hour", time.Hour},
	{"24h", "24 hours", "last 24 hours", 24 * time.Hour},
	{"7d", "7 days", "last 7 days", 7 * 24 * time.Hour},
	{"30d", "30 days", "last 30 days", 30 * 24 * time.Hour},
}

// spanFilters are the parameters of the overview's address.
var spanFilters = []list.Filter{
	{Name: "range", Kind: list.Hidden},
	{Name: "by", Kind: list.Hidden},
	{Name: "since", Kind: list.Time},
	{Name: "until", Kind: list.Time},
}

// readSpan reads the period from the overview's address. A wrong one is replaced by the
// default, and its errors are in the values.
func (f *Feature) readSpan(ctx echo.Context) (span, *list.Values) {
	v := f.Values(ctx, spanFilters...)
	by := list.OneOf(v, "by", []health.Split{health.ByEndpoint, health.ByError})
	since, until, now := v.Time("since"), v.Time("until"), v.Now.UTC()
	own := !since.IsZero() || !until.IsZero()
	if own && until.IsZero() || until.After(now) {
		until = now
	}
	switch {
	case !own:
	case since.IsZero():
		v.Wrong["since"] = "Enter the beginning of the period, too."
	case !since.Before(until):
		v.Wrong["until"] = "The end must come after the beginning."
	case now.Sub(since) > health.HoursKept:
		v.Wrong["since"] = "Numbers are kept for 400 days."
	}
	query := v.Query()
	query.Del("range")
	query.Del("by")
	chosen := span{
		since: since, until: until, live: v.Text("until") == "", label: "time chosen",
		step: stepOf(until.Sub(since), now.Sub(since)), query: query,
	}
	if !own || len(v.Wrong) > 0 {
		found := ranges[1]
		for _, one := range ranges {
			if one.name == v.Text("range") {
				found = one
			}
		}
		chosen = span{
			since: now.Add(-found.length), until: now, name: found.name, label: found.label,
			live: true, step: stepOf(found.length, found.length),
			query: url.Values{"range": {found.name}},
		}
	}
	if chosen.by = by; by != "" {
		chosen.query.Set("by", string(by))
	}
	return chosen, v
}

// stepOf chooses a step that yields about a hundred bars, among the steps that are still
// kept for a period that began that long ago.
func stepOf(length, ago time.Duration) time.Duration {
	switch {
	case length <= 3*time.Hour && ago < health.TrafficKept:
		return time.Minute
	case length <= 8*24*time.Hour:
		return time.Hour
	case length <= 31*24*time.Hour:
		return 6 * time.Hour
	}
	return 24 * time.Hour
}

func (s span) stepName() string {
	switch s.step {
	case time.Minute:
		return "minute"
	case time.Hour:
		return "hour"
	case 24 * time.Hour:
		return "day"
	default:
		return "6 hours"
	}
}

// list returns the list behind a number of the overview, under the tab of a state or of all.
// The start is truncated to the minute, so that a live page does not change with each poll.
func (s span) list(path, tab, state string) string {
	query := url.Values{"since": {s.since.Truncate(time.Minute).Format(time.RFC3339)}}
	if state != "" {
		query.Set(tab, state)
	}
	if !s.live {
		query.Set("until", s.until.Format(time.RFC3339))
	}
	return paths.With(path, query)
}

// deliveries returns the list of deliveries behind a number of the overview, without tests.
func (s span) deliveries(state delivery.State) string {
	return s.list(paths.Deliveries, "state", string(state)) + "&test=no"
}

// filter returns the filter of that list.
func (s span) filter(state delivery.State) delivery.Filter {
	filter := delivery.Filter{State: state, Test: new(false), Since: s.since.Truncate(time.Minute)}
	if !s.live {
		filter.Until = s.until
	}
	return filter
}

// tabs returns the links to the ranges.
func (s span) tabs() []ui.Tab {
	tabs := make([]ui.Tab, 0, len(ranges))
	for _, one := range ranges {
		tabs = append(tabs, ui.Tab{
			Label: one.tab, Current: one.name == s.name,
			Href: s.href(url.Values{"range": {one.name}}, s.by),
		})
	}
	return tabs
}

// splits returns the links to the plots of the same period.
func (s span) splits() []ui.Tab {
	var tabs []ui.Tab
	for _, one := range []struct {
		by   health.Split
		word string
	}{{"", "By outcome"}, {health.ByEndpoint, "By endpoint"}, {health.ByError, "By error"}} {
		tabs = append(tabs, ui.Tab{
			Label: one.word, Current: one.by == s.by,
			Href: s.href(maps.Clone(s.query), one.by) + "#outcomes",
		})
	}
	return tabs
}

// href returns the address of the overview of a period, with a plot of failures.
func (s span) href(query url.Values, by health.Split) string {
	query.Del("by")
	if by != "" {
		query.Set("by", string(by))
	}
	return paths.With(paths.Home, query)
}

// hours returns the span with steps of at least an hour.
func (s span) hours() span {
	s.step = max(s.step, time.Hour)
	return s
}
