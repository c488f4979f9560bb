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
	"drawbridge/internal/scenario"
)

// sandbox plays the lender's part, so that a partner can walk a loan from end to end
// alone. It is not registered in production.
type sandbox struct {
	*edge

	applications *application.Service
	loans        *loan.Service
	scenarios    *scenario.Service
}

// routes are the calls that play the lender's part.
func (s *sandbox) routes() []Route {
	post := func(path, name string, handler echo.HandlerFunc) Route {
		return Route{
			Method: http.MethodPost, Path: "/v2/sandbox" + path, Name: name, Handler: handler,
		}
	}
	return []Route{
		post("/scenario", "sandboxScenario", s.sandboxScenario),
		post("/application/:uid/status", "sandboxStatus", s.sandboxStatus),
		post("/application/:uid/amount", "sandboxAmount", s.sandboxAmount),
		post("/application/:uid/terms", "sandboxTerms", s.sandboxTerms),
		post("/application/:uid/document", "sandboxDocument", s.sandboxDocument),
		post("/application/:uid/task", "sandboxTask", s.sandboxTask),
		post("/task/:uid/status", "sandboxTaskStatus", s.sandboxTaskStatus),
		post("/disbursement/:id/status", "sandboxFunding", s.sandboxFunding),
	}
}

// applicationField names the uid of an application's path.
const applicationField = "uid"

// taskField names the uid of a task's path.
const taskField = "task_uid"

type scenarioBody struct {
	UID   uuid.UUID  `json:"thrive_application_uid"`
	Loan  *uuid.UUID `json:"loan_application_uid"`
	Steps []string   `json:"steps"`
}

func (s *sandbox) sandboxScenario(c echo.Context) error {
	return s.jsonEffect(c, nil, func(body *object) operation {
		wanted := scenario.Wanted{
			Name: parsed(body, "name", scenario.Parse), ProductUID: body.optionalUID("product_uid"),
			PartnerUID: callerOf(c).PartnerUID, By: actor(c),
		}
		return func(tx *postgres.Tx) (int, any, error) {
			played, err := s.scenarios.Play(c.Request().Context(), tx, wanted)
			if err != nil {
				return 0, nil, err
			}
			answer := scenarioBody{UID: played.ApplicationUID, Steps: played.Steps}
			if played.HasLoan {
				answer.Loan = &played.ApplicationUID
			}
			return http.StatusCreated, answer, nil
		}
	})
}

// sandboxMove changes an application to what read finds in the body.
func sandboxMove[T any](
	e *edge, c echo.Context, read func(body *object) T,
	change func(
		ctx context.Context, tx *postgres.Tx, by loan.Caller, uid uuid.UUID, to T,
	) (application.Application, error),
) error {
	uid, pathErr := pathUID(c, applicationField)
	return e.jsonEffect(c, pathErr, func(body *object) operation {
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
	body.errs.Merge(err)
	return value
}

func (s *sandbox) sandboxStatus(c echo.Context) error {
	return sandboxMove(s.edge, c, func(body *object) lending.ApplicationStatus {
		return parsed(body, "status", lending.ParseApplicationStatus)
	}, s.applications.Move)
}

func (s *sandbox) sandboxAmount(c echo.Context) error {
	return sandboxMove(s.edge, c, func(body *object) lending.Money {
		return body.money("approved_amount")
	}, s.applications.ChangeAmount)
}

func (s *sandbox) sandboxTerms(c echo.Context) error {
	return sandboxMove(s.edge, c, readTerms, s.applications.ChangeTerms)
}

func readTerms(body *object) lending.Terms {
	texts := make(map[string]*string)
	before := len(*body.errs)
	for _, field := range []string{"term", "interest_rate", "merchant_fee_percentage"} {
		if !body.has(field) {
			continue
		}
		if text, ok := body.str(field); ok {
			texts[field] = &text
		}
	}
	if len(*body.errs) > before && len(texts) == 0 {
		return lending.Terms{} // what is there is no text; that is said
	}
	terms, err := lending.ParseTerms(
		texts["term"], texts["interest_rate"], texts["merchant_fee_percentage"])
	body.errs.Merge(err)
	return terms
}

func (s *sandbox) sandboxDocument(c echo.Context) error {
	return sandboxMove(s.edge, c, func(body *object) lending.DocumentStatus {
		return parsed(body, "status", lending.ParseDocumentStatus)
	}, s.applications.RecordDocument)
}

type taskBody struct {
	UID    uuid.UUID `json:"task_uid"`
	Title  string    `json:"title"`
	Status string    `json:"status"`
}

func newTaskBody(task application.Task) taskBody {
	return taskBody{UID: task.UID, Title: task.Title, Status: string(task.Status)}
}

func (s *sandbox) sandboxTask(c echo.Context) error {
	uid, pathErr := pathUID(c, applicationField)
	return s.jsonEffect(c, pathErr, func(body *object) operation {
		title := body.linkless("title", maxLine)
		return func(tx *postgres.Tx) (int, any, error) {
			task, err := s.applications.AddTask(c.Request().Context(), tx, actor(c), uid, title)
			if err != nil {
				return 0, nil, err
			}
			return http.StatusCreated, newTaskBody(task), nil
		}
	})
}

func (s *sandbox) sandboxTaskStatus(c echo.Context) error {
	uid, pathErr := pathUID(c, taskField)
	return s.jsonEffect(c, pathErr, func(body *object) operation {
		to := parsed(body, "status", lending.ParseTaskStatus)
		return func(tx *postgres.Tx) (int, any, error) {
			task, _, err := s.applications.MoveTask(c.Request().Context(), tx, actor(c), uid, to)
			if err != nil {
				return 0, nil, err
			}
			traceOf(c).ApplicationUID = task.ApplicationUID
			return http.StatusOK, newTaskBody(task), nil
		}
	})
}

func (s *sandbox) sandboxFunding(c echo.Context) error {
	id, pathErr := pathNumber(c)
	return s.jsonEffect(c, pathErr, func(body *object) operation {
		change := s.fundingChange(body)
		return func(tx *postgres.Tx) (int, any, error) {
			disbursement, _, err := s.loans.MoveFunding(
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
	if err != nil || id < 1 || strconv.FormatInt(id, 10) != c.Param("id") {
		return 0, lending.Invalid(disbursementField, "%q must be a whole number", disbursementField)
	}
	return id, nil
}

// fundingChange reads what becomes of a disbursement, with the evidence.
func (e *edge) fundingChange(body *object) lending.FundingChange {
	to := parsed(body, "status", lending.ParseFundingMove)
	fields := make(map[string]string)
	for _, field := range lending.FundingFields() {
		if !body.has(field) {
			continue
		}
		if text, ok := body.str(field); ok {
			fields[field] = text
		}
	}
	change, err := lending.ParseFundingChange(to, fields, e.now())
	body.errs.Merge(err)
	return change
}
