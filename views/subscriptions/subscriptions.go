// Package subscriptions renders the list of subscriptions, the page of one, and its forms.
package subscriptions

import (
	"strings"
	"time"

	"drawbridge/views/paths"
	"drawbridge/views/ui"
)

// SubscriptionRow is one subscription in a list.
type SubscriptionRow struct {
	UID     string
	Partner string
	URL     string
	State   string
	// Auth is "hmac", "bearer" or "none".
	Auth string
	// Events are the chosen kinds, or just "all".
	Events []string
	// Merchants is how many are covered, 0 for all of the partner's.
	Merchants int
	Created   time.Time
	// Health is that of the last 24 hours.
	Health HealthView
	// MayChange adds the link that pauses or resumes it.
	MayChange bool
}

func (r SubscriptionRow) events() string { return ui.EventsWord(r.Events) }

func (r SubscriptionRow) eventsTitle() string {
	return strings.Join(r.Events, ", ") + "; " + r.merchants()
}

func (r SubscriptionRow) merchants() string {
	if r.Merchants == 0 {
		return "all merchants"
	}
	return ui.Plural(r.Merchants, "merchant", "merchants")
}

// AuthWord names an authentication scheme.
func AuthWord(auth string) string {
	switch auth {
	case "hmac":
		return "HMAC"
	case "bearer":
		return "Bearer"
	}
	return "None"
}

// SubscriptionList is the page that lists subscriptions.
type SubscriptionList struct {
	ui.Frame
	// Views are filters with a name.
	Views  ui.NamedFilters
	Filter SubscriptionFilter
	// Tabs are the states to switch between, Active the other filters in force.
	Tabs   []ui.Tab
	Active []ui.ActiveFilter
	// Partners and Events are the choices of the filter form.
	Partners []ui.Option
	Events   []ui.Option
	Rows     []SubscriptionRow
	Summary  string
	Newest   string
	Older    string
	// MayChange tells that the reader may create and change subscriptions.
	MayChange bool
	// Unavailable tells that the list could not be loaded.
	Unavailable bool
}

// filtered tells whether anything narrows the list.
func (p SubscriptionList) filtered() bool { return p.Filter.State != "" || len(p.Active) > 0 }

// SubscriptionFilter is the filter as the reader typed it, with a fault for
// each value that is wrong.
type SubscriptionFilter struct {
	State   string
	Partner string
	Event   string
	Host    string
	Faults  map[string]string
}

// faults lists the wrong values in the order of the form.
func (f SubscriptionFilter) faults() []ui.FilterFault {
	var found []ui.FilterFault
	for _, name := range []string{"state", "partner", "event", "host", "cursor"} {
		if text := f.Faults[name]; text != "" {
			fault := ui.FilterFault{Text: text}
			if name != "state" && name != "cursor" {
				fault.Href = "#filter-" + name
			}
			found = append(found, fault)
		}
	}
	return found
}

// field describes a control of the filter form with its fault.
func (f SubscriptionFilter) field(name, label string) ui.FieldProps {
	return ui.FieldProps{ID: "filter-" + name, Label: label, Fault: f.Faults[name]}
}

func subscriptionTable(p SubscriptionList) ui.TableProps[SubscriptionRow] {
	return ui.TableProps[SubscriptionRow]{
		Caption: "Subscriptions, newest first",
		RowID:   func(r SubscriptionRow) string { return "s-" + r.UID },
		Href:    func(r SubscriptionRow) string { return paths.To(paths.Subscription, r.UID) },
		Rows:    p.Rows,
		Columns: []ui.Column[SubscriptionRow]{
			{Title: "State", Class: "w-state", Cell: subscriptionStateCell},
			{Title: "Endpoint", Header: true, Cell: endpointCell},
			{Title: "Partner", Class: "col-b w-place", Cell: partnerCell},
			{Title: "Events", Class: "col-b w-loan", Cell: eventsCell},
			{Title: "Success, 24 hours", Class: "col-a w-spark", Cell: sparkCell},
			{Title: "95 % within", Class: "col-c w-rate end", Cell: p95Cell},
			{Title: "Last success", Class: "col-b w-time end", Cell: lastSuccessCell},
			{Title: "Action", Class: "col-a w-id end", Cell: subscriptionActCell},
		},
	}
}

// The tabs of a subscription's page, as the address names them.
const (
	TabActivity      = "activity"
	TabConfiguration = "configuration"
	TabSecret        = "secret"
	TabHealth        = "health"
	TabVersions      = "versions"
)
