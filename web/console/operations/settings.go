package operations

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/a-h/templ"
	"github.com/labstack/echo/v4"

	"drawbridge/internal/lending"
	"drawbridge/internal/operator"
	"drawbridge/internal/postgres"
	"drawbridge/internal/retention"
	"drawbridge/internal/webhook/health"
	"drawbridge/internal/webhook/subscription"
	"drawbridge/views/operations"
	"drawbridge/views/paths"
	"drawbridge/views/ui"
	"drawbridge/web/console/action"
	"drawbridge/web/console/page"
)

var settingsPlace = page.Place{Section: ui.SectionSettings, Title: "Settings"}

// settings shows the settings that can be changed, and those of the environment.
func (f *Feature) settings(ctx echo.Context) error {
	stored, err := f.Retention.Settings(ctx.Request().Context())
	if err != nil {
		return err
	}
	body, err := f.settingsPage(ctx.Request().Context())
	if err != nil {
		return err
	}
	return f.Show(ctx, http.StatusOK, settingsPlace, body(retentionForm(stored)))
}

// settingsPage returns the page around the retention form.
func (f *Feature) settingsPage(
	ctx context.Context,
) (func(retention ui.Confirmation) templ.Component, error) {
	needed, err := f.Operators.SecondFactors().Roles(ctx)
	provider := ""
	if f.Provider != nil {
		provider = f.Provider.Name
	}
	return func(retention ui.Confirmation) templ.Component {
		return operations.Settings(retention, needed, action.Seen(secondFactorWords(needed)), provider,
			f.Configuration)
	}, err
}

// saveSignIn sets which roles must have a second factor.
func (f *Feature) saveSignIn(ctx echo.Context) (action.Change, error) {
	values, err := ctx.FormParams()
	if err != nil {
		return action.Change{}, err // the guard has parsed the form already: this cannot fail
	}
	roles := []operator.Role{}
	for _, name := range values["roles"] {
		roles = append(roles, operator.Role(name))
	}
	return action.Change{
		Done: "Saved. It holds from everybody's next click on.", Unchanged: "Nothing was changed.",
		Do: func(request context.Context, tx *postgres.Tx) (operator.Outcome, error) {
			before, err := f.Operators.SecondFactors().Require(request, tx, roles)
			is := secondFactorWords(before)
			if err == nil && cmp.Or(ctx.FormValue(action.SeenField), is) != is {
				err = action.Stale(ctx.FormValue(action.SeenField), is)
			}
			slices.Sort(before)
			slices.Sort(roles)
			if err != nil || slices.Equal(before, roles) {
				return operator.Outcome{Target: paths.Settings}, err
			}
			return operator.Did(paths.Settings, operator.NewEntry("settings.sign_in", "sign_in",
				map[string]any{"second_factor_roles": before},
				map[string]any{"second_factor_roles": roles})), nil
		},
	}, nil
}

// secondFactorWords says who must have a second factor.
func secondFactorWords(roles []operator.Role) string {
	words := make([]string, len(roles))
	for i, role := range roles {
		words[i] = ui.RoleWord(string(role))
	}
	slices.Sort(words)
	return cmp.Or(strings.Join(words, "; "), "nobody")
}

func retentionForm(now retention.Settings) ui.Confirmation {
	seen := []ui.HiddenField{action.Seen(retentionWords(now))}
	form := ui.Confirmation{Action: paths.SettingsRetention, Hidden: seen, Controls: []ui.Control{
		{
			Name: "metadata_months", Label: "Events, deliveries and attempts: months",
			Hint: "2 to 120. Removed by whole months.", Value: strconv.Itoa(now.Months),
		},
		{
			Name: "body_days", Label: "Bodies of events and attempts: days",
			Hint:  "7 to 3,650. Without its body an event cannot be sent again.",
			Value: strconv.Itoa(now.BodyDays),
		},
		{
			Name: "email_body_days", Label: "Texts of e-mails: days", Hint: "7 to 3,650.",
			Value: strconv.Itoa(now.EmailBodyDays),
		},
		{
			Name: "api_request_days", Label: "Requests of partners: days", Hint: "7 to 3,650.",
			Value: strconv.Itoa(now.APIRequestDays),
		},
	}}
	for i := range form.Controls {
		form.Controls[i].Type, form.Controls[i].Step, form.Controls[i].Required = "number", "1", true
	}
	return form
}

func wholeNumber(ctx echo.Context, errs *lending.FieldErrors, name string) int {
	number, err := strconv.Atoi(strings.TrimSpace(ctx.FormValue(name)))
	if err != nil {
		errs.Add(name, "%q must be a whole number", name)
	}
	return number
}

// readRetention reads the form. Its errors use the form's names.
func readRetention(ctx echo.Context) (retention.Settings, error) {
	var errs lending.FieldErrors
	wanted := retention.Settings{
		Months:         wholeNumber(ctx, &errs, "metadata_months"),
		BodyDays:       wholeNumber(ctx, &errs, "body_days"),
		EmailBodyDays:  wholeNumber(ctx, &errs, "email_body_days"),
		APIRequestDays: wholeNumber(ctx, &errs, "api_request_days"),
	}
	errs.MergeOthers(wanted.Check())
	return wanted, page.WithLabels(errs.Err(), map[string]string{
		"metadata_months":  "The months of events, deliveries and attempts",
		"body_days":        "The days of bodies",
		"email_body_days":  "The days of texts of e-mails",
		"api_request_days": "The days of requests",
	})
}

