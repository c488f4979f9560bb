package partners

import (
	"fmt"
	"strings"
	"time"

	"drawbridge/views/paths"
	"drawbridge/views/ui"
)

// RequestFilterNames are the parameters of the log's filter, in the order of the
// form.
func RequestFilterNames() []string {
	return []string{
		"outcome", "code", "method", "route", "partner", "merchant", "client", "application",
		"request", "key", "since", "until",
	}
}

// RequestFilter is the filter as the reader typed it, with a fault for each value
// that is wrong.
type RequestFilter struct {
	// Values holds what stands in the address, by parameter.
	Values map[string]string
	// Local holds the times for the form, in the reader's zone.
	Local  map[string]string
	Faults map[string]string
}

func (f RequestFilter) field(name, label string) ui.FieldProps {
	return ui.FieldProps{ID: "filter-" + name, Label: label, Fault: f.Faults[name]}
}

func (f RequestFilter) faults() []ui.FilterFault {
	var found []ui.FilterFault
	for _, name := range append(RequestFilterNames(), "cursor") {
		if text := f.Faults[name]; text != "" {
			fault := ui.FilterFault{Text: text}
			if name != "cursor" && name != "outcome" && name != "route" {
				fault.Href = "#filter-" + name
			}
			found = append(found, fault)
		}
	}
	return found
}

// RequestRow is one request in the log.
type RequestRow struct {
	UID, RequestID      string
	At                  time.Time
	Method, Path, Route string
	Status              int
	Code                string
	Fields              []string
	Client              string
	Authenticated       bool
	Partner, PartnerUID string
	Merchant            string
	MerchantUID         string
	Application         string
	Key                 string
	Replayed            bool
	Duration            time.Duration
	BytesIn, BytesOut   int64
	Address, UserAgent  string
}

// RequestChip describes the answer to a request.
func RequestChip(status int) ui.ChipProps {
	switch {
	case status >= 500:
		return ui.ChipProps{Icon: "circle-x", Word: fmt.Sprint(status), Tone: ui.Bad}
	case status == 429:
		return ui.ChipProps{Icon: "clock", Word: fmt.Sprint(status), Tone: ui.Warn}
	case status >= 400:
		return ui.ChipProps{Icon: "triangle-alert", Word: fmt.Sprint(status), Tone: ui.Warn}
	}
	return ui.ChipProps{Icon: "circle-check", Word: fmt.Sprint(status), Tone: ui.Good}
}

// outcome is what the answer said, in words.
func (r RequestRow) outcome() string {
	text := ui.HTTPStatus(r.Status)
	if r.Code != "" {
		text += ", " + r.Code
	}
	if len(r.Fields) > 0 {
		text += " (" + strings.Join(r.Fields, ", ") + ")"
	}
	return text
}

// RequestList is the log of requests.
type RequestList struct {
	ui.Frame
	// Views are filters with a name.
	Views  ui.NamedFilters
	Filter RequestFilter
	Tabs   []ui.Tab
	Active []ui.ActiveFilter
	// Partners, Codes and Methods are the choices of the filter form.
	Partners, Codes, Methods []ui.Option
	Rows                     []RequestRow
	// KeptDays is for how many days the log keeps a request.
	KeptDays int
	Summary  string
	// Newest and Older are neighbouring pages, empty where there is none.
	Newest, Older string
	// Export is the filter as the file's form sends it.
	Export string
}

func (p RequestList) filtered() bool { return len(p.Filter.Values) > 0 }

// RequestPageProps is the page of one request.
type RequestPageProps struct {
	ui.Frame
	Request RequestRow
	// Curl repeats the request, with placeholders for what is secret or not kept.
	Curl string
}

func requestTable(rows []RequestRow) ui.TableProps[RequestRow] {
	return ui.TableProps[RequestRow]{
		Caption: "Requests, newest first",
		RowID:   func(r RequestRow) string { return "r-" + r.UID },
		Href:    func(r RequestRow) string { return paths.To(paths.Request, r.UID) },
		Rows:    rows,
		Columns: []ui.Column[RequestRow]{
			{Title: "Answer", Class: "w-code", Cell: requestStatusCell},
			{Title: "Request", Header: true, Cell: requestNameCell},
			{Title: "Error", Class: "col-b w-place", Cell: requestErrorCell},
			{Title: "Partner", Class: "col-b w-place", Cell: requestPartnerCell},
			{Title: "Took", Class: "col-a w-rate end", Cell: requestTookCell},
			{Title: "When", Class: "w-time w-day end", Cell: requestTimeCell},
		},
	}
}

// shortPath is the path with the middle of its ids left out, and without the
// part that all paths share.
func (r RequestRow) shortPath() string {
	parts := strings.Split(r.Path, "/")
	for i, part := range parts {
		parts[i] = ui.ShortUID(part)
	}
	return strings.Join(parts, "/")
}

// requestClientHref leads to the client, unless it was only claimed.
func requestClientHref(r RequestRow) string {
	if !r.Authenticated {
		return ""
	}
	return paths.To(paths.Client, r.Client)
}
