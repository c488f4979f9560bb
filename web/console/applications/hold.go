package applications

import (
	"context"
	"slices"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"drawbridge/internal/operator"
	"drawbridge/internal/postgres"
	"drawbridge/internal/retention"
	"drawbridge/views/paths"
	"drawbridge/views/ui"
	"drawbridge/web/console/action"
	"drawbridge/web/console/page"
)

// holdInForce returns the legal hold that an application is under, nil for none.
func (f *Feature) holdInForce(ctx context.Context, uid uuid.UUID) (*retention.Hold, error) {
	holds, err := f.Retention.Holds(ctx, uid)
	at := slices.IndexFunc(holds, retention.Hold.InForce)
	if err != nil || at < 0 {
		return nil, err
	}
	return &holds[at], nil
}

// hold places a legal hold or releases it. How long things are kept is for
// administrators to say.
func (f *Feature) hold() action.Spec {
	return action.Spec{
		Path: paths.ApplicationHold, Shown: "console.application.hold",
		Sent: "console.application.hold.submit", Role: operator.RoleAdmin,
		Ask: func(ctx echo.Context) (action.Form, error) {
			uid, err := page.UID(ctx)
			if err != nil {
				return action.Form{}, err
			}
			summary, err := f.Applications.Summary(ctx.Request().Context(), uid)
			if err != nil {
				return action.Form{}, err
			}
			held, err := f.holdInForce(ctx.Request().Context(), uid)
			if err != nil {
				return action.Form{}, err
			}
			// The form says what it is for, so that one that arrives late does not do the
			// opposite.
			release := held != nil
			if sent := ctx.FormValue("release"); sent != "" {
				release = sent == "true"
			}
			path := paths.To(paths.Application, uid.String())
			form := action.Form{
				Place: placeOf(summary).Under(path, ""), Fields: holdForm(release),
				Change: action.Change{Done: "The application is under a legal hold."},
			}
			form.Fields.About, form.Fields.Cancel = about(summary), path
			form.Fields.Action = paths.To(paths.ApplicationHold, uid.String())
			change, name := f.Retention.Place, "application.hold"
			if release {
				change, name, form.Done = f.Retention.Release, "application.release",
					"The legal hold is released."
			}
			by, reason := page.User(ctx).Email, ctx.FormValue("reason")
			form.Do = func(ctx context.Context, tx *postgres.Tx) (operator.Outcome, error) {
				_, err := change(ctx, tx, uid, by, reason)
				return operator.Did(path, operator.Entry{
					Action: name, SubjectKind: "application", Subject: uid.String(),
					Before: map[string]any{"held": release}, After: map[string]any{"held": !release},
				}), err
			}
			return form, nil
		},
	}
}

// holdForm asks for a hold, or for its release.
func holdForm(release bool) ui.AskForm {
	form := ui.AskForm{
		Title: "Place a legal hold", Submit: "Place the hold", NoReason: true,
		Says: []string{
			"Everything of this application is kept until the hold is released: events, deliveries, " +
				"attempts, e-mails and requests, whatever the settings say. What was removed before " +
				"stays removed.",
		},
		Hidden: []ui.HiddenField{{Name: "release", Value: "false"}},
		Controls: []ui.Control{{
			Name: "reason", Label: "Reason", Hint: "Kept with the hold and in the audit log.",
			MaxLength: action.MaxReason, Required: true, Autocomplete: "off", Autofocus: true,
		}},
	}
	if release {
		form.Title, form.Submit, form.Danger = "Release the legal hold", "Release the hold", true
		form.Hidden[0].Value = "true"
		form.Says = []string{
			"What the hold has kept beyond its time is removed by the next hourly run, for good.",
		}
	}
	return form
}
