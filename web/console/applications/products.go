package applications

import (
	"context"
	"net/http"
	"strconv"

	"github.com/a-h/templ"
	"github.com/labstack/echo/v4"

	"drawbridge/internal/catalog"
	"drawbridge/internal/lending"
	"drawbridge/internal/operator"
	"drawbridge/internal/postgres"
	"drawbridge/views/applications"
	"drawbridge/views/paths"
	"drawbridge/views/ui"
	"drawbridge/web/console/action"
	"drawbridge/web/console/page"
)

// products lists the products.
func (f *Feature) products(ctx echo.Context) error {
	found, err := f.Products.List(ctx.Request().Context())
	if err != nil {
		return err
	}
	return f.Show(ctx, http.StatusOK, productsPlace, applications.Products(found))
}

// newProduct adds a product; the form previews the stages of its schedule.
func (f *Feature) newProduct() action.Spec {
	return action.Spec{
		Path: paths.ProductNew, Shown: "console.product.new", Sent: "console.product.create",
		Role: operator.RoleAdmin,
		Confirm: func(ctx echo.Context) (action.Form, error) {
			line := func(name, label, hint string, limit int) ui.Control {
				return ui.Control{
					Name: name, Label: label, Hint: hint, MaxLength: limit, Required: true,
					Autocomplete: "off",
				}
			}
			preview := line("preview", "Preview for a loan of", "Not kept: only for the preview.", 20)
			preview.Required, preview.Value = false, "10000.00"
			least := line("min", "Lends at least", "For example 1000.00.", 20)
			most := line("max", "Lends at most", "For example 100000.00.", 20)
			least.Thing, most.Thing = "the lowest amount", "the highest amount"
			form := ui.Confirmation{
				Title: "New product", Action: paths.ProductNew, Cancel: paths.Products, Wide: true,
				Submit: "Create and offer it", Preview: paths.ProductNew,
				PreviewLabel: "Preview the stages",
				Effects: []string{
					"Decisions offer it from now on. Applications that are decided, and their loans, are " +
						"not affected. Its terms can never be changed; it can only be taken off offer.",
				},
				Controls: []ui.Control{
					line("code", "Code", `Letters, digits, "-", "_" and "."; partners see it.`, 60),
					line("name", "Name", "", 200),
					line("term", "Term in months", "For example 120.", 4),
					line("rate", "Interest rate in percent", "A year, for example 7.99.", 8),
					line("fee", "Merchant fee in percent", "Of each draw, for example 3.75.", 8),
					line("schedule", "Schedule", "Shares of the draws, in percent, such as 40,40,20. "+
						"They must add up to exactly 100.", 500),
					least, most,
					overdueControl("16"), preview,
				},
			}
			if ctx.QueryParam("schedule") != "" || ctx.QueryParam("code") != "" {
				form = action.Typed(ctx, form)
			}
			request := catalog.NewProduct{
				Code: ctx.FormValue("code"), Name: ctx.FormValue("name"), Term: ctx.FormValue("term"),
				Rate: ctx.FormValue("rate"), Fee: ctx.FormValue("fee"),
				Schedule: ctx.FormValue("schedule"), Min: ctx.FormValue("min"), Max: ctx.FormValue("max"),
				OverdueHours: ctx.FormValue("overdue_hours"),
			}
			return action.Form{
				Place: productsPlace.Under(paths.Products, form.Title), Fields: form, Page: previewed,
				Change: action.Change{
					Done: "Created. Decisions offer it from now on.",
					Do: func(ctx context.Context, tx *postgres.Tx) (operator.Outcome, error) {
						made, err := f.Products.Create(ctx, tx, request)
						return operator.Did(paths.Products, operator.NewEntry("product.create", made.UID, nil,
							map[string]any{"code": made.Code, "schedule": made.Schedule})), err
					},
				},
			}, nil
		},
	}
}

// overdueControl asks for the time after which a draw is overdue.
func overdueControl(hours string) ui.Control {
	return ui.Control{
		Name: "overdue_hours", Label: "Overdue after", Value: hours, MaxLength: 3, Required: true,
		Autocomplete: "off", Hint: "Business hours that a draw may be requested, and then again " +
			"processing, before it is overdue: 1 to 400.",
	}
}

