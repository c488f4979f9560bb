package console

import (
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"drawbridge/internal/lending"
	"drawbridge/internal/operator"
	"drawbridge/internal/postgres"
	"drawbridge/internal/webhook"
	"drawbridge/views/deliveries"
	"drawbridge/views/paths"
	"drawbridge/views/ui"
)

// localLayouts are how a time may stand in the address without a zone: it is
// then the reader's. The first is what browsers write.
var localLayouts = []string{"2006-01-02T15:04", "2006-01-02T15:04:05", "2006-01-02"}

// reader is whose address is read, and when: "today" depends on both.
type reader struct {
	now  time.Time
	zone *time.Location
	role operator.Role
}

func (c *Console) reader(ctx echo.Context) reader {
	zone, _ := c.Zone(ctx)
	return reader{now: c.DB.Now(), zone: zone, role: currentUser(ctx).Role}
}

// filterReader reads a filter and notes what is wrong with it.
type filterReader struct {
	reader
	shown deliveries.DeliveryFilter
}

// readFilter reads the filter of the delivery list from its address. Wrong
// values are left out of the filter, and named in the view's faults. Times
// without a zone come back with one, so that the address means the same to
// everybody.
func (who reader) readFilter(query url.Values) (webhook.DeliveryFilter, deliveries.DeliveryFilter) {
	r := filterReader{reader: who, shown: deliveries.DeliveryFilter{
		Values: map[string]string{}, Faults: map[string]string{}, Zone: who.zone,
	}}
	for _, name := range deliveries.DeliveryFilterNames() {
		if value := strings.TrimSpace(query.Get(name)); value != "" {
			r.shown.Values[name] = value
		}
	}
	filter := webhook.DeliveryFilter{
		State:      webhook.DeliveryState(r.oneOf("state", stateNames())),
		Event:      lending.EventKind(r.oneOf("event", eventNames())),
		ErrorClass: webhook.ErrorClass(r.oneOf("error", errorNames())),
		Test:       r.yesNo("test"), Resend: r.yesNo("resend"), Slow: r.yes("slow"),
		SubscriptionUID: r.uid("subscription"), PartnerUID: r.uid("partner"),
		MerchantUID: r.uid("merchant"), ApplicationUID: r.uid("application"),
		EventUID: r.uid("event_uid"),
		Since:    r.time("since"), Until: r.time("until"), Limit: pageSize,
	}
	filter.HTTPStatus, filter.HTTPClass = r.code()
	if from := r.rangeStart(); from.After(filter.Since) {
		filter.Since = from
	}
	if !filter.Until.IsZero() && !filter.Since.Before(filter.Until) {
		r.shown.Faults["until"] = "The end must come after the beginning."
	}
	cursor, err := postgres.ParseCursor(query.Get("cursor"))
	if err != nil {
		r.shown.Faults["cursor"] = "The page's place in the list cannot be read; " +
			"start from the newest."
	}
	filter.Cursor = cursor
	return filter, r.shown
}

// fault notes what is wrong with a value.
func (r *filterReader) fault(name, text string) { r.shown.Faults[name] = text }

// oneOf returns a value of a closed list, empty for none and for a wrong one.
func (r *filterReader) oneOf(name string, known []string) string {
	value := r.shown.Values[name]
	if value == "" || slices.Contains(known, value) {
		return value
	}
	r.fault(name, "There is no such "+name+"; choose one of the list.")
	return ""
}

func (r *filterReader) yesNo(name string) *bool {
	switch value := r.oneOf(name, []string{"yes", "no"}); value {
	case "yes", "no":
		yes := value == "yes"
		return &yes
	}
	return nil
}

func (r *filterReader) yes(name string) bool { return r.oneOf(name, []string{"yes"}) != "" }

func (r *filterReader) uid(name string) uuid.UUID {
	return readUID(r.shown.Faults, name, r.shown.Values[name])
}

// code reads a status such as 503, or a class such as 5xx.
func (r *filterReader) code() (status, class int) {
	value := strings.ToLower(r.shown.Values["code"])
	if value == "" {
		return 0, 0
	}
	digits, isClass := strings.CutSuffix(value, "xx")
	number, err := strconv.Atoi(digits)
	switch {
	case err == nil && isClass && number >= 1 && number <= 9:
		return 0, number
	case err == nil && !isClass && number >= 100 && number <= 999:
		return number, 0
	}
	r.fault("code", "This is not an HTTP status; write one such as 503, or a class such as 5xx.")
	return 0, 0
}

// time reads a moment. One without a zone is the reader's, and gets it.
func (r *filterReader) time(name string) time.Time {
	text := r.shown.Values[name]
	if text == "" {
		return time.Time{}
	}
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return at.UTC()
	}
	for _, layout := range localLayouts {
		if at, err := time.ParseInLocation(layout, text, r.zone); err == nil {
			r.shown.Values[name] = at.Format(time.RFC3339)
			return at.UTC()
		}
	}
	r.fault(name, "This is not a time; write it as 2026-11-21T09:30.")
	return time.Time{}
}

