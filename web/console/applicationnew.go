package console

import (
	"context"
	"net/http"
	"strings"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"drawbridge/internal/application"
	"drawbridge/internal/lending"
	"drawbridge/internal/operator"
	"drawbridge/internal/postgres"
	"drawbridge/views/paths"
	"drawbridge/views/ui"
)

// newApplicationForm asks for what an application consists of; its fields are
// called as the API calls them.
func (c *Console) newApplicationForm(ctx context.Context) (ui.AskForm, error) {
	owners, err := c.Applications.Owners(ctx, maxOptions)
	if err != nil {
		return ui.AskForm{}, err
	}
	products, err := c.Applications.ActiveProducts(ctx)
	if err != nil {
		return ui.AskForm{}, err
	}
	merchants := []ui.Option{{Label: "Choose a merchant"}}
	merchants = append(merchants, merchantOptions(owners)[1:]...)
	choices := []ui.Option{{Label: "None in particular"}}
	for _, product := range products {
		choices = append(choices, ui.Option{
			Value: product.UID, Label: product.Code + ", " + product.Name,
		})
	}
	line := func(name, label, hint string, limit int, required bool) ui.Control {
		return ui.Control{
			Name: name, Label: label, Hint: hint, MaxLength: limit, Required: required,
			Autocomplete: "off",
		}
	}
	const name, text = application.MaxName, application.MaxLine
	return ui.AskForm{
		Title: "New application", Action: paths.ApplicationNew, Cancel: paths.Applications,
		Submit: "Create and welcome the borrower", Wide: true, NoReason: true,
		Says: []string{
			"E-mails to the borrower are enabled from the start, and the welcome e-mail goes out at " +
				"once. Creating is no change of status, so no event is sent.",
		},
		Controls: []ui.Control{
			{
				Kind: ui.ControlSelect, Name: "merchant_uid", Label: "Merchant", Options: merchants,
			},
			{
				Kind: ui.ControlSelect, Name: "product_uid", Label: "Product asked for",
				Options: choices,
			},
			line("requested_amount", "Requested amount", "For example 12500.00.", 20, true),
			line("external_reference", "External reference",
				"The partner's own name for the application. Optional.", text, false),
			{Kind: ui.ControlHeading, Label: "Borrower"},
			line("borrower.first_name", "First name", "", name, true),
			line("borrower.last_name", "Last name", "", name, true),
			line("borrower.email", "E-mail address", "", application.MaxEmail, true),
			line("borrower.phone", "Phone", "Optional.", name, false),
			line("borrower.annual_income", "Annual income",
				"Optional. It limits how much can be offered.", 20, false),
			{Kind: ui.ControlHeading, Label: "Project"},
			line("project.name", "Name", "", text, true),
			line("project.description", "Description", "Optional.", application.MaxText, false),
			line("project.address", "Address", "Optional.", text, false),
		},
	}, nil
}

var newApplicationSpot = spot{
	section: ui.SectionApplications,
	crumbs:  []ui.Crumb{{Label: "Applications", Href: paths.Applications}},
}

// newApplication shows the form, with the merchant chosen where the reader came
// from its page.
func (c *Console) newApplication(ctx echo.Context) error {
	form, err := c.newApplicationForm(ctx.Request().Context())
	if err != nil {
		return err
	}
	form.Controls[0].Value = ctx.QueryParam("merchant")
	return c.showAsk(ctx, http.StatusOK, newApplicationSpot, form)
}

// createApplication makes an application whose source is the console.
func (c *Console) createApplication(ctx echo.Context) error {
	form, err := c.newApplicationForm(ctx.Request().Context())
	if err != nil {
		return err
	}
	form = typed(ctx, form)
	request, err := readNewApplication(ctx)
	if err != nil {
		return c.askAgain(ctx, newApplicationSpot, form, err)
	}
	merchant, err := c.Partners.Merchant(ctx.Request().Context(), request.MerchantUID)
	if err != nil {
		return c.askAgain(ctx, newApplicationSpot, form, merchantFault(err))
	}
	request.PartnerUID = merchant.PartnerUID
	return c.answerAsk(ctx, newApplicationSpot, form, commitment{
		done: "Created. The welcome e-mail is on its way; run the decision next.",
		do: func(ctx context.Context, tx *postgres.Tx) (operator.Entry, string, error) {
			app, err := c.Applications.Create(ctx, tx, request)
			return operator.Entry{
				Action: "application.create", SubjectKind: "application", Subject: app.UID.String(),
				After: map[string]any{
					"merchant_uid": request.MerchantUID, "requested_amount": request.RequestedAmount,
				},
			}, paths.To(paths.Application, app.UID.String()), err
		},
	})
}

// merchantFault makes a merchant that does not exist a fault of its field.
func merchantFault(err error) error {
	if lending.ErrorCode(err) == lending.CodeNotFound {
		return lending.Invalid("merchant_uid", `"merchant_uid" must be one of the list`)
	}
	return err
}

// readNewApplication reads the form by the rules of the API, so that both refuse
// the same.
func readNewApplication(ctx echo.Context) (application.NewApplication, error) {
	f := formReader{ctx: ctx}
	request := application.NewApplication{
		Source:            lending.SourceConsole,
		MerchantUID:       f.uid("merchant_uid"),
		RequestedAmount:   f.amount("requested_amount"),
		ExternalReference: f.optional("external_reference", application.MaxLine),
		Borrower: application.Borrower{
			FirstName: f.name("borrower.first_name", application.MaxName),
			LastName:  f.name("borrower.last_name", application.MaxName),
			Email:     f.line("borrower.email", application.MaxEmail),
			Phone:     f.optional("borrower.phone", application.MaxName),
		},
		Project: application.Project{
			Name:        f.name("project.name", application.MaxLine),
			Description: f.optional("project.description", application.MaxText),
			Address:     f.optional("project.address", application.MaxLine),
		},
	}
	if f.text("product_uid") != "" {
		product := f.uid("product_uid")
		request.ProductUID = &product
	}
	if f.text("borrower.annual_income") != "" {
		income := f.faults.Money("borrower.annual_income", f.text("borrower.annual_income"))
		request.Borrower.AnnualIncome = &income
	}
	return request, f.faults.Err()
}

// formReader reads fields of a form and collects all that is wrong with them.
type formReader struct {
	ctx    echo.Context
	faults lending.Faults
}

func (f *formReader) text(name string) string { return strings.TrimSpace(f.ctx.FormValue(name)) }

func (f *formReader) line(name string, limit int) string {
	return f.faults.Text(name, f.text(name), limit)
}

// name is a line that stands in mails.
func (f *formReader) name(name string, limit int) string {
	return f.faults.Name(name, f.text(name), limit)
}

func (f *formReader) optional(name string, limit int) *string {
	if f.text(name) == "" {
		return nil
	}
	text := f.line(name, limit)
	return &text
}

func (f *formReader) amount(name string) lending.Money {
	if f.text(name) == "" {
		f.faults.Add(name, "%q is required", name)
		return lending.Money{}
	}
	before := len(f.faults)
	amount := f.faults.Money(name, f.text(name))
	if len(f.faults) == before && !amount.IsPositive() {
		f.faults.Add(name, "%q must be greater than 0", name)
	}
	return amount
}

func (f *formReader) uid(name string) uuid.UUID {
	uid, err := uuid.Parse(f.text(name))
	if err != nil {
		f.faults.Add(name, "%q must be one of the list", name)
	}
	return uid
}
