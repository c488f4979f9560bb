package console

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"

	"github.com/labstack/echo/v4"

	"drawbridge/internal/lending"
	"drawbridge/internal/operator"
	"drawbridge/internal/postgres"
	"drawbridge/internal/retention"
	"drawbridge/views/operations"
	"drawbridge/views/paths"
	"drawbridge/views/ui"
)

// settingsRoutes lists the pages and actions of the settings.
func (c *Console) settingsRoutes() []Route {
	const admin = operator.RoleAdmin
	return []Route{
		{http.MethodGet, paths.Settings, "console.settings", admin, c.settings},
		{
			http.MethodPost, paths.SettingsSignIn, "console.settings.signIn", admin,
			c.proven(c.saveSignIn),
		},
		{
			http.MethodPost, paths.SettingsRetention, "console.settings.retention", admin,
			c.saveRetention,
		},
		{http.MethodGet, paths.SettingsHealth, "console.settings.health", admin, c.healthSettings},
		{
			http.MethodPost, paths.SettingsHealth, "console.settings.health.submit", admin,
			c.healthSettings,
		},
	}
}

// settings shows what can be set, and what the environment sets.
func (c *Console) settings(ctx echo.Context) error {
	stored, err := c.Retention.Settings(ctx.Request().Context())
	if err != nil {
		return err
	}
	return c.showSettings(ctx, http.StatusOK, retentionForm(stored))
}

func (c *Console) showSettings(
	ctx echo.Context, status int, form operations.RetentionForm,
) error {
	needed, err := c.Operators.SecondFactorRoles(ctx.Request().Context())
	if err != nil {
		return err
	}
	frame, err := c.frame(ctx, ui.SectionSettings, "Settings", ui.Crumb{Label: "Settings"})
	if err != nil {
		return err
	}
	frame.Notice = c.takeNotice(ctx)
	page := operations.Settings{Frame: frame, Retention: form, Config: c.Configuration}
	if c.Provider != nil {
		page.Provider = c.Provider.Name
	}
	for _, role := range operator.Roles() {
		page.Roles = append(page.Roles, operations.RoleCheck{
			Role: string(role), Checked: slices.Contains(needed, role),
		})
	}
	return render(ctx, status, operations.SettingsPage(page))
}

func retentionForm(settings retention.Settings) operations.RetentionForm {
	return operations.RetentionForm{
		Months: strconv.Itoa(settings.Months), BodyDays: strconv.Itoa(settings.BodyDays),
		EmailDays:   strconv.Itoa(settings.EmailBodyDays),
		RequestDays: strconv.Itoa(settings.APIRequestDays),
	}
}

// saveSignIn sets which roles must have a second factor.
func (c *Console) saveSignIn(ctx echo.Context) error {
	values, err := ctx.FormParams()
	if err != nil {
		return lending.NewError(lending.CodeValidation, "The form cannot be read.").WithCause(err)
	}
	roles := []operator.Role{}
	for _, name := range values["roles"] {
		roles = append(roles, operator.Role(name))
	}
	target, err := c.act(ctx, func(request context.Context, tx *postgres.Tx) (string, error) {
		before, err := c.Operators.RequireSecondFactor(request, tx, roles)
		if err != nil {
			return "", err
		}
		return paths.Settings, c.Operators.Audit(request, tx, operator.Entry{
			Actor: currentUser(ctx).Email, Address: ctx.RealIP(), Action: "settings.sign_in",
			SubjectKind: "settings", Subject: "sign_in",
			Before: map[string]any{"second_factor_roles": before},
			After:  map[string]any{"second_factor_roles": roles},
		})
	})
	if err != nil {
		return err
	}
	c.leaveNotice(ctx, "Saved. It holds from everybody's next click on.")
	return ctx.Redirect(http.StatusSeeOther, target)
}

