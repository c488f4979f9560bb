package console

import (
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
	"drawbridge/internal/webhook"
	"drawbridge/views"
)

// timeLayouts are how a time may stand in the address, in UTC; the first is
// what browsers write.
var timeLayouts = []string{"2006-01-02T15:04", "2006-01-02T15:04:05", time.RFC3339, "2006-01-02"}

// readFilter reads the filter of the delivery list from its address. Wrong
// values are left out of the filter, and named in the view's faults.
func readFilter(query url.Values) (webhook.DeliveryFilter, views.DeliveryFilter) {
	shown := views.DeliveryFilter{
		State: query.Get("state"), Event: query.Get("event"),
		Subscription: query.Get("subscription"),
		Application:  strings.TrimSpace(query.Get("application")),
		Since:        query.Get("since"), Until: query.Get("until"), Faults: map[string]string{},
	}
	filter := webhook.DeliveryFilter{
		State:           webhook.DeliveryState(shown.State),
		Event:           lending.EventKind(shown.Event),
		SubscriptionUID: readUID(shown.Faults, "subscription", shown.Subscription),
		ApplicationUID:  readUID(shown.Faults, "application", shown.Application),
		Since:           readTime(shown.Faults, "since", shown.Since),
		Until:           readTime(shown.Faults, "until", shown.Until),
		Limit:           pageSize,
	}
	if filter.State != "" && !slices.Contains(webhook.DeliveryStates(), filter.State) {
		shown.Faults["state"] = "There is no such state; choose one above."
		filter.State = ""
	}
	if filter.Event != "" && !filter.Event.IsKnown() {
		shown.Faults["event"] = "There is no such event; choose one of the list."
		filter.Event = ""
	}
	if !filter.Until.IsZero() && !filter.Since.Before(filter.Until) {
		shown.Faults["until"] = "The end must come after the beginning."
	}
	cursor, err := postgres.ParseCursor(query.Get("cursor"))
	if err != nil {
		shown.Faults["cursor"] = "The page's place in the list cannot be read; start from the newest."
	}
	filter.Cursor = cursor
	return filter, shown
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

func readTime(faults map[string]string, name, text string) time.Time {
	if text == "" {
		return time.Time{}
	}
	for _, layout := range timeLayouts {
		if at, err := time.Parse(layout, text); err == nil {
			return at.UTC()
		}
	}
	faults[name] = "This is not a time; write it as 2026-11-21T09:30, in UTC."
	return time.Time{}
}

// filterQuery writes a filter as the query of an address, the inverse of
// readFilter; what was wrong is kept, so that it can be mended.
func filterQuery(shown views.DeliveryFilter) url.Values {
	query := url.Values{}
	for name, value := range map[string]string{
		"state": shown.State, "event": shown.Event, "subscription": shown.Subscription,
		"application": shown.Application, "since": shown.Since, "until": shown.Until,
	} {
		if value != "" {
			query.Set(name, value)
		}
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
func stateTabs(shown views.DeliveryFilter) []views.Tab {
	query := filterQuery(shown)
	tabs := []views.Tab{{
		Label: "All", Href: views.DeliveriesPath(with(query, "state", "")), Current: shown.State == "",
	}}
	for _, state := range []webhook.DeliveryState{
		webhook.DeliveryFailed, webhook.DeliveryRetrying, webhook.DeliveryPending,
		webhook.DeliveryDelivered, webhook.DeliveryCancelled,
	} {
		tabs = append(tabs, views.Tab{
			Label:   views.DeliveryChip(string(state)).Word,
			Href:    views.DeliveriesPath(with(query, "state", string(state))),
			Current: shown.State == string(state),
		})
	}
	return tabs
}

// activeFilters are the filters in force besides the state, each with the
// address of the list without it.
func activeFilters(shown views.DeliveryFilter, subscriptions []views.Option) []views.ActiveFilter {
	query := filterQuery(shown)
	var active []views.ActiveFilter
	add := func(name, label, value string) {
		if value != "" {
			active = append(active, views.ActiveFilter{
				Label: label + " " + value, Href: views.DeliveriesPath(with(query, name, "")),
			})
		}
	}
	subscription := shown.Subscription
	for _, option := range subscriptions {
		if option.Value == shown.Subscription && subscription != "" {
			subscription = option.Label
		}
	}
	add("event", "Event", shown.Event)
	add("subscription", "Subscription", subscription)
	add("application", "Application", shown.Application)
	add("since", "From", strings.Replace(shown.Since, "T", " ", 1))
	add("until", "To", strings.Replace(shown.Until, "T", " ", 1))
	return active
}

// eventOptions are the choices of the filter form.
func eventOptions() []views.Option {
	options := []views.Option{{Label: "All events"}}
	for _, kind := range lending.AllEventKinds() {
		options = append(options, views.Option{Value: string(kind), Label: string(kind)})
	}
	return options
}
