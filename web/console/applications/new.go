package applications

import (
	"cmp"
	"context"
	"strings"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"drawbridge/internal/application"
	"drawbridge/internal/email"
	"drawbridge/internal/lending"
	"drawbridge/internal/operator"
	"drawbridge/internal/postgres"
	"drawbridge/internal/search"
	"drawbridge/views/paths"
	"drawbridge/views/ui"
	"drawbridge/web/console/action"
)

// newApplication creates an application whose source is the console.
func (f *Feature) newApplication() action.Spec {
	return action.Spec{
		Path: paths.ApplicationNew, Shown: "console.application.new",
		Sent: "console.application.create", Role: operator.RoleOperator,
		Confirm: func(ctx echo.Context) (action.Form, error) {
			fields, err := f.applicationForm(ctx)
			if err != nil {
				return action.Form{}, err
			}
			// The merchant's page links here with the merchant preselected.
			fields.Controls[0].Value = ctx.QueryParam("merchant")
			request, invalid := readApplication(ctx)
			if invalid == nil {
				merchant, err := f.Partners.Merchant(ctx.Request().Context(), request.MerchantUID)
				switch {
				case lending.ErrorCode(err) == lending.CodeNotFound:
					invalid = lending.Invalid("merchant_uid", `"merchant_uid" must be chosen from the list`)
				case err != nil:
					return action.Form{}, err
				}
				request.PartnerUID = merchant.PartnerUID
			}
			return action.Form{
				Place: applicationsPlace.Under(paths.Applications, ""), Fields: fields,
				Change: action.Change{
					Done: "Created. The welcome e-mail is on its way; run the decision next.",
					Do: func(ctx context.Context, tx *postgres.Tx) (operator.Outcome, error) {
						if invalid != nil {
							return operator.Outcome{}, invalid
						}
						app, err := f.Applications.Create(ctx, tx, request)
						uid := app.UID.String()
						return operator.Did(paths.To(paths.Application, uid),
							operator.NewEntry("application.create", uid, nil, map[string]any{
								"merchant_uid":     request.MerchantUID,
								"requested_amount": request.RequestedAmount,
							})), err
					},
				},
			}, nil
		},
	}
}

// applicationForm asks for the data of an application; its fields have the API's names.
func (f *Feature) applicationForm(asked echo.Context) (ui.Confirmation, error) {
	ctx := asked.Request().Context()
	chosen := cmp.Or(asked.FormValue("merchant_uid"), asked.QueryParam("merchant"))
	merchants, picker, err := f.Pick(ctx, search.Merchant, "Choose a merchant",
		asked.FormValue("merchant_uid"+ui.SoughtSuffix), chosen)
	if err != nil {
		return ui.Confirmation{}, err
	}
	hint := ""
	if len(merchants) == 1 && picker == nil {
		hint = "There is no merchant yet. Create a partner first, with its first merchant."
	}
	products, productPicker, err := f.Pick(ctx, search.Offered, "None in particular",
		asked.FormValue("product_uid"+ui.SoughtSuffix), asked.FormValue("product_uid"))
	if err != nil {
		return ui.Confirmation{}, err
	}
	return ui.Confirmation{
		Title: "New application", Action: paths.ApplicationNew, Cancel: paths.Applications,
		Submit: "Create and welcome the borrower", Wide: true, NoReason: true,
		Effects: []string{
			"E-mails to the borrower are enabled from the start, and the welcome e-mail goes out at " +
				"once. Creating an application is not a change of status, so no event is sent.",
		},
		Controls: f.applicationControls(
			ui.Control{
				Kind: ui.ControlSelect, Name: "merchant_uid", Label: "Merchant", Hint: hint,
				Options: merchants, Pick: picker,
			},
			ui.Control{
				Kind: ui.ControlSelect, Name: "product_uid", Label: "Product asked for",
				Options: products, Pick: productPicker,
			},
		),
	}, nil
}

