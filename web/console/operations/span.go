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

// span is the time that the overview shows.
type span struct {
	since, until time.Time
	step         time.Duration
	// name is that of a range, empty for a time of the reader's own.
	name, label string
	// live tells that the time ends now, so that its numbers go on changing.
	live  bool
	query url.Values
	// by is what the plot of failures is split by, empty for the plot of outcomes.
	by health.Split
}

// ranges are the times to choose from; the second is the one without a choice.
var ranges = []struct {
	name, tab, label string
	length           time.Duration
}{
	{"1h", "1 hour", "last hour", time.Hour},
	{"24h", "24 hours", "last 24 hours", 24 * time.Hour},
	{"7d", "7 days", "last 7 days", 7 * 24 * time.Hour},
	{"30d", "30 days", "last 30 days", 30 * 24 * time.Hour},
}

// spanFilters are what the address of the overview may say of its time.
var spanFilters = []list.Filter{
	{Name: "range", Kind: list.Hidden},
	{Name: "by", Kind: list.Hidden},
	{Name: "since", Kind: list.Time},
	{Name: "until", Kind: list.Time},
}

// readSpan reads the time from the address of the overview. A wrong one is the usual
// one, with what is wrong named in the values.
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
		v.Wrong["since"] = "A time of its own needs its beginning."
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

// stepOf chooses a step that makes about a hundred bars, of those that are kept
// for a time that began that long ago.
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

// list is the list that a number of the overview is about, under the tab of a state or of any.
// The minute in which the time begins keeps a live page from changing with each look.
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

// deliveries is the list of those that a number of the overview is about, without tests.
func (s span) deliveries(state delivery.State) string {
	return s.list(paths.Deliveries, "state", string(state)) + "&test=no"
}

// filter is what that list shows.
func (s span) filter(state delivery.State) delivery.Filter {
	filter := delivery.Filter{State: state, Test: new(false), Since: s.since.Truncate(time.Minute)}
	if !s.live {
		filter.Until = s.until
	}
	return filter
}

// tabs lead to the ranges.
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

// splits lead to the plots of the same time.
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

// href is the overview of a time, with a plot of failures.
func (s span) href(query url.Values, by health.Split) string {
	query.Del("by")
	if by != "" {
		query.Set("by", string(by))
	}
	return paths.With(paths.Home, query)
}

// hours is the step of a plot of whole hours.
func (s span) hours() span {
	s.step = max(s.step, time.Hour)
	return s
}
