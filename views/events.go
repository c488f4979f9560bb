package views

import (
	"strings"
	"time"
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
			parts = append(parts, Number(part.count)+" "+part.word)
		}
	}
	if f.Resends > 0 {
		parts = append(parts, Plural(f.Resends, "re-send", "re-sends"))
	}
	if len(parts) == 0 {
		return "no subscription"
	}
	return strings.Join(parts, ", ")
}

// EventList is the page that lists events.
type EventList struct {
	Frame
	// Export is the filter as the form of the file sends it.
	Export string
	// Views are filters with a name.
	Views  NamedFilters
	Filter EventFilter
	// Active are the filters in force.
	Active []ActiveFilter
	// Kinds and Partners are the choices of the filter form.
	Kinds, Partners []Option
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
func (f EventFilter) faults() []filterFault {
	var found []filterFault
	for _, name := range []string{
		"kind", "partner", "merchant", "application", "since", "until", "cursor",
	} {
		if text := f.Faults[name]; text != "" {
			fault := filterFault{text: text}
			if name != "cursor" && name != "merchant" {
				fault.href = "#filter-" + name
			}
			found = append(found, fault)
		}
	}
	return found
}

// field describes a control of the filter form with its fault.
func (p EventList) field(name, label string) FieldProps {
	return FieldProps{ID: "filter-" + name, Label: label, Fault: p.Filter.Faults[name]}
}

func eventTable(rows []EventRow) TableProps[EventRow] {
	return TableProps[EventRow]{
		Caption: "Events, newest first",
		RowID:   func(r EventRow) string { return "e-" + r.UID },
		Href:    func(r EventRow) string { return EventPath(r.UID) },
		Rows:    rows,
		Columns: []Column[EventRow]{
			{Title: "Event", Header: true, Cell: eventKindCell},
			{Title: "Application", Class: "col-b w-id", Cell: eventApplicationCell},
			{Title: "Partner", Class: "col-b w-fifth", Cell: eventPartnerCell},
			{Title: "What became of it", Class: "col-a w-fate", Cell: eventFanCell},
			{Title: "Occurred", Class: "w-time end", Cell: eventTimeCell},
		},
	}
}

// eventDeliveryTable lists the deliveries of one event, whose name stands above.
func eventDeliveryTable(rows []DeliveryRow) TableProps[DeliveryRow] {
	table := without(deliveryTable(rows), "Event", "Application", "Took")
	table.Caption = "Deliveries of this event, oldest first"
	for i, column := range table.Columns {
		if column.Title == "Destination" {
			table.Columns[i].Class, table.Columns[i].Header = "", true
			table.Columns[i].Cell = eventDestinationCell
		}
	}
	return table
}

// EventPage is the page of one event.
type EventPage struct {
	Frame
	Event EventRow
	// PartnerUID and MerchantUID are ids; a test event has no merchant.
	PartnerUID, MerchantUID string
	// Body is empty once BodyRemoved is set.
	Body        []byte
	BodyRemoved time.Time
	Ledger      []LedgerView
	Deliveries  []DeliveryRow
}

// replayable tells whether the event can be sent to a subscription that never
// got it.
func (p EventPage) replayable() bool {
	for _, line := range p.Ledger {
		if line.Replayable {
			return true
		}
	}
	return false
}

// LedgerView is the verdict for one subscription.
type LedgerView struct {
	Subscription, URL, State string
	// Verdict is the closed word of the ledger, Version the one that decided.
	Verdict string
	Version int
	// Delivery is empty without one.
	Delivery, DeliveryState string
	// Replayable tells that the subscription asks for the event today.
	Replayable bool
}

// chip is the verdict as a state.
func (v LedgerView) chip() ChipProps {
	switch {
	case v.Delivery != "":
		return DeliveryChip(v.DeliveryState)
	case v.Verdict == "not_recorded":
		return ChipProps{"circle-help", "Not recorded", Odd}
	}
	return ChipProps{"ban", "Not sent", Mute}
}

// VerdictWord says why a subscription got an event, or why not.
func VerdictWord(verdict string) string {
	switch verdict {
	case "sent":
		return "It asked for this event"
	case "paused":
		return "It is paused: the delivery waits until it is resumed"
	case "event_not_chosen":
		return "It had not chosen events of this kind"
	case "merchant_not_covered":
		return "It did not cover the merchant"
	case "deleted_earlier":
		return "It had been deleted before"
	case "created_later":
		return "It was created after the event"
	case "not_recorded":
		return "The event was recorded before reasons were kept"
	}
	return verdict
}
