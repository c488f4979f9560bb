// Package events renders the list of events and the page of one.
package events

import (
	"strings"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/webhook"
	"drawbridge/views/paths"
	"drawbridge/views/ui"
)

// EventRow is one event in a list.
type EventRow struct {
	UID, Kind, Status string
	// Application is empty for a test event.
	Application string
	// Partner and Merchant are names; a test event has no merchant.
	Partner, Merchant string
	Test              bool
	Occurred          time.Time
	Fan               FanView
}

// Label names an event: what, and whose.
func (r EventRow) Label() string { return r.Kind + " for " + r.Partner }

// FanView counts what became of an event.
type FanView struct {
	Delivered, Failed, Open, Cancelled, PassedOver, Resends int
}

// words says what became of the event, what went wrong first.
func (f FanView) words() string {
	var parts []string
	for _, part := range []struct {
		count int
		word  string
	}{
		{f.Failed, "failed"},
		{f.Open, "under way"},
		{f.Delivered, "delivered"},
		{f.Cancelled, "cancelled"},
		{f.PassedOver, "not chosen"},
	} {
		if part.count > 0 {
			parts = append(parts, ui.Number(part.count)+" "+part.word)
		}
	}
	if f.Resends > 0 {
		parts = append(parts, ui.Plural(f.Resends, "re-send", "re-sends"))
	}
	if len(parts) == 0 {
		return "no subscription"
	}
	return strings.Join(parts, ", ")
}

// EventList is the page that lists events.
type EventList struct {
	ui.Frame
	// Export is the filter as the form of the file sends it.
	Export string
	// Views are filters with a name.
	Views  ui.NamedFilters
	Filter EventFilter
	// Active are the filters in force.
	Active []ui.ActiveFilter
	// Kinds and Partners are the choices of the filter form.
	Kinds, Partners []ui.Option
	Rows            []EventRow
	Summary         string
	// Newest and Older are neighbouring pages, empty where there is none.
	Newest, Older string
}

// EventFilter is the filter as the reader typed it, with a fault for each value
// that is wrong.
type EventFilter struct {
	Kind, Partner, Merchant, Application, Since, Until string

	Faults map[string]string
}

// faults lists the wrong values in the order of the form.
func (f EventFilter) faults() []ui.FilterFault {
	var found []ui.FilterFault
	for _, name := range []string{
		"kind", "partner", "merchant", "application", "since", "until", "cursor",
	} {
		if text := f.Faults[name]; text != "" {
			fault := ui.FilterFault{Text: text}
			if name != "cursor" && name != "merchant" {
				fault.Href = "#filter-" + name
			}
			found = append(found, fault)
		}
	}
	return found
}

// field describes a control of the filter form with its fault.
func (p EventList) field(name, label string) ui.FieldProps {
	return ui.FieldProps{ID: "filter-" + name, Label: label, Fault: p.Filter.Faults[name]}
}

func eventTable(rows []EventRow) ui.TableProps[EventRow] {
	return ui.TableProps[EventRow]{
		Caption: "Events, newest first",
		RowID:   func(r EventRow) string { return "e-" + r.UID },
		Href:    func(r EventRow) string { return paths.To(paths.Event, r.UID) },
		Rows:    rows,
		Columns: []ui.Column[EventRow]{
			{Title: "Event", Header: true, Cell: eventKindCell},
			{Title: "Application", Class: "col-b w-id", Cell: eventApplicationCell},
			{Title: "Partner", Class: "col-b w-fifth", Cell: eventPartnerCell},
			{Title: "What became of it", Class: "col-a w-fate", Cell: eventFanCell},
			{Title: "Occurred", Class: "w-time end", Cell: eventTimeCell},
		},
	}
}

// eventDeliveryTable lists the deliveries of one event, whose name stands above.
func eventDeliveryTable(rows []ui.DeliveryRow) ui.TableProps[ui.DeliveryRow] {
	table := ui.Without(ui.DeliveryTable(rows), "Event", "Application", "Took")
	table.Caption = "Deliveries of this event, oldest first"
	for i, column := range table.Columns {
		if column.Title == "Destination" {
			table.Columns[i].Class, table.Columns[i].Header = "", true
			table.Columns[i].Cell = ui.EventDestinationCell
		}
	}
	return table
}

// EventPage is the page of one event.
type EventPage struct {
	ui.Frame
	Event EventRow
	// PartnerUID and MerchantUID are ids; a test event has no merchant.
	PartnerUID, MerchantUID string
	// Body is empty once BodyRemoved is set.
	Body        []byte
	BodyRemoved time.Time
	Ledger      []webhook.LedgerLine
	// Targets are the subscriptions that it can be replayed to.
	Targets    []uuid.UUID
	Deliveries []ui.DeliveryRow
}
