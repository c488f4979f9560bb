package views

import (
	"fmt"
	"slices"
	"time"
)

// MaxAttempts is how often one delivery is tried (specification section 6.1).
const MaxAttempts = 3

// DeliveryRow is one delivery in a list.
type DeliveryRow struct {
	UID string
	// Event is the kind, Status the status its payload carries.
	Event  string
	Status string
	// Application is empty for a test event.
	Application  string
	Subscription string
	Partner      string
	// URL is where the delivery goes.
	URL   string
	State string
	// Attempts counts those that began, 0 to MaxAttempts.
	Attempts int
	// HTTPStatus and ErrorClass are the last attempt's; zero and empty before
	// the first, and where there was no answer or no error.
	HTTPStatus int
	ErrorClass string
	// Duration is the last attempt's.
	Duration time.Duration
	// NextAttempt is zero when none is due.
	NextAttempt time.Time
	Created     time.Time
	// Resend tells that an operator asked for this delivery.
	Resend bool
	Test   bool
}

// Label names a delivery: what, and to whom.
func (r DeliveryRow) Label() string { return r.Event + " to " + r.Partner }

// result names the last attempt's outcome in a word or two.
func (r DeliveryRow) result() string {
	if r.Attempts == 0 {
		return ""
	}
	return OutcomeWord(r.HTTPStatus, r.ErrorClass)
}

// resultPart is the result as the end of a row's second line.
func (r DeliveryRow) resultPart() string {
	if result := r.result(); result != "" {
		return " · " + result
	}
	return ""
}

// OutcomeWord names the outcome of an attempt: "HTTP 503", "Timed out".
func OutcomeWord(status int, class string) string {
	switch class {
	case "":
		if status == 0 {
			return "Under way"
		}
	case "dns":
		return "Name not found"
	case "connect":
		return "No connection"
	case "tls":
		return "TLS failed"
	case "timeout":
		return "Timed out"
	case "blocked_address":
		return "Address blocked"
	case "protocol":
		return "Broken answer"
	case "unknown":
		return "Outcome unknown"
	}
	return fmt.Sprintf("HTTP %d", status)
}

// pip is one attempt in the small meter of a row.
type pip struct {
	class string
	// x is the centre on the meter, in its units.
	x int
}

// pips draws the attempts made and those still open.
func (r DeliveryRow) pips() []pip {
	made := "pip pip-bad"
	if r.ErrorClass == "unknown" {
		made = "pip pip-odd"
	}
	if r.State == StateCancelled {
		made = "pip pip-mute"
	}
	drawn := make([]pip, MaxAttempts)
	for i := range drawn {
		class := "pip"
		switch {
		case i == r.Attempts-1 && r.State == StateDelivered:
			class = "pip pip-good"
		case i < r.Attempts:
			class = made
		case i == r.Attempts && !r.NextAttempt.IsZero():
			class = "pip pip-calm"
		}
		drawn[i] = pip{class, 5 + 12*i}
	}
	return drawn
}

// DeliveryList is the page that lists deliveries.
type DeliveryList struct {
	Frame
	Filter DeliveryFilter
	// Tabs are the states to switch between, Active the other filters in force.
	Tabs   []Tab
	Active []ActiveFilter
	// Views are filters with a name, the reader's own among them.
	Views NamedFilters
	// Choices are what the lists of the filter form offer, by parameter.
	Choices map[string][]Option
	Rows    []DeliveryRow
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
	return Plural(p.News, "new delivery", "new deliveries")
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

// filterFault is a wrong value of the filter, and the field to mend it in.
type filterFault struct {
	href string
	text string
}

// faults lists the wrong values in the order of the form.
func (f DeliveryFilter) faults() []filterFault {
	var found []filterFault
	for _, name := range append(DeliveryFilterNames(), "cursor") {
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

// Tab is one of several views of a list.
type Tab struct {
	Label   string
	Href    string
	Current bool
}

// ActiveFilter is a filter in force and the address without it.
type ActiveFilter struct {
	Label string
	Href  string
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
	return OutcomeWord(0, class)
}

// pickTable is deliveryTable with rows to select.
func pickTable(rows []DeliveryRow) TableProps[DeliveryRow] {
	table := deliveryTable(rows)
	pick := Column[DeliveryRow]{Title: "Select", Class: "w-pick", Cell: pickCell}
	table.Columns = append([]Column[DeliveryRow]{pick}, table.Columns...)
	return table
}

// without leaves columns out where what they say is said above the table.
func without[T any](table TableProps[T], titles ...string) TableProps[T] {
	table.Columns = slices.DeleteFunc(table.Columns, func(c Column[T]) bool {
		return slices.Contains(titles, c.Title)
	})
	return table
}

func deliveryTable(rows []DeliveryRow) TableProps[DeliveryRow] {
	return TableProps[DeliveryRow]{
		Caption: "Deliveries, newest first",
		RowID:   func(r DeliveryRow) string { return "d-" + r.UID },
		Href:    func(r DeliveryRow) string { return DeliveryPath(r.UID) },
		Rows:    rows,
		Columns: []Column[DeliveryRow]{
			{Title: "State", Class: "w-state", Cell: stateCell},
			{Title: "Event", Header: true, Cell: eventCell},
			{Title: "Application", Class: "col-b w-id", Cell: applicationCell},
			{Title: "Destination", Class: "col-b w-dest", Cell: destinationCell},
			{Title: "Attempts", Class: "col-a w-pips", Cell: attemptsCell},
			{Title: "Result", Class: "col-b w-result", Cell: resultCell},
			{Title: "Took", Class: "col-c w-short end", Cell: tookCell},
			{Title: "Created", Class: "w-time end", Cell: createdCell},
		},
	}
}
