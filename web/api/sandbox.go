package api

import (
	"context"
	"net/http"
	"strconv"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"drawbridge/internal/application"
	"drawbridge/internal/lending"
	"drawbridge/internal/loan"
	"drawbridge/internal/postgres"
)

// The sandbox plays the lender's part, so that a partner can walk a loan from
// end to end alone. It is not registered in production.

// applicationField names the uid of an application's path.
const applicationField = "uid"

// taskField names the uid of a task's path.
const taskField = "task_uid"

// sandboxMove changes an application to what read finds in the body.
func sandboxMove[T any](
	a *API, c echo.Context, read func(body *object) T,
	change func(
		ctx context.Context, tx *postgres.Tx, by loan.Caller, uid uuid.UUID, to T,
	) (application.Application, error),
) error {
	uid, pathErr := pathUID(c, applicationField)
	return a.jsonEffect(c, pathErr, func(body *object) operation {
		to := read(body)
		return func(tx *postgres.Tx) (int, any, error) {
			app, err := change(c.Request().Context(), tx, actor(c), uid, to)
			if err != nil {
				return 0, nil, err
			}
			return http.StatusOK, newApplicationBody(app), nil
		}
	})
}

// parsed reads a required string field through a parser of package lending.
func parsed[T any](body *object, field string, parse func(string) (T, error)) T {
	var zero T
	if !body.required(field) {
		return zero
	}
	text, ok := body.str(field)
	if !ok {
		return zero
	}
	value, err := parse(text)
	body.faults.Merge(err)
	return value
}

func (a *API) sandboxStatus(c echo.Context) error {
	return sandboxMove(a, c, func(body *object) lending.ApplicationStatus {
		return parsed(body, "status", lending.ParseApplicationStatus)
	}, a.Applications.Move)
}

func (a *API) sandboxAmount(c echo.Context) error {
	return sandboxMove(a, c, func(body *object) lending.Money {
		return body.money("approved_amount")
	}, a.Applications.ChangeAmount)
}

func (a *API) sandboxTerms(c echo.Context) error {
	return sandboxMove(a, c, readTerms, a.Applications.ChangeTerms)
}

func readTerms(body *object) lending.Terms {
	texts := make(map[string]*string)
	before := len(*body.faults)
	for _, field := range []string{"term", "interest_rate", "merchant_fee_percentage"} {
		if !body.has(field) {
			continue
		}
		if text, ok := body.str(field); ok {
			texts[field] = &text
		}
	}
	if len(*body.faults) > before {
		return lending.Terms{}
	}
	terms, err := lending.ParseTerms(
		texts["term"], texts["interest_rate"], texts["merchant_fee_percentage"])
	body.faults.Merge(err)
	return terms
}

func (a *API) sandboxDocument(c echo.Context) error {
	return sandboxMove(a, c, func(body *object) lending.DocumentStatus {
		return parsed(body, "status", lending.ParseDocumentStatus)
	}, a.Applications.RecordDocument)
}

type taskBody struct {
	UID    uuid.UUID `json:"task_uid"`
	Title  string    `json:"title"`
	Status string    `json:"status"`
}

func newTaskBody(task application.Task) taskBody {
	return taskBody{UID: task.UID, Title: task.Title, Status: string(task.Status)}
}

func (a *API) sandboxTask(c echo.Context) error {
	uid, pathErr := pathUID(c, applicationField)
	return a.jsonEffect(c, pathErr, func(body *object) operation {
		title := body.linkless("title", maxLine)
		return func(tx *postgres.Tx) (int, any, error) {
			task, err := a.Applications.AddTask(c.Request().Context(), tx, actor(c), uid, title)
			if err != nil {
				return 0, nil, err
			}
			return http.StatusCreated, newTaskBody(task), nil
		}
	})
}

func (a *API) sandboxTaskStatus(c echo.Context) error {
	uid, pathErr := pathUID(c, taskField)
	return a.jsonEffect(c, pathErr, func(body *object) operation {
		to := parsed(body, "status", lending.ParseTaskStatus)
		return func(tx *postgres.Tx) (int, any, error) {
			task, _, err := a.Applications.MoveTask(c.Request().Context(), tx, actor(c), uid, to)
			if err != nil {
				return 0, nil, err
			}
			traceOf(c).ApplicationUID = task.ApplicationUID
			return http.StatusOK, newTaskBody(task), nil
		}
	})
}

func (a *API) sandboxFunding(c echo.Context) error {
	id, pathErr := pathNumber(c)
	return a.jsonEffect(c, pathErr, func(body *object) operation {
		change := a.fundingChange(body)
		return func(tx *postgres.Tx) (int, any, error) {
			disbursement, _, err := a.Loans.MoveFunding(
				c.Request().Context(), tx, actor(c), id, change)
			if err != nil {
				return 0, nil, err
			}
			return http.StatusOK, newHistoryBody(disbursement), nil
		}
	})
}

// disbursementField names the number of a disbursement.
const disbursementField = "merchantDisbursementId"

// pathNumber reads the number of the path's disbursement. Error: VALIDATION_ERROR.
func pathNumber(c echo.Context) (int64, error) {
	id, err := strconv.ParseInt(c.Param("id"), 10, 64)
	if err != nil || id < 1 {
		return 0, lending.Invalid(disbursementField, "%q must be a whole number", disbursementField)
	}
	return id, nil
}

// fundingChange reads what becomes of a disbursement, with the evidence.
func (a *API) fundingChange(body *object) lending.FundingChange {
	to := parsed(body, "status", lending.ParseFundingStatus)
	fields := make(map[string]string)
	for _, field := range lending.FundingFields() {
		if !body.has(field) {
			continue
		}
		if text, ok := body.str(field); ok {
			fields[field] = text
		}
	}
	change, err := lending.ParseFundingChange(to, fields, a.Now())
	body.faults.Merge(err)
	return change
}
