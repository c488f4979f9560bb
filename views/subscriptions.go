package views

import (
	"strings"
	"time"
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

func (r SubscriptionRow) events() string {
	if len(r.Events) == 1 {
		if r.Events[0] == "all" {
			return "All events"
		}
		return r.Events[0]
	}
	return Plural(len(r.Events), "event", "events")
}

func (r SubscriptionRow) eventsTitle() string {
	return strings.Join(r.Events, ", ") + "; " + r.merchants()
}

func (r SubscriptionRow) merchants() string {
	if r.Merchants == 0 {
		return "all merchants"
	}
	return Plural(r.Merchants, "merchant", "merchants")
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
	Frame
	// Views are filters with a name.
	Views  NamedFilters
	Filter SubscriptionFilter
	// Tabs are the states to switch between, Active the other filters in force.
	Tabs   []Tab
	Active []ActiveFilter
	// Partners and Events are the choices of the filter form.
	Partners []Option
	Events   []Option
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
func (f SubscriptionFilter) faults() []filterFault {
	var found []filterFault
	for _, name := range []string{"state", "partner", "event", "host", "cursor"} {
		if text := f.Faults[name]; text != "" {
			fault := filterFault{text: text}
			if name != "state" && name != "cursor" {
				fault.href = "#filter-" + name
			}
			found = append(found, fault)
		}
	}
	return found
}

// field describes a control of the filter form with its fault.
func (f SubscriptionFilter) field(name, label string) FieldProps {
	return FieldProps{ID: "filter-" + name, Label: label, Fault: f.Faults[name]}
}

func subscriptionTable(p SubscriptionList) TableProps[SubscriptionRow] {
	return TableProps[SubscriptionRow]{
		Caption: "Subscriptions, newest first",
		RowID:   func(r SubscriptionRow) string { return "s-" + r.UID },
		Href:    func(r SubscriptionRow) string { return SubscriptionPath(r.UID) },
		Rows:    p.Rows,
		Columns: []Column[SubscriptionRow]{
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
