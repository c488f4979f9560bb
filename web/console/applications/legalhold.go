package applications

import (
	"cmp"
	"context"
	"fmt"
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

// legalHoldInForce returns the legal hold that an application is under, nil for none.
func (f *Feature) legalHoldInForce(
	ctx context.Context, uid uuid.UUID,
) (*retention.LegalHold, error) {
	holds, err := f.Retention.LegalHolds(ctx, uid)
	at := slices.IndexFunc(holds, retention.LegalHold.InForce)
	if err != nil || at < 0 {
		return nil, err
	}
	return &holds[at], nil
}

// legalHold places or releases a legal hold. Retention periods are for administrators to
// set.
func (f *Feature) legalHold() action.Spec {
	return action.Spec{
		Path: paths.LegalHold, Shown: "console.application.hold",
		Sent: "console.application.hold.submit", Role: operator.RoleAdmin,
		Confirm: func(ctx echo.Context) (action.Form, error) {
			summary, err := page.Named(ctx, f.Applications.Summary)
			if err != nil {
				return action.Form{}, err
			}
			uid := summary.UID
			held, err := f.legalHoldInForce(ctx.Request().Context(), uid)
			if err != nil {
				return action.Form{}, err
			}
			// The form states whether it places or releases, so that a late one does not do the
			// opposite.
			release := held != nil
			if sent := ctx.FormValue("release"); sent != "" {
				release = sent == "true"
			}
			path := paths.To(paths.Application, uid.String())
			form := action.Form{
				Place: placeOf(summary).Under(path, ""), Fields: legalHoldForm(ctx, release, held),
				Change: action.Change{Done: "The application is under a legal hold."},
			}
			form.Fields.About, form.Fields.Cancel = about(summary), path
			form.Fields.Action = paths.To(paths.LegalHold, uid.String())
			change, name := f.Retention.Place, "application.hold"
			if release {
				change, name, form.Done = f.Retention.Release, "application.release",
					"The legal hold is released."
			}
			by, reason := page.User(ctx).Email, ctx.FormValue("reason")
			seen := cmp.Or(ctx.FormValue(action.SeenField), legalHoldWords(held))
			form.Do = func(ctx context.Context, tx *postgres.Tx) (operator.Outcome, error) {
				hold, err := change(ctx, tx, uid, by, reason)
				if now := legalHoldWords(&hold); err == nil && release && now != seen {
					err = action.Stale(seen, now) // the error rolls back the release of another hold
				}
				return operator.Did(path, operator.NewEntry(name, uid.String(),
					map[string]any{"held": release}, map[string]any{"held": !release})), err
			}
			return form, nil
		},
	}
}

// legalHoldWords identifies a legal hold, empty for none.
func legalHoldWords(hold *retention.LegalHold) string {
	if hold == nil {
		return ""
	}
	return fmt.Sprintf("hold %d, “%s”, by %s", hold.ID, hold.Reason, hold.PlacedBy)
}

// legalHoldForm asks for a legal hold, or for the release of the current one.
func legalHoldForm(ctx echo.Context, release bool, held *retention.LegalHold) ui.Confirmation {
	form := ui.Confirmation{
		Title: "Place a legal hold", Submit: "Place the hold", NoReason: true,
		Effects: []string{
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
		form.Hidden = append(form.Hidden, action.Seen(legalHoldWords(held)))
		form.Effects = []string{
			"What the hold has kept beyond its time is removed by the next hourly run, for good.",
		}
		if held != nil {
			form.Effects = slices.Insert(form.Effects, 0, fmt.Sprintf(
				"Ends the hold that %s placed at %s: “%s”", held.PlacedBy,
				ui.Absolute(ctx.Request().Context(), held.PlacedAt), held.Reason))
		}
	}
	return form
}