// rangeStart reads a time range that ends now.
func (r *filterReader) rangeStart() time.Time {
	now := r.now.In(r.zone)
	switch value := r.oneOf("range", rangeNames()); value {
	case "":
		return time.Time{}
	case "today":
		return time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, r.zone).UTC()
	default:
		return r.now.Add(-rangeLengths[value]).UTC()
	}
}

// rangeLengths are the time ranges that end now.
var rangeLengths = map[string]time.Duration{
	"1h": time.Hour, "24h": 24 * time.Hour, "7d": 7 * 24 * time.Hour, "30d": 30 * 24 * time.Hour,
}

func rangeNames() []string {
	return append([]string{"today"}, slices.Sorted(maps.Keys(rangeLengths))...)
}

func stateNames() []string {
	var names []string
	for _, state := range webhook.DeliveryStates() {
		names = append(names, string(state))
	}
	return names
}

func eventNames() []string {
	var names []string
	for _, kind := range lending.AllEventKinds() {
		names = append(names, string(kind))
	}
	return names
}

func errorNames() []string {
	var names []string
	for _, class := range webhook.ErrorClasses() {
		names = append(names, string(class))
	}
	return names
}

func readUID(faults map[string]string, name, text string) uuid.UUID {
	if text == "" {
		return uuid.Nil
	}
	uid, err := uuid.Parse(text)
	if err != nil || len(text) != 36 {
		faults[name] = "This is not an id; ids look like 0199a6b2-7c1e-7d35-9a44-3f0c51b8e6d2."
		return uuid.Nil
	}
	return uid
}

// filterQuery writes a filter as the query of an address, the inverse of
// readFilter; what was wrong is kept, so that it can be mended.
func filterQuery(shown deliveries.DeliveryFilter) url.Values {
	query := url.Values{}
	for name, value := range shown.Values {
		query.Set(name, value)
	}
	return query
}

// with returns a copy of the query with one parameter changed, or without it
// when the value is empty.
func with(query url.Values, name, value string) url.Values {
	changed := maps.Clone(query)
	changed.Del(name)
	if value != "" {
		changed.Set(name, value)
	}
	return changed
}

// stateTabs are the views of the list by state, what needs a human first.
func stateTabs(shown deliveries.DeliveryFilter) []ui.Tab {
	query, state := filterQuery(shown), shown.Values["state"]
	tabs := []ui.Tab{{
		Label: "All", Href: paths.With(paths.Deliveries, with(query, "state", "")), Current: state == "",
	}}
	for _, each := range []webhook.DeliveryState{
		webhook.DeliveryFailed, webhook.DeliveryRetrying, webhook.DeliveryPending,
		webhook.DeliveryDelivered, webhook.DeliveryCancelled,
	} {
		tabs = append(tabs, ui.Tab{
			Label:   ui.DeliveryChip(string(each)).Word,
			Href:    paths.With(paths.Deliveries, with(query, "state", string(each))),
			Current: state == string(each),
		})
	}
	return tabs
}

// filterLabels name the filters in the order of their chips; the state has tabs.
var filterLabels = []struct{ name, label string }{
	{"range", "Range"},
	{"event", "Event"},
	{"partner", "Partner"},
	{"merchant", "Merchant"},
	{"subscription", "Subscription"},
	{"application", "Application"},
	{"event_uid", "Event id"},
	{"code", "Answer"},
	{"error", "Error"},
	{"test", "Test events"},
	{"resend", "Re-sends"},
	{"slow", "Slow"},
	{"since", "From"},
	{"until", "To"},
}

// activeFilters are the filters in force besides the state, each with the
// address of the list without it.
func activeFilters(
	shown deliveries.DeliveryFilter, choices map[string][]ui.Option,
) []ui.ActiveFilter {
	query := filterQuery(shown)
	var active []ui.ActiveFilter
	for _, filter := range filterLabels {
		value := shown.Values[filter.name]
		if value == "" {
			continue
		}
		for _, option := range choices[filter.name] {
			if option.Value == value {
				value = option.Label
			}
		}
		if filter.name == "since" || filter.name == "until" {
			value = strings.Replace(shown.Local(filter.name), "T", " ", 1)
		}
		active = append(active, ui.ActiveFilter{
			Label: filter.label + ": " + value,
			Href:  paths.With(paths.Deliveries, with(query, filter.name, "")),
		})
	}
	return active
}

// moment reads a time of the reader's zone as the delivery list does. It comes
// back with its zone for the address, and without one for the form.
func (who reader) moment(
	faults map[string]string, name string, query url.Values,
) (at time.Time, text, local string) {
	r := filterReader{reader: who, shown: deliveries.DeliveryFilter{
		Values: map[string]string{name: query.Get(name)}, Faults: faults, Zone: who.zone,
	}}
	at = r.time(name)
	return at, r.shown.Values[name], r.shown.Local(name)
}
