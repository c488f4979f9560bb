package api

import (
	"math"

	"drawbridge/internal/loan"
)

// WaitingBody is a draw as commands print it: the object of the lender's systems, with what
// has to be done.
type WaitingBody struct {
	historyBody
	Borrower string `json:"borrower"`
	// Product is the code of the product that is lent by.
	Product string `json:"product"`
	// Age is the business time in its state, in hours.
	Age     float64 `json:"age_business_hours"`
	Overdue bool    `json:"overdue"`
	// OverdueAt is when the draw is, or was, overdue in its state; null where nothing waits.
	OverdueAt *string `json:"overdue_at"`
	NextStep  string  `json:"next_step"`
}

// NewWaitingBody describes a draw on the desk.
func NewWaitingBody(w loan.Waiting) WaitingBody {
	return WaitingBody{
		historyBody: newHistoryBody(w.Disbursement), Borrower: w.Borrower, Product: w.ProductCode,
		Age: math.Round(w.Age.Hours()*100) / 100, Overdue: w.Overdue, OverdueAt: formatGiven(w.Due),
		NextStep: w.NextStep,
	}
}
