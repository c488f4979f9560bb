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

// sandbox plays the lender's part, so that a partner alone can walk a loan from end to end.
// It is not registered in production.
type sandbox struct {
	*edge

	applications *application.Service
	loans        *loan.Service
	scenarios    *scenario.Service
}

// routes returns the operations that play the lender's part.
func (s *sandbox) routes() []Route {
	tasks := tasks{s.edge, s.applications}
	return []Route{
		post("/v2/sandbox/scenario", "sandboxScenario", s.sandboxScenario),
		post("/v2/sandbox/application/:uid/status", "sandboxStatus",
			sandboxMove(s.edge, status(lending.ParseApplicationStatus), s.applications.Move)),
		post("/v2/sandbox/application/:uid/amount", "sandboxAmount",
			sandboxMove(s.edge, readAmount, s.applications.ChangeAmount)),
		post("/v2/sandbox/application/:uid/terms", "sandboxTerms",
			sandboxMove(s.edge, readTerms, s.applications.ChangeTerms)),
		post("/v2/sandbox/application/:uid/document", "sandboxDocument",
			sandboxMove(s.edge, status(lending.ParseDocumentStatus), s.applications.RecordDocument)),
		post("/v2/sandbox/application/:uid/task", "sandboxTask", tasks.add),
		post("/v2/sandbox/task/:uid/status", "sandboxTaskStatus", tasks.move),
		post("/v2/sandbox/disbursement/:id/status", "sandboxFunding", s.sandboxFunding),
	}
}

// applicationField names the uid of an application's path.
const applicationField = "uid"

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
			answer := scenarioBody{UID: played.ApplicationUID, Steps: played.Steps}
			if played.HasLoan {
				answer.Loan = &played.ApplicationUID
			}
			return http.StatusCreated, answer, err
		}
	})
}

// changeOf changes an application to the given value.
type changeOf[T any] func(
	ctx context.Context, tx *postgres.Tx, by loan.Caller, uid uuid.UUID, to T,
) (application.Application, error)

// sandboxMove changes an application to the value that read finds in the body.
func sandboxMove[T any](e *edge, read func(body *object) T, change changeOf[T]) echo.HandlerFunc {
	return func(c echo.Context) error {
		uid, pathErr := pathUID(c, applicationField)
		return e.jsonEffect(c, pathErr, func(body *object) operation {
			to := read(body)
			return func(tx *postgres.Tx) (int, any, error) {
				app, err := change(c.Request().Context(), tx, actor(c), uid, to)
				return http.StatusOK, newApplicationBody(app), err
			}
		})
	}
}

// parsed reads a required string field with a parser of package lending.
func parsed[T any](body *object, field string, parse func(string) (T, error)) (value T) {
	text, ok := body.given(field, true)
	if !ok {
		return value
	}
	value, err := parse(text)
	body.errs.Merge(err)
	return value
}

// status reads the new status of an application, its documents or a task.
func status[T any](parse func(string) (T, error)) func(body *object) T {
	return func(body *object) T { return parsed(body, "status", parse) }
}

func readAmount(body *object) lending.Money { return body.money("approved_amount") }

func readTerms(body *object) lending.Terms {
	texts := make(map[string]*string)
	before := len(*body.errs)
	for _, field := range []string{"term", "interest_rate", "merchant_fee_percentage"} {
		if text, ok := body.given(field, false); ok {
			texts[field] = &text
		}
	}
	if len(*body.errs) > before && len(texts) == 0 {
		return lending.Terms{} // the field is not a string, which was reported
	}
	terms, err := lending.ParseTerms(
		texts["term"], texts["interest_rate"], texts["merchant_fee_percentage"])
	body.errs.Merge(err)
	return terms
}

func (s *sandbox) sandboxFunding(c echo.Context) error {
	id, pathErr := pathNumber(c)
	return s.jsonEffect(c, pathErr, func(body *object) operation {
		change := s.fundingChange(body)
		return func(tx *postgres.Tx) (int, any, error) {
			disbursement, _, err := s.loans.MoveFunding(
				c.Request().Context(), tx, actor(c), id, change)
			return http.StatusOK, newHistoryBody(disbursement), err
		}
	})
}

// disbursementField names the number of a disbursement.
const disbursementField = "merchantDisbursementId"

// pathNumber reads the disbursement's number from the path. Error: VALIDATION_ERROR.
func pathNumber(c echo.Context) (int64, error) {
	id, err := strconv.ParseInt(c.Param("id"), 10, 64)
	if err != nil || id < 1 || strconv.FormatInt(id, 10) != c.Param("id") {
		return 0, lending.Invalid(disbursementField, "%q must be a whole number", disbursementField)
	}
	return id, nil
}

// fundingChange reads the new status of a disbursement, with the evidence.
func (e *edge) fundingChange(body *object) lending.FundingChange {
	to := parsed(body, "status", lending.ParseFundingMove)
	fields := make(map[string]string)
	for _, field := range lending.FundingFields() {
		if text, ok := body.given(field, false); ok {
			fields[field] = text
		}
	}
	change, err := lending.ParseFundingChange(to, fields, e.now())
	body.errs.Merge(err)
	return change
}