// saveRetention says what the settings would remove, and saves them when that
// was confirmed.
func (c *Console) saveRetention(ctx echo.Context) error {
	settings, form := readRetention(ctx)
	err := settings.Check()
	if len(form.Faults) > 0 {
		return c.showSettings(ctx, http.StatusBadRequest, form)
	}
	if refusal, ok := errors.AsType[*lending.Error](err); ok && len(refusal.Details) > 0 {
		form.Faults = labelled(refusal.Details, map[string]string{
			"metadata_months": "the number of months", "body_days": "the number of days",
			"email_body_days": "the number of days", "api_request_days": "the number of days",
		})
		return c.showSettings(ctx, http.StatusBadRequest, form)
	}
	if err != nil {
		return err
	}
	if ctx.FormValue("confirm") != "yes" {
		return c.planRetention(ctx, settings, form)
	}
	target, err := c.act(ctx, func(request context.Context, tx *postgres.Tx) (string, error) {
		user := currentUser(ctx)
		before, after, err := c.Retention.SaveSettings(request, tx, settings, user.Email)
		if err != nil {
			return "", err
		}
		return paths.Settings, c.Operators.Audit(request, tx, operator.Entry{
			Actor: user.Email, Address: ctx.RealIP(), Action: "settings.retention",
			SubjectKind: "settings", Subject: "retention",
			Before: retentionState(before), After: retentionState(after),
		})
	})
	if err != nil {
		return err
	}
	c.leaveNotice(ctx, "Saved. The next run keeps things for that long.")
	return ctx.Redirect(http.StatusSeeOther, target)
}

// retentionState is how the audit log writes the settings.
func retentionState(settings retention.Settings) map[string]any {
	return map[string]any{
		"metadata_months": settings.Months, "body_days": settings.BodyDays,
		"email_body_days": settings.EmailBodyDays, "api_request_days": settings.APIRequestDays,
	}
}

// readRetention reads the form; what is no number is named in its faults.
func readRetention(ctx echo.Context) (retention.Settings, operations.RetentionForm) {
	form := operations.RetentionForm{
		Months: ctx.FormValue("metadata_months"), BodyDays: ctx.FormValue("body_days"),
		EmailDays: ctx.FormValue("email_body_days"), RequestDays: ctx.FormValue("api_request_days"),
		Faults: map[string]string{},
	}
	number := func(name string) int {
		count, err := strconv.Atoi(ctx.FormValue(name))
		if err != nil {
			form.Faults[name] = "This is not a whole number."
		}
		return count
	}
	return retention.Settings{
		Months: number("metadata_months"), BodyDays: number("body_days"),
		EmailBodyDays: number("email_body_days"), APIRequestDays: number("api_request_days"),
	}, form
}

// planRetention shows what the settings would remove.
func (c *Console) planRetention(
	ctx echo.Context, settings retention.Settings, form operations.RetentionForm,
) error {
	plan, err := c.Retention.Plan(ctx.Request().Context(), settings)
	if err != nil {
		return err
	}
	frame, err := c.frame(ctx, ui.SectionSettings, "What would go",
		ui.Crumb{Label: "Settings", Href: paths.Settings},
		ui.Crumb{Label: "What would go"})
	if err != nil {
		return err
	}
	return render(ctx, http.StatusOK, operations.RetentionPlanPage(operations.RetentionPlan{
		Frame: frame, Form: form, Lines: planLines(plan),
	}))
}

// planLines tells a plan in words.
func planLines(plan retention.Plan) []string {
	lines := []string{
		counted(plan.Events, "event loses its body", "events lose their bodies"),
		counted(plan.Deliveries, "delivery loses", "deliveries lose") +
			" the headers and bodies of their attempts",
		counted(plan.Emails, "e-mail loses its text", "e-mails lose their texts"),
	}
	for _, month := range plan.Months {
		lines = append(lines, "The month "+month.Month+" goes: about "+
			counted(int(month.Deliveries), "delivery", "deliveries")+", of which "+
			ui.Number(month.Held)+" stay under a hold and "+
			ui.Number(month.Open)+" because they are not final")
	}
	if plan.Bulks > 0 {
		lines = append(lines, counted(plan.Bulks, "bulk re-send goes", "bulk re-sends go")+
			" with its lines")
	}
	return append(lines, counted(plan.Holds, "application is", "applications are")+
		" under a legal hold and keep everything")
}
