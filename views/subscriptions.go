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
}

func (r SubscriptionRow) events() string {
	if len(r.Events) == 1 {
		if r.Events[0] == "all" {
			return "All events"
		}
		return r.Events[0]
	}
	return plural(len(r.Events), "event", "events")
}

func (r SubscriptionRow) eventsTitle() string { return strings.Join(r.Events, ", ") }

func (r SubscriptionRow) merchants() string {
	if r.Merchants == 0 {
		return "All merchants"
	}
	return plural(r.Merchants, "merchant", "merchants")
}

func (r SubscriptionRow) auth() string {
	switch r.Auth {
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
	Rows    []SubscriptionRow
	Summary string
	Newest  string
	Older   string
	// Unavailable tells that the list could not be loaded.
	Unavailable bool
}

func subscriptionTable(rows []SubscriptionRow) TableProps[SubscriptionRow] {
	return TableProps[SubscriptionRow]{
		Caption: "Subscriptions, newest first",
		RowID:   func(r SubscriptionRow) string { return "s-" + r.UID },
		Href:    func(r SubscriptionRow) string { return DeliveriesOf("subscription", r.UID) },
		Rows:    rows,
		Columns: []Column[SubscriptionRow]{
			{Title: "State", Class: "w-state", Cell: subscriptionStateCell},
			{Title: "Endpoint", Header: true, Cell: endpointCell},
			{Title: "Partner", Class: "col-b w-place", Cell: partnerCell},
			{Title: "Events", Class: "col-b w-result", Cell: eventsCell},
			{Title: "Covers", Class: "col-b w-id", Cell: coversCell},
			{Title: "Authentication", Class: "col-c w-id", Cell: authCell},
			{Title: "Created", Class: "w-time end", Cell: subscriptionCreatedCell},
		},
	}
}
