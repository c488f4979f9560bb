package console

import (
	"context"
	"net/http"

	"github.com/labstack/echo/v4"

	"drawbridge/internal/catalog"
	"drawbridge/internal/lending"
	"drawbridge/internal/operator"
	"drawbridge/internal/postgres"
	"drawbridge/views/applications"
	"drawbridge/views/paths"
	"drawbridge/views/ui"
)

// products lists what may be offered.
func (c *Console) products(ctx echo.Context) error {
	found, err := c.Products.List(ctx.Request().Context())
	if err != nil {
		return err
	}
	page := applications.ProductList{}
	for _, p := range found {
		page.Rows = append(page.Rows, applications.ProductRow{
			UID: p.UID, Code: p.Code, Name: p.Name, Term: p.Term, Rate: p.InterestRate.String(),
			Fee: p.MerchantFeePercentage.String(), Schedule: p.Schedule.String(),
			Min: ui.Amount(p.Min), Max: ui.Amount(p.Max), Active: p.Active, Created: p.CreatedAt,
		})
	}
	page.Frame, err = c.frame(ctx, ui.SectionProducts, "Products", ui.Crumb{Label: "Products"})
	if err != nil {
		return err
	}
	page.Notice = c.takeNotice(ctx)
	return render(ctx, http.StatusOK, applications.ProductListPage(page))
}

var productsSpot = spot{
	section: ui.SectionProducts,
	crumbs:  []ui.Crumb{{Label: "Products", Href: paths.Products}},
}

func productForm() ui.AskForm {
	line := func(name, label, hint string, limit int) ui.Control {
		return ui.Control{
			Name: name, Label: label, Hint: hint, MaxLength: limit, Required: true, Autocomplete: "off",
		}
	}
	preview := line("preview", "Preview for a loan of", "Not kept: only for the preview.", 20)
	preview.Required, preview.Value = false, "10000.00"
	return ui.AskForm{
		Title: "New product", Action: paths.ProductNew, Cancel: paths.Products, Wide: true,
		Submit: "Create and offer it", Preview: paths.ProductNew, PreviewLabel: "Preview the stages",
		Says: []string{
			"Decisions offer it from now on. Applications that are decided, and their loans, are not " +
				"affected. Its terms can never be changed; it can only be taken off offer.",
		},
		Controls: []ui.Control{
			line("code", "Code", "Letters, digits, \"-\", \"_\" and \".\"; partners see it.", 60),
			line("name", "Name", "", 200),
			line("term", "Term in months", "For example 120.", 4),
			line("rate", "Interest rate in percent", "A year, for example 7.99.", 8),
			line("fee", "Merchant fee in percent", "Of each draw, for example 3.75.", 8),
			line("schedule", "Schedule", "Shares of the draws, in percent, such as 40,40,20. They must "+
				"add up to exactly 100.", 500),
			line("min", "Lends at least", "For example 1000.00.", 20),
			line("max", "Lends at most", "For example 100000.00.", 20),
			preview,
		},
	}
}

// newProduct shows the form, and with a schedule in the address its preview.
func (c *Console) newProduct(ctx echo.Context) error {
	form := productForm()
	if ctx.QueryParam("schedule") != "" || ctx.QueryParam("code") != "" {
		form = typed(ctx, form)
	}
	return c.showProduct(ctx, http.StatusOK, form)
}

