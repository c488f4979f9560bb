package api

import (
	"math"

	"drawbridge/internal/loan"
)

// WaitingBody is a draw as commands print it: the lender's disbursement object, with the
// next step.
type WaitingBody struct {
	historyBody
	Borrower string `json:"borrower"`
	// Product is the code of the loan's product.
	Product string `json:"product"`
	// Age is the time in the current state, in business hours.
	Age     float64 `json:"age_business_hours"`
	Overdue bool    `json:"overdue"`
	// OverdueAt is when the draw becomes, or became, overdue in its state; null if nothing is awaited.
	OverdueAt *string `json:"overdue_at"`
	NextStep  string  `json:"next_step"`
}

// NewWaitingBody returns the body of a draw on the desk.
func NewWaitingBody(w loan.Waiting) WaitingBody {
	return WaitingBody{
		historyBody: newHistoryBody(w.Disbursement), Borrower: w.Borrower, Product: w.ProductCode,
		Age: math.Round(w.Age.Hours()*100) / 100, Overdue: w.Overdue, OverdueAt: formatGiven(w.Due),
		NextStep: w.NextStep,
	}
}
