package lending

import (
	"errors"
	"strings"

	"github.com/shopspring/decimal"
)

// The parts of a draw request, in the body of request-draw and in the query of
// draw-preview (specification section 2.2).
const (
	PartDisbursementAmount = "updatedDisbursementAmount"
	PartLoanAmount         = "updatedLoanAmount"
	PartCompletedEarly     = "projectCompletedEarly"
)

// Documents says what completion documentation comes with a draw request.
type Documents int

// The states of documentation.
const (
	// DocumentsAbsent means neither files nor metadata.
	DocumentsAbsent Documents = iota
	// DocumentsGiven means files, metadata or both.
	DocumentsGiven
	// DocumentsAssumed is a preview's: given where they are required, else absent.
	DocumentsAssumed
)

// DrawRequest is a well-formed request for a draw.
type DrawRequest struct {
	// UpdatedDisbursementAmount reduces a regular draw; nil if not given.
	UpdatedDisbursementAmount *Money
	// UpdatedLoanAmount revises the total of a completing draw; nil if not given.
	UpdatedLoanAmount     *Money
	ProjectCompletedEarly bool
	Documents             Documents
}

// ParseDrawRequest parses the values by part name. An absent key is an absent part; unknown keys
// are ignored. Error: VALIDATION_ERROR with every error, including a reduced amount combined
// with early completion.
func ParseDrawRequest(values map[string]string, documents Documents) (DrawRequest, error) {
	var errs FieldErrors
	request := DrawRequest{
		UpdatedDisbursementAmount: optionalMoney(&errs, values, PartDisbursementAmount),
		UpdatedLoanAmount:         optionalMoney(&errs, values, PartLoanAmount),
		Documents:                 documents,
	}
	text, given := values[PartCompletedEarly]
	switch strings.ToLower(text) {
	case "true":
		request.ProjectCompletedEarly = true
	case "false":
	default:
		if given {
			errs.Add(PartCompletedEarly, "%q must be true or false", PartCompletedEarly)
		}
	}
	_, reduced := values[PartDisbursementAmount]
	if reduced && request.ProjectCompletedEarly { // request rule 4
		errs.Add(PartDisbursementAmount, "%q is not allowed together with %q: "+
			"an early completion draws the whole balance; use %q to reduce the loan",
			PartDisbursementAmount, PartCompletedEarly, PartLoanAmount)
	}
	return request, errs.Err()
}

func optionalMoney(errs *FieldErrors, values map[string]string, part string) *Money {
	text, given := values[part]
	if !given {
		return nil
	}
	if _, err := ParseMoney(text); errors.Is(err, ErrMoneyRange) {
		// Well formed but larger than any amount that Money accepts: return more than every bound of a
		// draw, so that DecideDraw refuses it.
		return &Money{decimal.New(1, moneyIntegerDigits)}
	}
	return new(errs.Money(part, text))
}
