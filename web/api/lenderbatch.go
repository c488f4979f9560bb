package api

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
)

// changesField is the array of a batch, and maxChanges how many it may hold.
const (
	changesField = "changes"
	maxChanges   = 500
)

// batchResult is what became of one change of a batch.
type batchResult struct {
	ID      *int64 `json:"merchantDisbursementId"`
	Status  int    `json:"statusCode"`
	Changed bool   `json:"changed"`
	// Error is null for a change that was made or stood already.
	Error *refusalBody `json:"error"`
}

type batchBody struct {
	Results []batchResult `json:"results"`
}

// batchChange is one change as it was sent. Fault says what is wrong with it.
type batchChange struct {
	id     *int64
	change lending.FundingChange
	fault  error
}

// lenderBatch moves many disbursements in one transaction, each behind a savepoint: what is
// refused fails alone, and a crash leaves all or nothing.
func (l *lender) lenderBatch(c echo.Context) error {
	return l.jsonEffect(c, nil, func(body *object) operation {
		changes := l.readBatch(body)
		return func(tx *postgres.Tx) (int, any, error) {
			var ids []int64
			for _, one := range changes {
				if one.id != nil {
					ids = append(ids, *one.id)
				}
			}
			if err := l.loans.LockDraws(c.Request().Context(), tx, ids); err != nil {
				return 0, nil, err
			}
			made := batchBody{Results: make([]batchResult, 0, len(changes))}
			for _, one := range changes {
				result, err := l.applyOne(c, tx, one)
				if err != nil {
					return 0, nil, err
				}
				made.Results = append(made.Results, result)
			}
			return http.StatusOK, made, nil
		}
	})
}

// readBatch reads the changes. What is wrong with one of them is its own matter, and does not
// refuse the others.
func (l *lender) readBatch(body *object) []batchChange {
	body.members = slices.DeleteFunc(body.members, func(fault lending.FieldFault) bool {
		return strings.HasPrefix(fault.Field, changesField+"[")
	})
	if !body.required(changesField) {
		return nil
	}
	var raw []json.RawMessage
	if err := json.Unmarshal(body.raw[changesField], &raw); err != nil || len(raw) == 0 ||
		len(raw) > maxChanges {
		body.faults.Add(changesField, "%q must be an array of 1 to %d changes", changesField,
			maxChanges)
		return nil
	}
	changes := make([]batchChange, 0, len(raw))
	for _, text := range raw {
		changes = append(changes, l.readChange(text))
	}
	return changes
}

func (l *lender) readChange(text []byte) batchChange {
	body, err := parseObject(text)
	if err != nil {
		return batchChange{fault: lending.NewError(lending.CodeValidation,
			"a change must be an object such as "+
				`{"merchantDisbursementId": 1042, "status": "FUNDING_SETTLED"}`)}
	}
	var one batchChange
	if body.required(disbursementField) {
		var id int64
		if json.Unmarshal(body.raw[disbursementField], &id) != nil || id < 1 {
			body.faults.Add(disbursementField, "%q must be a whole number", disbursementField)
		} else {
			one.id = &id
		}
	}
	one.change = l.fundingChange(body, lending.ParseFundingMove)
	one.fault = body.err()
	return one
}

// applyOne makes one change of a batch. An error is none of the change, but ends the batch.
func (l *lender) applyOne(
	c echo.Context, tx *postgres.Tx, one batchChange,
) (batchResult, error) {
	result := batchResult{ID: one.id, Status: http.StatusOK}
	err := one.fault
	if err == nil {
		err = tx.Savepoint(c.Request().Context(), func() (err error) {
			_, result.Changed, err = l.moveFunding(c, tx, *one.id, one.change)
			return err
		})
	}
	refusal, refused := errors.AsType[*lending.Error](err)
	if err != nil && !refused {
		return result, err
	}
	if refused {
		result.Changed, result.Status = false, Status(refusal.Code)
		result.Error = &refusalBody{Code: refusal.Code, Message: refusal.Message}
	}
	return result, nil
}