// showProduct shows the form with the stages that its schedule would make.
func (c *Console) showProduct(ctx echo.Context, status int, form ui.AskForm) error {
	frame, err := c.frame(ctx, productsSpot.section, form.Title,
		append(productsSpot.crumbs, ui.Crumb{Label: form.Title})...)
	if err != nil {
		return err
	}
	page := applications.ProductForm{Frame: frame, Form: form}
	values := map[string]int{}
	for i, control := range form.Controls {
		values[control.Name] = i
	}
	at, sum := values["schedule"], values["preview"]
	if text := form.Controls[at].Value; text != "" {
		schedule, err := lending.ParseSchedule(text)
		amount, amountErr := lending.ParseMoney(form.Controls[sum].Value)
		switch {
		case err != nil && form.Controls[at].Fault == "":
			page.Form.Controls[at].Fault = "The schedule " + err.Error() + "."
		case amountErr != nil:
			page.Form.Controls[sum].Fault = "The amount " + amountErr.Error() + "."
		case err == nil:
			page.PreviewAmount = ui.Amount(amount)
			for _, stage := range schedule.Stages(amount) {
				page.Stages = append(page.Stages, applications.StageView{
					Number: stage.Number, Percent: stage.Percent.String(),
					Scheduled: ui.Amount(stage.Scheduled),
				})
			}
		}
	}
	return render(ctx, status, applications.ProductNewPage(page))
}

// createProduct adds a product.
func (c *Console) createProduct(ctx echo.Context) error {
	form := typed(ctx, productForm())
	request := catalog.NewProduct{
		Code: ctx.FormValue("code"), Name: ctx.FormValue("name"), Term: ctx.FormValue("term"),
		Rate: ctx.FormValue("rate"), Fee: ctx.FormValue("fee"), Schedule: ctx.FormValue("schedule"),
		Min: ctx.FormValue("min"), Max: ctx.FormValue("max"),
	}
	target, err := c.commit(ctx, commitment{
		done: "Created. Decisions offer it from now on.",
		do: func(ctx context.Context, tx *postgres.Tx) (operator.Entry, string, error) {
			made, err := c.Products.Create(ctx, tx, request)
			return operator.Entry{
				Action: "product.create", SubjectKind: "product", Subject: made.UID,
				After: map[string]any{"code": made.Code, "schedule": made.Schedule},
			}, paths.Products, err
		},
	})
	if err == nil {
		return ctx.Redirect(http.StatusSeeOther, target)
	}
	if refusal, ok := formRefusal(err); ok {
		return c.showProduct(ctx, c.Status(refusal.Code), refused(form, refusal))
	}
	return err
}

// switchProduct asks whether a product is put on offer or taken off, and does it.
func (c *Console) switchProduct(ctx echo.Context) error {
	uid, err := pathUID(ctx)
	if err != nil {
		return err
	}
	found, err := c.Products.Product(ctx.Request().Context(), uid)
	if err != nil {
		return err
	}
	to := !found.Active
	form := ui.AskForm{
		Title: "Offer " + found.Code, Submit: "Offer it",
		Action: paths.To(paths.ProductActive, found.UID),
		Cancel: paths.Products,
		Says:   []string{"Decisions offer it from now on. What is decided is not affected."},
		Hidden: moveTo("on"),
	}
	if !to {
		form.Title, form.Submit, form.Danger = "Stop offering "+found.Code, "Stop offering it", true
		form.Says = []string{
			"Decisions no longer offer it. Offers that were made can still be accepted, and existing " +
				"loans go on unaffected. It can be offered again at any time.",
		}
		form.Hidden = moveTo("off")
	}
	if !isSent(ctx) {
		return c.showAsk(ctx, http.StatusOK, productsSpot, form)
	}
	wanted := ctx.FormValue("to") == "on"
	return c.answerAsk(ctx, productsSpot, form, commitment{
		done: "Changed.", unchanged: "It was so already.",
		do: func(request context.Context, tx *postgres.Tx) (operator.Entry, string, error) {
			if wanted == found.Active {
				return operator.Entry{}, paths.Products, nil
			}
			err := c.Products.SetActive(request, tx, uid, wanted)
			return operator.Entry{
				Action: "product.active", SubjectKind: "product", Subject: found.UID,
				Before: map[string]any{"active": found.Active}, After: map[string]any{"active": wanted},
			}, paths.Products, err
		},
	})
}
