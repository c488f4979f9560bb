package views

import (
	"fmt"
	"net/url"
	"time"
)

// SectionLoans is the list of loans in the rail.
const SectionLoans Section = "loans"

// PathLoans is the list of loans and their draws; a loan's page is its
// application's.
const PathLoans = "/console/loans"

// PathLoansCSV sends that list as a file.
const PathLoansCSV = PathLoans + "/csv"

// LoansPath is the list of loans under a filter; query may be nil.
func LoansPath(query url.Values) string { return withQuery(PathLoans, query) }

// LoanRow is one loan in a list. Amounts are written out.
type LoanRow struct {
	UID, Borrower, Partner, Merchant, Product string
	Amount, Drawn, Balance                    string
	// State is "ready", "pending", "blocked" or "completed".
	State string
	// Pending is the draw under way and Next the next stage, empty without one.
	Pending, Next string
	Opened        time.Time
}

// LoanChip describes what keeps the next draw of a loan.
func LoanChip(state string) ChipProps {
	switch state {
	case "ready":
		return ChipProps{"circle-check", "Ready to draw", Good}
	case "pending":
		return ChipProps{"clock", "Draw pending", Calm}
	case "blocked":
		return ChipProps{"lock", "Not approved", Warn}
	case "completed":
		return ChipProps{"list-checks", "Drawn", Mute}
	}
	return ChipProps{"circle-help", state, Mute}
}

// LoanList is the page that lists loans.
type LoanList struct {
	Frame
	// Export is the filter as the form of the file sends it.
	Export                        string
	State, Partner, Product, Draw string
	Faults                        map[string]string
	Tabs                          []Tab
	Partners, Products, Draws     []Option
	Rows                          []LoanRow
	Summary                       string
	// Newest and Older are neighbouring pages, empty where there is none.
	Newest, Older string
}

func (p LoanList) filtered() bool { return p.State+p.Partner+p.Product+p.Draw != "" }

func (p LoanList) faults() []filterFault {
	var found []filterFault
	for _, name := range []string{"state", "partner", "product", "draw", "cursor"} {
		if text := p.Faults[name]; text != "" {
			found = append(found, filterFault{text: text})
		}
	}
	return found
}

func loanTable(rows []LoanRow) TableProps[LoanRow] {
	return TableProps[LoanRow]{
		Caption: "Loans, newest first",
		RowID:   func(r LoanRow) string { return "l-" + r.UID },
		Href:    func(r LoanRow) string { return ApplicationPath(r.UID) },
		Rows:    rows,
		Columns: []Column[LoanRow]{
			{Title: "State", Class: "w-state w-loan", Cell: loanStateCell},
			{Title: "Borrower", Header: true, Cell: loanNameCell},
			{Title: "Partner", Class: "col-c w-place", Cell: loanPartnerCell},
			{Title: "Pending or next", Class: "col-b w-fate", Cell: loanNextCell},
			{Title: "Amount", Class: "col-a w-amount end", Cell: loanAmountCell},
			{Title: "Drawn", Class: "col-b w-amount end", Cell: loanDrawnCell},
			{Title: "Balance", Class: "col-b w-amount end", Cell: loanBalanceCell},
			{Title: "Opened", Class: "w-time w-day end", Cell: loanOpenedCell},
		},
	}
}

// next says which draw is under way, or which comes next.
func (r LoanRow) next() string {
	if r.Pending != "" {
		return fmt.Sprintf("draw %s", r.Pending)
	}
	return r.Next
}
