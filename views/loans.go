package views

import (
	"fmt"
	"net/url"
	"time"

	"drawbridge/internal/lending"
	"drawbridge/internal/loan"
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

// LoanTable lists loans. A loan's page is its application's.
func LoanTable(rows []loan.Summary) TableProps[loan.Summary] {
	return TableProps[loan.Summary]{
		Caption: "Loans, newest first",
		RowID:   func(s loan.Summary) string { return "l-" + s.UID.String() },
		Href:    func(s loan.Summary) string { return ApplicationPath(s.UID.String()) },
		Rows:    rows,
		Columns: []Column[loan.Summary]{
			{Title: "State", Class: "w-state w-loan", Chip: loanChip},
			{Title: "Borrower", Header: true, Cell: loanNameCell},
			{
				Title: "Partner", Class: "col-c w-place",
				Text: func(s loan.Summary) string { return s.PartnerName },
			},
			{Title: "Pending or next", Class: "col-b w-fate", Text: nextDraw},
			{
				Title: "Amount", Class: "col-a w-amount end",
				Text: func(s loan.Summary) string { return Amount(s.Amount) },
			},
			{
				Title: "Drawn", Class: "col-b w-amount end",
				Text: func(s loan.Summary) string { return Amount(s.Drawn) },
			},
			{Title: "Balance", Class: "col-b w-amount end", Text: balance},
			{
				Title: "Opened", Class: "w-time w-day end",
				Time: func(s loan.Summary) time.Time { return s.OpenedAt },
			},
		},
	}
}

func loanChip(s loan.Summary) ChipProps { return LoanChip(string(s.State())) }

func balance(s loan.Summary) string { return Amount(s.Amount.Sub(s.Drawn)) }

// nextDraw says which draw is under way, or which comes next.
func nextDraw(s loan.Summary) string {
	switch {
	case s.PendingID != nil:
		return fmt.Sprintf("draw #%d, %s", *s.PendingID, Amount(*s.Pending))
	case s.NextStage != nil && !s.Completed:
		return fmt.Sprintf("stage %d, %s", *s.NextStage, Amount(*s.Scheduled))
	}
	return ""
}

// DrawWord is what the state of a draw is called.
func DrawWord(state lending.FundingStatus) string { return drawWords[state] }

var drawWords = map[lending.FundingStatus]string{
	"FUNDING_REQUESTED":  "Requested",
	"FUNDING_PROCESSING": "Processing",
	"FUNDING_SETTLED":    "Settled",
	"CANCELLED":          "Cancelled",
}
