// Package deliveries renders the delivery log, the page of a delivery, and
// what is done to deliveries.
package deliveries

import (
	"time"

	"drawbridge/views/ui"
)

// DeliveryList is the page that lists deliveries.
type DeliveryList struct {
	ui.Frame
	Filter DeliveryFilter
	// Tabs are the states to switch between, Active the other filters in force.
	Tabs   []ui.Tab
	Active []ui.ActiveFilter
	// Views are filters with a name, the reader's own among them.
	Views ui.NamedFilters
	// Choices are what the lists of the filter form offer, by parameter.
	Choices map[string][]ui.Option
	Rows    []ui.DeliveryRow
	// Summary counts the filtered set: "1,204 deliveries", "10,000+ deliveries".
	Summary string
	// Query is the filter as in an address, without the place in the list.
	Query string
	// Newest and Older are neighbouring pages, empty where there is none.
	Newest string
	Older  string
	// News is how many deliveries came since the first row; NewsHref shows them.
	News     int
	NewsHref string
	// StreamURL brings the region up to date while the page is read, PollURL
	// does where streams fail. Both keep to the rows that are shown, except in
	// the tail, which shows what is new at once; TailHref leads there and back.
	StreamURL string
	PollURL   string
	Tail      bool
	TailHref  string
	// MayCancel tells whether the reader may cancel what waits.
	MayCancel bool
	// Unavailable tells that the list could not be loaded.
	Unavailable bool
}

// filtered tells whether anything narrows the list.
func (p DeliveryList) filtered() bool { return len(p.Filter.Values) > 0 }

// news words the button that shows what came in.
func (p DeliveryList) news() string {
	if p.News > 99 {
		return "99+ new deliveries"
	}
	return ui.Plural(p.News, "new delivery", "new deliveries")
}

// DeliveryFilterNames are the parameters of the list's address, in the order of
// the form.
func DeliveryFilterNames() []string {
	return []string{
		"state", "event", "partner", "merchant", "subscription", "application", "event_uid",
		"code", "error", "test", "resend", "slow", "range", "since", "until",
	}
}

// DeliveryFilter is the filter as the reader typed it, by parameter, with a
// fault for each value that is wrong.
type DeliveryFilter struct {
	Values map[string]string
	Faults map[string]string
	// Zone is the reader's, which times are shown in.
	Zone *time.Location
}

// Local writes a time of the filter as a control of the reader's zone has it,
// and as it is when it cannot be read.
func (f DeliveryFilter) Local(name string) string {
	at, err := time.Parse(time.RFC3339, f.Values[name])
	if err != nil || f.Zone == nil {
		return f.Values[name]
	}
	at = at.In(f.Zone)
	if at.Second() != 0 {
		return at.Format("2006-01-02T15:04:05")
	}
	return at.Format("2006-01-02T15:04")
}

// zone names the reader's zone for the labels of times.
func (f DeliveryFilter) zone() string {
	if f.Zone == nil {
		return "UTC"
	}
	return f.Zone.String()
}

// faults lists the wrong values in the order of the form.
func (f DeliveryFilter) faults() []ui.FilterFault {
	var found []ui.FilterFault
	for _, name := range append(DeliveryFilterNames(), "cursor") {
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

// ErrorClassWord names an error class for people.
func ErrorClassWord(class string) string {
	switch class {
	case "http_3xx":
		return "Redirected (3xx)"
	case "http_4xx":
		return "Refused (4xx)"
	case "http_5xx":
		return "Server error (5xx)"
	}
	return ui.OutcomeWord(0, class)
}

// pickTable is deliveryTable with rows to select.
func pickTable(rows []ui.DeliveryRow) ui.TableProps[ui.DeliveryRow] {
	table := ui.DeliveryTable(rows)
	pick := ui.Column[ui.DeliveryRow]{Title: "Select", Class: "w-pick", Cell: pickCell}
	table.Columns = append([]ui.Column[ui.DeliveryRow]{pick}, table.Columns...)
	return table
}
