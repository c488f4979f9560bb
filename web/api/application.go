package api

import (
	"net/http"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"drawbridge/internal/application"
	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
)

// applications serves loan applications.
type applications struct {
	*edge

	service *application.Service
}

// routes returns the operations on applications.
func (a *applications) routes() []Route {
	return []Route{
		{
			Method: http.MethodPost, Path: "/v2/application", Alias: "/application",
			Name: "createApplication", Handler: a.createApplication,
		},
		get("/v2/application", "listApplications", a.listApplications).forAll(),
		{
			Method: http.MethodPost, Path: "/v2/application/create-run-decision",
			Alias: "/application/create-run-decision",
			Name:  "runDecision", Handler: a.runDecision,
		},
		{
			Method: http.MethodPut, Path: "/v2/application/accept-offer",
			Name: "acceptOffer", Handler: a.acceptOffer,
		},
		get("/v2/application/:uid", "getApplication", a.getApplication),
	}
}

// applicationBody is the application object.
type applicationBody struct {
	UID               uuid.UUID            `json:"thrive_application_uid"`
	MerchantUID       uuid.UUID            `json:"merchant_uid"`
	ExternalReference *string              `json:"external_reference"`
	Status            string               `json:"status"`
	Communications    string               `json:"communications"`
	Source            string               `json:"source"`
	RequestedAmount   lending.Money        `json:"requested_amount"`
	Borrower          application.Borrower `json:"borrower"`
	Project           application.Project  `json:"project"`
	Offers            []lending.Offer      `json:"offers"`
	Variables         variablesBody        `json:"variables"`
	CreatedAt         string               `json:"created_at"`
	UpdatedAt         string               `json:"updated_at"`
}

// variablesBody holds the variables that accept-offer sets (specification section 2.5).
type variablesBody struct {
	OfferSelected   bool    `json:"offer_selected"`
	SelectedProduct *string `json:"selected_product"`
}

func newApplicationBody(app application.Application) applicationBody {
	return applicationBody{
		UID:               app.UID,
		MerchantUID:       app.MerchantUID,
		ExternalReference: app.ExternalReference,
		Status:            string(app.Status),
		Communications:    string(app.Communications),
		Source:            string(app.Source),
		RequestedAmount:   app.RequestedAmount,
		Borrower:          app.Borrower,
		Project:           app.Project,
		Offers:            append([]lending.Offer{}, app.Offers...),
		Variables: variablesBody{
			app.SelectedProductUID != nil, postgres.OrNull(app.SelectedProductCode),
		},
		CreatedAt: formatTime(app.CreatedAt),
		UpdatedAt: formatTime(app.UpdatedAt),
	}
}

func (a *applications) createApplication(c echo.Context) error {
	return a.jsonEffect(c, nil, func(body *object) operation {
		request := readNewApplication(body)
		caller := callerOf(c)
		request.Source = lending.SourcePartner
		request.PartnerUID, request.MerchantUID = caller.PartnerUID, caller.MerchantUID
		return func(tx *postgres.Tx) (int, any, error) {
			app, err := a.service.Create(c.Request().Context(), tx, request)
			return http.StatusCreated, newApplicationBody(app), err
		}
	})
}

func readNewApplication(body *object) application.NewApplication {
	request := application.NewApplication{
		RequestedAmount:   body.money("requested_amount"),
		ProductUID:        body.optionalUID("product_uid"),
		ExternalReference: body.optionalText("external_reference", maxLine),
	}
	borrower := body.child("borrower")
	if borrower.raw != nil {
		request.Borrower = application.Borrower{
			FirstName:    borrower.linkless("first_name", maxName),
			LastName:     borrower.linkless("last_name", maxName),
			Email:        borrower.email("email"),
			Phone:        borrower.optionalText("phone", maxName),
			AnnualIncome: borrower.optionalMoney("annual_income"),
		}
	}
	project := body.child("project")
	if project.raw != nil {
		request.Project = application.Project{
			Name:        project.linkless("name", maxLine),
			Description: project.optionalLines("description", maxText),
			Address:     project.optionalLines("address", maxLine),
		}
	}
	return request
}

func (a *applications) runDecision(c echo.Context) error {
	return a.jsonEffect(c, nil, func(body *object) operation {
		uid := body.uid("thrive_application_uid")
		return func(tx *postgres.Tx) (int, any, error) {
			app, err := a.service.RunDecision(c.Request().Context(), tx, actor(c), uid)
			return http.StatusOK, newApplicationBody(app), err
		}
	})
}

// acceptedBody is the answer of accept-offer (specification section 2.5).
type acceptedBody struct {
	UID           uuid.UUID `json:"thrive_application_uid"`
	OfferSelected bool      `json:"offer_selected"`
}

func (a *applications) acceptOffer(c echo.Context) error {
	return a.jsonEffect(c, nil, func(body *object) operation {
		acceptance := application.Acceptance{
			ApplicationUID: body.uid("thrive_application_uid"),
			ProductUID:     body.uid("selected_product_uid"),
			Linked:         body.optionalUIDs("linked_application_uids"),
		}
		return func(tx *postgres.Tx) (int, any, error) {
			_, err := a.service.AcceptOffer(c.Request().Context(), tx, actor(c), acceptance)
			return http.StatusOK, acceptedBody{acceptance.ApplicationUID, true}, err
		}
	})
}

// applicationList is the name of the list in its cursors.
const applicationList = "applications"

func (a *applications) listApplications(c echo.Context) error {
	query := readQuery(c)
	wanted := application.Wanted{
		MerchantUIDs: merchantsOf(c),
		Reference:    query.text("external_reference", maxLine),
		CreatedSince: query.moment("created_since"),
	}
	page := query.page(applicationList)
	wanted.Status = given(query, "status", lending.ParseApplicationStatus)
	if err := query.errs.Err(); err != nil {
		return err
	}
	found, next, err := a.service.Find(c.Request().Context(), wanted, page)
	return a.answer(c, map[string]any{
		"applications": each(found, newApplicationBody), "next_cursor": cursorOf(applicationList, next),
	}, err)
}

func (a *applications) getApplication(c echo.Context) error {
	uid, err := pathUID(c, "thrive_application_uid")
	if err != nil {
		return err
	}
	app, err := a.service.Get(c.Request().Context(), actor(c), uid)
	return a.answer(c, newApplicationBody(app), err)
}