// saveRetention says what the settings would remove, and saves them once that is confirmed.
func (f *Feature) saveRetention(ctx echo.Context) error {
	request := ctx.Request().Context()
	stored, err := f.Retention.Settings(request)
	if err != nil {
		return err
	}
	form := action.Form{Place: settingsPlace, Fields: action.Typed(ctx, retentionForm(stored))}
	if form.Page, err = f.settingsPage(request); err != nil {
		return err
	}
	wanted, err := readRetention(ctx)
	if err != nil {
		return f.ShowRefused(ctx, form, err)
	}
	seen := cmp.Or(ctx.FormValue(action.SeenField), retentionWords(stored))
	if ctx.FormValue("confirm") != "yes" {
		plan, err := f.Retention.Plan(request, wanted)
		if err != nil {
			return err
		}
		form.Fields.Hidden = []ui.HiddenField{action.Seen(seen)}
		return f.Show(ctx, http.StatusOK, settingsPlace.Under(paths.Settings, "What would go"),
			operations.RetentionPlan(form.Fields, plan))
	}
	form.Change = action.Change{
		Done: "Saved. The next run keeps things for that long.",
		Do: func(request context.Context, tx *postgres.Tx) (operator.Outcome, error) {
			before, after, err := f.Retention.SaveSettings(request, tx, wanted, page.User(ctx).Email)
			if now := retentionWords(before); err == nil && seen != now {
				err = action.Stale(seen, now)
			}
			return operator.Did(paths.Settings, operator.NewEntry("settings.retention", "retention",
				retentionState(before), retentionState(after))), err
		},
	}
	return f.Submit(ctx, form)
}

// retentionWords says what a form showed of the settings.
func retentionWords(s retention.Settings) string {
	return fmt.Sprintf("%d months of events, deliveries and attempts; %d days of bodies; "+
		"%d days of texts of e-mails; %d days of requests",
		s.Months, s.BodyDays, s.EmailBodyDays, s.APIRequestDays)
}

// retentionState is the settings in the audit log.
func retentionState(settings retention.Settings) map[string]any {
	return map[string]any{
		"metadata_months": settings.Months, "body_days": settings.BodyDays,
		"email_body_days": settings.EmailBodyDays, "api_request_days": settings.APIRequestDays,
	}
}

// healthSettings sets when a subscription counts as failing.
func (f *Feature) healthSettings() action.Spec {
	return action.Spec{
		Path: paths.SettingsHealth, Shown: "console.settings.health",
		Sent: "console.settings.health.submit", Role: operator.RoleAdmin,
		Confirm: func(ctx echo.Context) (action.Form, error) {
			now, err := f.Webhooks.Health.LoadSettings(ctx.Request().Context())
			seen := cmp.Or(ctx.FormValue(action.SeenField), healthWords(now))
			form := ui.Confirmation{
				Title: "When a subscription counts as failing", Submit: "Save",
				Action: paths.SettingsHealth, Cancel: paths.Settings,
				Hidden: []ui.HiddenField{action.Seen(healthWords(now))},
				Effects: []string{
					"A subscription fails once nothing has succeeded for this long and at least this many " +
						"events were tried. The operators get one e-mail then and one when it recovers; " +
						"sending goes on, unless the subscription is set to pause.",
				},
				Controls: []ui.Control{
					{
						Name: "failing_minutes", Label: "Minutes without a success", Type: "number",
						Value: strconv.Itoa(now.FailingMinutes), Required: true,
						Hint: "1440 is a day. A subscription may have its own.",
					},
					{
						Name: "failing_events", Label: "Events tried at least", Type: "number",
						Value: strconv.Itoa(now.FailingEvents), Required: true,
					},
				},
			}
			return action.Form{
				Place: settingsPlace.Under(paths.Settings, form.Title), Fields: form,
				Change: action.Change{
					Done:      "Saved. It holds for every subscription that has no rule of its own.",
					Unchanged: "Nothing was changed.",
					Do: func(request context.Context, tx *postgres.Tx) (operator.Outcome, error) {
						var errs lending.FieldErrors
						wanted := health.Settings{
							FailingMinutes: wholeNumber(ctx, &errs, "failing_minutes"),
							FailingEvents:  wholeNumber(ctx, &errs, "failing_events"),
						}
						var bounds lending.FieldErrors
						subscription.CheckFailing(&bounds, wanted.FailingMinutes, wanted.FailingEvents)
						errs.MergeOthers(bounds.Err())
						if err := errs.Err(); err != nil {
							return operator.Outcome{}, err
						}
						before, err := f.Webhooks.Health.SaveSettings(request, tx, wanted, page.User(ctx).Email)
						if is := healthWords(before); err == nil && seen != is {
							err = action.Stale(seen, is)
						}
						if err != nil || before == wanted {
							return operator.Outcome{Target: paths.Settings}, err
						}
						return operator.Did(paths.Settings, operator.Entry{
							Action: "health_settings.update", SubjectKind: "settings",
							Subject: "health", Before: before, After: wanted,
						}), nil
					},
				},
			}, err
		},
	}
}

// healthWords says what a form showed of the settings.
func healthWords(s health.Settings) string {
	return fmt.Sprintf("%d minutes without a success; at least %d events tried",
		s.FailingMinutes, s.FailingEvents)
}
