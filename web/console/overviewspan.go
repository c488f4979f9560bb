package console

import (
	"net/url"
	"time"

	"drawbridge/internal/webhook"
	"drawbridge/views/paths"
	"drawbridge/views/ui"
)

// span is the time that the overview shows.
type span struct {
	since, until time.Time
	step         time.Duration
	// name is that of a range, empty for a time of the reader's own.
	name, label string
	// live tells that the time ends now, so that its numbers go on changing.
	live                   bool
	query                  url.Values
	sinceLocal, untilLocal string
	faults                 map[string]string
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

// readSpan reads the time from the address of the overview. A wrong one is the
// usual one, with what is wrong named in the faults.
func (who reader) readSpan(query url.Values) span {
	faults := map[string]string{}
	since, sinceText, sinceLocal := who.moment(faults, "since", query)
	until, untilText, untilLocal := who.moment(faults, "until", query)
	own := !since.IsZero() || !until.IsZero()
	now := who.now.UTC()
	if own && until.IsZero() || until.After(now) {
		until = now
	}
	switch {
	case !own:
	case since.IsZero():
		faults["since"] = "A time of its own needs its beginning."
	case !since.Before(until):
		faults["until"] = "The end must come after the beginning."
	case now.Sub(since) > webhook.HoursKept:
		faults["since"] = "Numbers are kept for 400 days."
	}
	if !own || len(faults) > 0 {
		chosen := who.rangeOf(query.Get("range"))
		chosen.faults, chosen.sinceLocal, chosen.untilLocal = faults, sinceLocal, untilLocal
		return chosen
	}
	chosen := span{
		since: since, until: until, live: untilText == "", label: "the time chosen",
		sinceLocal: sinceLocal, untilLocal: untilLocal, faults: faults,
		query: url.Values{"since": {sinceText}},
	}
	if untilText != "" {
		chosen.query.Set("until", untilText)
	}
	chosen.step = stepOf(until.Sub(since), now.Sub(since))
	return chosen
}

// rangeOf is one of the ranges by its name; the usual one for any other.
func (who reader) rangeOf(name string) span {
	found := ranges[1]
	for _, one := range ranges {
		if one.name == name {
			found = one
		}
	}
	now := who.now.UTC()
	return span{
		since: now.Add(-found.length), until: now, name: found.name, label: found.label,
		live: true, step: stepOf(found.length, found.length),
		query: url.Values{"range": {found.name}},
	}
}

// stepOf chooses a step that makes about a hundred bars, of those that are kept
// for a time that began that long ago.
func stepOf(length, ago time.Duration) time.Duration {
	switch {
	case length <= 3*time.Hour && ago < webhook.TrafficKept:
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

// deliveries is the list that a number of the overview is about.
func (s span) deliveries(state webhook.DeliveryState) string {
	query := url.Values{"since": {s.since.Truncate(time.Minute).Format(time.RFC3339)}}
	if state != "" {
		query.Set("state", string(state))
	}
	if !s.live {
		query.Set("until", s.until.Format(time.RFC3339))
	}
	return paths.With(paths.Deliveries, query)
}

func rangeTabs(chosen span) []ui.Tab {
	tabs := make([]ui.Tab, 0, len(ranges))
	for _, one := range ranges {
		tabs = append(tabs, ui.Tab{
			Label: one.tab, Current: one.name == chosen.name,
			Href: paths.Home + "?range=" + one.name,
		})
	}
	return tabs
}
