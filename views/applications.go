package views

import (
	"net/url"
	"strings"
	"time"

	"drawbridge/internal/lending"
)

// Route patterns of the pages about applications.
const (
	PathApplications    = "/console/applications"
	PathApplicationsCSV = "/console/applications/csv"
	PathApplication     = "/console/applications/:uid"
	PathDocument        = "/console/applications/:uid/files/:file"
)

// ApplicationsPath is the list of applications under a filter; query may be nil.
func ApplicationsPath(query url.Values) string { return withQuery(PathApplications, query) }

// ApplicationPath is the page of one application and its loan.
func ApplicationPath(uid string) string { return PathApplications + "/" + url.PathEscape(uid) }

// DocumentPath downloads one file of the application's completion certificates.
func DocumentPath(uid, file string) string {
	return ApplicationPath(uid) + "/files/" + url.PathEscape(file)
}

// Amount writes money with its thousands grouped: 12,345.00.
func Amount(money lending.Money) string {
	whole, cents, _ := strings.Cut(money.String(), ".")
	sign := ""
	if digits, negative := strings.CutPrefix(whole, "-"); negative {
		sign, whole = "-", digits
	}
	for at := len(whole) - 3; at > 0; at -= 3 {
		whole = whole[:at] + "," + whole[at:]
	}
	return sign + whole + "." + cents
}

// ApplicationChip describes an application's status.
func ApplicationChip(status string) ChipProps {
	switch lending.ApplicationStatus(status) {
	case lending.StatusPendingReview:
		return ChipProps{"clock", status, Calm}
	case lending.StatusHardPullAuthorization, lending.StatusPendClearance:
		return ChipProps{"triangle-alert", status, Warn}
	case lending.StatusHardPull:
		return ChipProps{"loader", status, Calm}
	case lending.StatusApproved:
		return ChipProps{"circle-check", status, Good}
	case lending.StatusDeclined:
		return ChipProps{"circle-x", status, Bad}
	case lending.StatusClosed:
		return ChipProps{"lock", status, Mute}
	}
	return ChipProps{"circle-help", status, Mute}
}

// ApplicationRow is one application in a list. Amounts are written out, and
// empty where there are none.
type ApplicationRow struct {
	UID      string
	Status   string
	Borrower string
	Email    string
	// Reference is the partner's own name for the application, if it gave one.
	Reference string
	Partner   string
	Merchant  string
	Requested string
	// Loan is the loan's amount and Drawn what was drawn of it.
	Loan    string
	Drawn   string
	Created time.Time
}

// Name is what a row is called: the borrower, or what else is known.
func (r ApplicationRow) Name() string {
	if strings.TrimSpace(r.Borrower) == "" {
		return r.Email
	}
	return r.Borrower
}

// ApplicationList is the page that lists applications.
type ApplicationList struct {
	Frame
	// Export is the filter as the form of the file sends it.
	Export string
	// Views are filters with a name.
	Views  NamedFilters
	Filter ApplicationFilter
	// Tabs are the statuses to switch between, Active the other filters in force.
	Tabs   []Tab
	Active []ActiveFilter
	// Partners and Merchants are the choices of the filter form.
	Partners  []Option
	Merchants []Option
	Rows      []ApplicationRow
	// Summary counts the filtered set: "1,204 applications".
	Summary string
	// Newest and Older are neighbouring pages, empty where there is none.
	Newest string
	Older  string
}

func (p ApplicationList) filtered() bool { return p.Filter.Status != "" || len(p.Active) > 0 }

// field describes a control of the filter form with its fault.
func (p ApplicationList) field(name, label string) FieldProps {
	return FieldProps{ID: "filter-" + name, Label: label, Fault: p.Filter.Faults[name]}
}

// ApplicationFilter is the filter as the reader typed it, with a fault for each
// value that is wrong.
type ApplicationFilter struct {
	Status   string
	Partner  string
	Merchant string
	Search   string
	Faults   map[string]string
}

// faults lists the wrong values in the order of the form.
func (f ApplicationFilter) faults() []filterFault {
	var found []filterFault
	for _, name := range []string{"status", "q", "partner", "merchant", "cursor"} {
		if text := f.Faults[name]; text != "" {
			fault := filterFault{text: text}
			if name != "status" && name != "cursor" {
				fault.href = "#filter-" + name
			}
			found = append(found, fault)
		}
	}
	return found
}

func applicationTable(rows []ApplicationRow) TableProps[ApplicationRow] {
	return TableProps[ApplicationRow]{
		Caption: "Applications, newest first",
		RowID:   func(r ApplicationRow) string { return "a-" + r.UID },
		Href:    func(r ApplicationRow) string { return ApplicationPath(r.UID) },
		Rows:    rows,
		Columns: []Column[ApplicationRow]{
			{Title: "Status", Class: "w-state w-status", Cell: applicationStatusCell},
			{Title: "Borrower", Header: true, Cell: borrowerCell},
			{Title: "Reference", Class: "col-b w-dest", Cell: referenceCell},
			{Title: "Merchant", Class: "col-b w-sixth", Cell: merchantCell},
			{Title: "Requested", Class: "col-a w-amount end", Cell: requestedCell},
			{Title: "Loan", Class: "col-c w-amount end", Cell: loanCell},
			{Title: "Drawn", Class: "col-c w-amount end", Cell: drawnCell},
			{Title: "Created", Class: "w-time end", Cell: applicationCreatedCell},
		},
	}
}
