package console

import (
	"context"
	"net/http"
	"strconv"
	"strings"

	"github.com/labstack/echo/v4"

	"drawbridge/internal/lending"
	"drawbridge/internal/operator"
	"drawbridge/internal/postgres"
	"drawbridge/internal/webhook"
	"drawbridge/views/paths"
	"drawbridge/views/ui"
)

// healthSettings asks from when on a subscription counts as failing, and keeps
// what the form said.
func (c *Console) healthSettings(ctx echo.Context) error {
	now, err := c.Webhooks.LoadHealthSettings(ctx.Request().Context())
	if err != nil {
		return err
	}
	form := healthForm(now)
	at := spot{section: ui.SectionSettings, crumbs: []ui.Crumb{
		{Label: "Settings", Href: paths.Settings},
	}}
	if !isSent(ctx) {
		return c.showAsk(ctx, http.StatusOK, at, form)
	}
	form = typed(ctx, form)
	return c.answerAsk(ctx, at, form, commitment{
		done: "Saved. It holds for every subscription that has no rule of its own.",
		do: func(request context.Context, tx *postgres.Tx) (operator.Entry, string, error) {
			var faults lending.Faults
			wanted := webhook.HealthSettings{
				FailingMinutes: wholeNumber(ctx, &faults, "failing_minutes"),
				FailingEvents:  wholeNumber(ctx, &faults, "failing_events"),
			}
			if err := faults.Err(); err != nil {
				return operator.Entry{}, "", err
			}
			before, err := c.Webhooks.SaveHealthSettings(request, tx, wanted, currentUser(ctx).Email)
			return operator.Entry{
				Action: "health_settings.update", SubjectKind: "settings", Subject: "health",
				Before: before, After: wanted,
			}, paths.Settings, err
		},
	})
}

// wholeNumber reads a number of the form.
func wholeNumber(ctx echo.Context, faults *lending.Faults, name string) int {
	number, err := strconv.Atoi(strings.TrimSpace(ctx.FormValue(name)))
	if err != nil {
		faults.Add(name, `"%s" must be a whole number`, name)
	}
	return number
}

func healthForm(now webhook.HealthSettings) ui.AskForm {
	return ui.AskForm{
		Title: "When a subscription counts as failing", Submit: "Save",
		Action: paths.SettingsHealth, Cancel: paths.Settings,
		Says: []string{
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
}