// changeOverdue sets the time after which draws of a product are overdue.
func (f *Feature) changeOverdue() action.Spec {
	return action.Spec{
		Path: paths.ProductOverdue, Shown: "console.product.overdue",
		Sent: "console.product.overdue.submit", Role: operator.RoleAdmin,
		Confirm: func(ctx echo.Context) (action.Form, error) {
			uid, err := page.UID(ctx)
			if err != nil {
				return action.Form{}, err
			}
			found, err := f.Products.Product(ctx.Request().Context(), uid)
			if err != nil {
				return action.Form{}, err
			}
			form := ui.Confirmation{
				Title: "Overdue draws of " + found.Code, Submit: "Save",
				Action: paths.To(paths.ProductOverdue, found.UID), Cancel: paths.Products,
				Effects:  []string{"Holds at once, also for draws that are under way."},
				Controls: []ui.Control{overdueControl(strconv.Itoa(found.OverdueHours))},
			}
			wanted := ctx.FormValue("overdue_hours")
			return action.Form{
				Place: productsPlace.Under(paths.Products, form.Title), Fields: form,
				Change: action.Change{
					Done: "Saved.", Unchanged: "It was so already.",
					Do: func(request context.Context, tx *postgres.Tx) (operator.Outcome, error) {
						before, after, err := f.Products.SetOverdueHours(request, tx, uid, wanted)
						if err != nil || before.OverdueHours == after.OverdueHours {
							return operator.Outcome{Target: paths.Products}, err
						}
						return operator.Did(paths.Products, operator.NewEntry("product.overdue", found.UID,
							map[string]any{"overdue_hours": before.OverdueHours},
							map[string]any{"overdue_hours": after.OverdueHours})), nil
					},
				},
			}, nil
		},
	}
}

// previewed renders the form with a preview of the stages of its schedule.
func previewed(form ui.Confirmation) templ.Component {
	var schedule, preview *ui.Control
	for i := range form.Controls {
		switch form.Controls[i].Name {
		case "schedule":
			schedule = &form.Controls[i]
		case "preview":
			preview = &form.Controls[i]
		}
	}
	if schedule.Value == "" {
		return applications.ProductForm(form, lending.Money{}, nil)
	}
	parsed, err := lending.ParseSchedule(schedule.Value)
	amount, amountErr := lending.ParseMoney(preview.Value)
	switch {
	case err != nil && schedule.Error == "":
		schedule.Error = "The schedule " + err.Error() + "."
	case amountErr != nil:
		preview.Error = "The amount " + amountErr.Error() + "."
	case err == nil:
		return applications.ProductForm(form, amount, parsed.Stages(amount))
	}
	return applications.ProductForm(form, lending.Money{}, nil)
}

// switchProduct starts or stops offering a product.
func (f *Feature) switchProduct() action.Spec {
	return action.Spec{
		Path: paths.ProductActive, Shown: "console.product.switch",
		Sent: "console.product.switch.submit", Role: operator.RoleAdmin,
		Confirm: func(ctx echo.Context) (action.Form, error) {
			uid, err := page.UID(ctx)
			if err != nil {
				return action.Form{}, err
			}
			found, err := f.Products.Product(ctx.Request().Context(), uid)
			if err != nil {
				return action.Form{}, err
			}
			form := ui.Confirmation{
				Title: "Offer " + found.Code, Submit: "Offer it",
				Effects: []string{"Decisions offer it from now on. What is decided is not affected."},
				Hidden:  []ui.HiddenField{{Name: "to", Value: "on"}},
			}
			if found.Active {
				form = ui.Confirmation{
					Title: "Stop offering " + found.Code, Submit: "Stop offering it", Danger: true,
					Effects: []string{
						"Decisions no longer offer it. Offers that were made can still be accepted, and " +
							"existing loans go on unaffected. It can be offered again at any time.",
					},
					Hidden: []ui.HiddenField{{Name: "to", Value: "off"}},
				}
			}
			form.Action, form.Cancel = paths.To(paths.ProductActive, found.UID), paths.Products
			wanted := ctx.FormValue("to") == "on"
			return action.Form{
				Place: productsPlace.Under(paths.Products, form.Title), Fields: form,
				Change: action.Change{
					Done: "Changed.", Unchanged: "It was so already.",
					Do: func(request context.Context, tx *postgres.Tx) (operator.Outcome, error) {
						if wanted == found.Active {
							return operator.Outcome{Target: paths.Products}, nil
						}
						err := f.Products.SetActive(request, tx, uid, wanted)
						return operator.Did(paths.Products, operator.NewEntry("product.active", found.UID,
							map[string]any{"active": found.Active}, map[string]any{"active": wanted})), err
					},
				},
			}, nil
		},
	}
}
