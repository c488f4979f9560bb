// Package events renders the list of events and the page of one.
package events

import (
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/application"
	"drawbridge/internal/webhook/delivery"
	"drawbridge/views/paths"
	"drawbridge/views/ui"
)

// fate summarises an event's deliveries, failures first.
func fate(of delivery.FanOut) string {
	var parts []string
	for _, part := range []struct {
		count int
		word  string
	}{
		{of.Failed, "failed"},
		{of.Open, "under way"},
		{of.Delivered, "delivered"},
		{of.MadeGood, "made good"},
		{of.Cancelled, "cancelled"},
		{of.PassedOver, "not chosen"},
	} {
		if part.count > 0 {
			parts = append(parts, ui.Number(part.count)+" "+part.word)
		}
	}
	if of.Resends > 0 {
		parts = append(parts, ui.Plural(of.Resends, "re-send", "re-sends"))
	}
	if len(parts) == 0 {
		return "no subscription"
	}
	return strings.Join(parts, ", ")
}

// Table lists events.
func Table(rows []delivery.EventRecord) ui.TableProps[delivery.EventRecord] {
	return ui.TableProps[delivery.EventRecord]{
		Caption: "Events, newest first",
		RowID:   func(e delivery.EventRecord) string { return "e-" + e.UID.String() },
		Rows:    rows,
		Columns: []ui.Column[delivery.EventRecord]{
			{Title: "Event", Header: true, Cell: kindCell},
			{Title: "Application", Class: "col-b w-id mono", Cell: applicationCell},
			{Title: "Partner", Class: "col-b w-fifth", Cell: partnerCell},
			{Title: "What became of it", Class: "col-a w-fate", Cell: fateCell},
			ui.Times("Occurred", "w-time end",
				func(e delivery.EventRecord) time.Time { return e.OccurredAt }),
		},
	}
}

// Page is the content of an event's page.
type Page struct {
	// EventDetail has a page of the ledger and the newest of the deliveries.
	delivery.EventDetail
	// Begun means that ledger lines precede these. Next is where the next ones begin, empty at
	// the end; More means that there are more deliveries.
	Begun bool
	Next  string
	More  bool
	// Application is the event's application, the zero value for a test.
	Application application.Summary
	// Targets are the subscriptions that the event can be replayed to.
	Targets []uuid.UUID
}

// href is the address of the event's page from a ledger line on.
func (p Page) href(cursor string) string {
	path := paths.To(paths.Event, p.UID.String())
	if cursor != "" {
		path = paths.Where(path, "cursor", cursor)
	}
	return path + "#ledger-title"
}

// replayable reports whether any of the shown lines can be ticked.
func (p Page) replayable() bool {
	return slices.ContainsFunc(p.Ledger, func(l delivery.LedgerLine) bool {
		return slices.Contains(p.Targets, l.SubscriptionUID)
	})
}

// deliveryTable lists the deliveries of one event, which the page names above.
func deliveryTable(rows []delivery.Delivery) ui.TableProps[delivery.Delivery] {
	table := ui.Without(ui.DeliveryTable(rows), "Event", "Application", "Took")
	table.Caption = "Deliveries of this event, newest first"
	for i, column := range table.Columns {
		if column.Title == "Destination" {
			table.Columns[i].Class, table.Columns[i].Header = "", true
			table.Columns[i].Cell = ui.EventDestinationCell
		}
	}
	return table
}
