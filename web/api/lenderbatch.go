package api

import (
	"encoding/json"
	"errors"
	"net/http"

	"github.com/labstack/echo/v4"

	"drawbridge/internal/lending"
	"drawbridge/internal/loan"
	"drawbridge/internal/postgres"
)

// changesField is the array of a batch, and maxChanges how many it may hold.
const (
	changesField = "changes"
	maxChanges   = 500
)

// batchResult is the outcome of one change of a batch.
type batchResult struct {
	ID      *int64 `json:"merchantDisbursementId"`
	Status  int    `json:"statusCode"`
	Changed bool   `json:"changed"`
	// Error is null for a change that was made now or earlier.
	Error *refusalBody `json:"error"`
}

type batchBody struct {
	Results []batchResult `json:"results"`
}

// batchChange is one change as it was sent; problem says what is wrong with it.
type batchChange struct {
	id      *int64
	change  lending.FundingChange
	problem error
}

// lenderBatch moves many disbursements in one transaction. A refused change does not affect
// the others, and a crash leaves all or nothing.
func (l *lender) lenderBatch(c echo.Context) error {
	return l.jsonEffect(c, nil, func(body *object) operation {
		changes := l.readBatch(body)
		return func(tx *postgres.Tx) (int, any, error) {
			moves := make([]loan.Move, 0, len(changes))
			for _, one := range changes {
				if one.problem == nil {
					moves = append(moves, loan.Move{ID: *one.id, FundingChange: one.change})
				}
			}
			moved, err := l.moveFundings(c, tx, moves)
			if err != nil {
				return 0, nil, err
			}
			made := batchBody{Results: make([]batchResult, 0, len(changes))}
			for _, one := range changes {
				result, refusal := batchResult{ID: one.id, Status: http.StatusOK}, one.problem
				if refusal == nil {
					result.Changed, refusal = moved[0].Changed, moved[0].Refusal
					moved = moved[1:]
				}
				if refusal, ok := errors.AsType[*lending.Error](refusal); ok {
					result.Status = Status(refusal.Code)
					result.Error = &refusalBody{Code: refusal.Code, Message: refusal.Message}
				}
				made.Results = append(made.Results, result)
			}
			return http.StatusOK, made, nil
		}
	})
}

// readBatch reads the changes. An error in one change does not refuse the others.
func (l *lender) readBatch(body *object) []batchChange {
	body.entries = nil
	if !body.required(changesField) {
		return nil
	}
	var raw []json.RawMessage
	if err := json.Unmarshal(body.raw[changesField], &raw); err != nil || len(raw) == 0 ||
		len(raw) > maxChanges {
		body.errs.Add(changesField, "%q must be an array of 1 to %d changes", changesField,
			maxChanges)
		return nil
	}
	changes := make([]batchChange, 0, len(raw))
	for _, text := range raw {
		body, err := parseObject(text)
		if err != nil {
			changes = append(changes, batchChange{problem: lending.NewError(lending.CodeValidation,
				"a change must be an object such as "+
					`{"merchantDisbursementId": 1042, "status": "FUNDING_SETTLED"}`)})
			continue
		}
		one := batchChange{
			id: postgres.OrNull(body.id(disbursementField)), change: l.fundingChange(body),
		}
		one.problem = body.err()
		changes = append(changes, one)
	}
	return changes
}
