package applications

import (
	"fmt"
	"time"

	"drawbridge/views/paths"
	"drawbridge/views/ui"
)

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
func LoanChip(state string) ui.ChipProps {
	switch state {
	case "ready":
		return ui.ChipProps{Icon: "circle-check", Word: "Ready to draw", Tone: ui.Good}
	case "pending":
		return ui.ChipProps{Icon: "clock", Word: "Draw pending", Tone: ui.Calm}
	case "blocked":
		return ui.ChipProps{Icon: "lock", Word: "Not approved", Tone: ui.Warn}
	case "completed":
		return ui.ChipProps{Icon: "list-checks", Word: "Drawn", Tone: ui.Mute}
	}
	return ui.ChipProps{Icon: "circle-help", Word: state, Tone: ui.Mute}
}

// LoanList is the page that lists loans.
type LoanList struct {
	ui.Frame
	// Export is the filter as the form of the file sends it.
	Export                        string
	State, Partner, Product, Draw string
	Faults                        map[string]string
	Tabs                          []ui.Tab
	Partners, Products, Draws     []ui.Option
	Rows                          []LoanRow
	Summary                       string
	// Newest and Older are neighbouring pages, empty where there is none.
	Newest, Older string
}

func (p LoanList) filtered() bool { return p.State+p.Partner+p.Product+p.Draw != "" }

func (p LoanList) faults() []ui.FilterFault {
	var found []ui.FilterFault
	for _, name := range []string{"state", "partner", "product", "draw", "cursor"} {
		if text := p.Faults[name]; text != "" {
			found = append(found, ui.FilterFault{Text: text})
		}
	}
	return found
}

func loanTable(rows []LoanRow) ui.TableProps[LoanRow] {
	return ui.TableProps[LoanRow]{
		Caption: "Loans, newest first",
		RowID:   func(r LoanRow) string { return "l-" + r.UID },
		Href:    func(r LoanRow) string { return paths.To(paths.Application, r.UID) },
		Rows:    rows,
		Columns: []ui.Column[LoanRow]{
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
