package console

import (
	"context"
	"net/http"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"drawbridge/internal/operator"
	"drawbridge/internal/postgres"
	"drawbridge/views/applications"
	"drawbridge/views/paths"
	"drawbridge/views/ui"
)

// holdRoutes lists the form of legal holds. How long things are kept is an
// administrator's matter.
func (c *Console) holdRoutes() []Route {
	const admin = operator.RoleAdmin
	return []Route{
		{http.MethodGet, paths.ApplicationHold, "console.application.hold", admin, c.hold},
		{http.MethodPost, paths.ApplicationHold, "console.application.hold.submit", admin, c.hold},
	}
}

// holdView returns the application's hold in force, nil without one.
func (c *Console) holdView(ctx context.Context, uid uuid.UUID) (*applications.HoldView, error) {
	holds, err := c.Retention.Holds(ctx, uid)
	if err != nil {
		return nil, err
	}
	for _, hold := range holds {
		if hold.InForce() {
			return &applications.HoldView{By: hold.PlacedBy, Reason: hold.Reason, Since: hold.PlacedAt}, nil
		}
	}
	return nil, nil //nolint:nilnil // most applications are under none
}

// hold asks for a legal hold or for its end, and does what the form said.
func (c *Console) hold(ctx echo.Context) error {
	uid, err := pathUID(ctx)
	if err != nil {
		return err
	}
	request := ctx.Request().Context()
	summary, err := c.Applications.Summary(request, uid)
	if err != nil {
		return err
	}
	held, err := c.holdView(request, uid)
	if err != nil {
		return err
	}
	// The form says what it is for, so that one that arrives late does not do the
	// opposite.
	release := held != nil
	if sent := ctx.FormValue("release"); sent != "" {
		release = sent == "true"
	}
	at := spot{section: ui.SectionApplications, crumbs: []ui.Crumb{
		{Label: "Applications", Href: paths.Applications},
		{Label: applicationRow(summary).Name(), Href: paths.To(paths.Application, uid.String())},
	}}
	form := holdForm(uid, release)
	form.About = aboutApplication(summary)
	if !isSent(ctx) {
		return c.showAsk(ctx, http.StatusOK, at, form)
	}
	return c.answerAsk(ctx, at, typed(ctx, form), c.holdChange(ctx, uid, release))
}

// holdForm asks for a hold, or for its release.
func holdForm(uid uuid.UUID, release bool) ui.AskForm {
	form := ui.AskForm{
		Title: "Place a legal hold", Submit: "Place the hold", NoReason: true,
		Action: paths.To(paths.ApplicationHold, uid.String()),
		Cancel: paths.To(paths.Application, uid.String()),
		Says: []string{
			"Everything of this application is kept until the hold is released: events, deliveries, " +
				"attempts, e-mails and requests, whatever the settings say. What was removed before " +
				"stays removed.",
		},
		Hidden: []ui.HiddenField{{Name: "release", Value: "false"}},
		Controls: []ui.Control{{
			Name: "reason", Label: "Reason", Hint: "Kept with the hold and in the audit log.",
			MaxLength: maxReason, Required: true, Autocomplete: "off", Autofocus: true,
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

func (c *Console) holdChange(ctx echo.Context, uid uuid.UUID, release bool) commitment {
	by, reason := currentUser(ctx).Email, ctx.FormValue("reason")
	entry := operator.Entry{
		Action: "application.hold", SubjectKind: "application", Subject: uid.String(),
		Before: map[string]any{"held": release}, After: map[string]any{"held": !release},
	}
	change, done := c.Retention.Place, "The application is under a legal hold."
	if release {
		entry.Action = "application.release"
		change, done = c.Retention.Release, "The legal hold is released."
	}
	return commitment{
		done: done,
		do: func(ctx context.Context, tx *postgres.Tx) (operator.Entry, string, error) {
			_, err := change(ctx, tx, uid, by, reason)
			return entry, paths.To(paths.Application, uid.String()), err
		},
	}
}