// applicationControls returns the fields after the merchant and the product.
func (f *Feature) applicationControls(choices ...ui.Control) []ui.Control {
	line := func(name, label, hint string, limit int) ui.Control {
		return ui.Control{
			Name: name, Label: label, Hint: hint, MaxLength: limit, Autocomplete: "off",
			Required: !strings.Contains(hint, "Optional."),
		}
	}
	const name, text = application.MaxName, application.MaxLine
	return append(choices,
		line("requested_amount", "Requested amount", ui.AmountHint(f.Currency), 20),
		line("external_reference", "External reference",
			"The partner's own name for the application. Optional.", text),
		ui.Control{Kind: ui.ControlHeading, Label: "Borrower"},
		line("borrower.first_name", "First name", "", name),
		line("borrower.last_name", "Last name", "", name),
		line("borrower.email", "E-mail address", "", application.MaxEmail),
		line("borrower.phone", "Phone", "Optional.", name),
		line("borrower.annual_income", "Annual income",
			"Optional. It limits how much can be offered. "+ui.AmountHint(f.Currency), 20),
		ui.Control{Kind: ui.ControlHeading, Label: "Project"},
		line("project.name", "Project name", "", text),
		line("project.description", "Description", "Optional.", application.MaxText),
		line("project.address", "Address", "Optional.", text),
	)
}

// readApplication reads the form by the rules of the API, so that both refuse the same
// input.
func readApplication(ctx echo.Context) (application.NewApplication, error) {
	var errs lending.FieldErrors
	text := func(name string) string { return typed(ctx, name) }
	// Texts that appear in e-mails must pass the check of names.
	named := func(name string, limit int) string { return errs.Name(name, text(name), limit) }
	optional := func(name string, limit int) *string {
		if text(name) == "" {
			return nil
		}
		return new(errs.Text(name, text(name), limit))
	}
	address := errs.Text("borrower.email", text("borrower.email"), application.MaxEmail)
	errs.MergeOthers(email.CheckAddressOf("borrower.email", address))
	request := application.NewApplication{
		Source: lending.SourceConsole, MerchantUID: listed(ctx, "merchant_uid", &errs),
		ExternalReference: optional("external_reference", application.MaxLine),
		Borrower: application.Borrower{
			FirstName: named("borrower.first_name", application.MaxName),
			LastName:  named("borrower.last_name", application.MaxName),
			Email:     address,
			Phone:     optional("borrower.phone", application.MaxName),
		},
		Project: application.Project{
			Name:        named("project.name", application.MaxLine),
			Description: optional("project.description", application.MaxText),
			Address:     optional("project.address", application.MaxLine),
		},
	}
	readOffered(ctx, &request, &errs)
	return request, errs.Err()
}

// readOffered reads the requested amount, the product, and the income that limits the amount.
func readOffered(ctx echo.Context, request *application.NewApplication, errs *lending.FieldErrors) {
	const amount, product, income = "requested_amount", "product_uid", "borrower.annual_income"
	if before := len(*errs); typed(ctx, amount) == "" {
		errs.Add(amount, "%q is required", amount)
	} else if request.RequestedAmount = errs.Money(amount, typed(ctx, amount)); len(*errs) == before &&
		!request.RequestedAmount.IsPositive() {
		errs.Add(amount, "%q must be greater than 0", amount)
	}
	if typed(ctx, product) != "" {
		request.ProductUID = new(listed(ctx, product, errs))
	}
	if typed(ctx, income) != "" {
		request.Borrower.AnnualIncome = new(errs.Money(income, typed(ctx, income)))
	}
}

// typed returns the trimmed value of a field of the form.
func typed(ctx echo.Context, name string) string { return strings.TrimSpace(ctx.FormValue(name)) }

// listed returns the option that was chosen from a list of the form.
func listed(ctx echo.Context, name string, errs *lending.FieldErrors) uuid.UUID {
	uid, err := uuid.Parse(typed(ctx, name))
	if err != nil {
		errs.Add(name, "%q must be chosen from the list", name)
	}
	return uid
}
