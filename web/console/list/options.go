package list

import (
	"cmp"
	"context"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/application"
	"drawbridge/internal/lending"
	"drawbridge/internal/search"
	"drawbridge/views/ui"
)

// The filters that many lists share.
var (
	Partner = Filter{
		Name: "partner", Label: "Partner", Kind: Choice,
		Pick: search.Partner, Options: Any("All partners"),
	}
	Merchant = Filter{
		Name: "merchant", Label: "Merchant", Kind: Choice,
		Pick: search.Merchant, Options: Any("All merchants"),
	}
	Product = Filter{
		Name: "product", Label: "Product", Kind: Choice,
		Pick: search.Product, Options: Any("All products"),
	}
	Subscription = Filter{
		Name: "subscription", Label: "Subscription", Kind: Choice,
		Pick: search.Subscription, Options: Any("All subscriptions"),
	}
)

// The filters of a time, which Values.Span reads: a range that ends now, or from and to.
var (
	Range = Filter{
		Name: "range", Label: "Time range", Chip: "Range", Kind: Choice,
		Options: []ui.Option{
			{Label: "All time"},
			{Value: "1h", Label: "Last hour"},
			{Value: "today", Label: "Today"},
			{Value: "24h", Label: "Last 24 hours"},
			{Value: "7d", Label: "Last 7 days"},
			{Value: "30d", Label: "Last 30 days"},
		},
	}
	Since = Filter{Name: "since", Label: "From", Kind: Time}
	Until = Filter{Name: "until", Label: "To", Kind: Time}
)

// rangeStart returns the start of the chosen range, the zero time for all time.
func (v *Values) rangeStart() time.Time {
	var known []string
	for _, option := range Range.Options[1:] {
		known = append(known, option.Value)
	}
	now, day := v.Now.In(v.Zone), 24*time.Hour
	return map[string]time.Time{
		"today": time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, v.Zone),
		"1h":    now.Add(-time.Hour), "24h": now.Add(-day), "7d": now.Add(-7 * day),
		"30d": now.Add(-30 * day),
	}[OneOf(v, Range.Name, known)]
}

// ApplicationWord returns the name of the filter's application, or its id if there is none.
func ApplicationWord(
	applications *application.Service,
) func(ctx context.Context, value string) (string, error) {
	return func(ctx context.Context, value string) (string, error) {
		uid, err := uuid.Parse(value)
		if err != nil {
			return value, nil //nolint:nilerr // the filter says that it is no id
		}
		found, err := applications.Summary(ctx, uid)
		if lending.ErrorCode(err) == lending.CodeNotFound {
			return value, nil
		}
		return ui.ApplicationLabel(found), err
	}
}

// Choose returns a filter by one of the options.
func Choose(name, label string, options []ui.Option) Filter {
	return Filter{Name: name, Label: label, Kind: Choice, Options: options}
}

// Either returns a filter for Values.YesNo: without the named rows, or only those.
func Either(name, label, both string) Filter {
	return Choose(name, label, append(
		Any(both), ui.Option{Value: "no", Label: "without"}, ui.Option{Value: "yes", Label: "only"}))
}

// Only returns a filter for Values.Is: off or on, with a word for each.
func Only(name, label, off, on string) Filter {
	return Choose(name, label, append(Any(off), ui.Option{Value: "yes", Label: on}))
}

// Called returns the filter with another prefix for its chip.
func (f Filter) Called(chip string) Filter {
	f.Chip = chip
	return f
}

// Colons returns the filters with a colon after the first word of each chip.
func Colons(filters ...Filter) []Filter {
	for i, filter := range filters {
		filters[i].Chip = cmp.Or(filter.Chip, filter.Label) + ": "
	}
	return filters
}

// Options returns an option per value after one for any; with a nil word the value is the label.
func Options[T ~string](first string, values []T, word func(T) string) []ui.Option {
	options := Any(first)
	for _, value := range values {
		label := string(value)
		if word != nil {
			label = word(value)
		}
		options = append(options, ui.Option{Value: string(value), Label: label})
	}
	return options
}

// Any returns the option that selects any value.
func Any(label string) []ui.Option { return []ui.Option{{Label: label}} }

// EventKinds returns the options for kinds of events.
func EventKinds() []ui.Option { return ui.EventOptions("All events") }
