package console

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"drawbridge/internal/lending"
	"drawbridge/internal/operator"
	"drawbridge/internal/postgres"
	"drawbridge/internal/webhook"
	"drawbridge/views/deliveries"
	"drawbridge/views/paths"
	"drawbridge/views/ui"
)

// cancelDeliveries asks once what cancelling the chosen deliveries means, and
// then cancels those that still wait.
func (c *Console) cancelDeliveries(ctx echo.Context) error {
	uids, err := chosenDeliveries(ctx)
	if err != nil {
		return err
	}
	if len(uids) == 0 {
		c.leaveNotice(ctx, "Tick the deliveries to cancel first.")
		return ctx.Redirect(http.StatusSeeOther, backToList(ctx))
	}
	reason := strings.TrimSpace(ctx.FormValue("reason"))
	if ctx.FormValue("confirmed") == "" {
		return c.askToCancel(ctx, uids, http.StatusOK, "")
	}
	if reason == "" || len(reason) > 500 {
		return c.askToCancel(ctx, uids, http.StatusBadRequest,
			"Say why, in up to 500 characters.")
	}
	count, err := c.cancelChosen(ctx, uids, reason)
	if err != nil {
		return err
	}
	c.leaveNotice(ctx, "Cancelled: "+counted(count, "delivery", "deliveries")+".")
	return ctx.Redirect(http.StatusSeeOther, backToList(ctx))
}

// backToList is the list that deliveries were chosen from.
func backToList(ctx echo.Context) string {
	query, err := url.ParseQuery(ctx.FormValue("filter"))
	if err != nil {
		return paths.Deliveries
	}
	return paths.With(paths.Deliveries, query)
}

// chosenDeliveries reads the rows that were selected, if any.
func chosenDeliveries(ctx echo.Context) ([]uuid.UUID, error) {
	//nolint:forbidigo // a form that was received, not a client's call
	form := ctx.Request().PostForm["delivery"]
	if len(form) > webhook.MaxPage {
		return nil, lending.Invalid("delivery",
			"Select at most %d deliveries in the list.", webhook.MaxPage)
	}
	uids := make([]uuid.UUID, 0, len(form))
	for _, text := range form {
		uid, err := uuid.Parse(text)
		if err != nil {
			return nil, lending.Invalid("delivery", "%.60q is no id of a delivery", text)
		}
		uids = append(uids, uid)
	}
	return uids, nil
}

// cancelChosen cancels and keeps it in the audit log, one entry for each.
func (c *Console) cancelChosen(ctx echo.Context, uids []uuid.UUID, reason string) (int, error) {
	user := currentUser(ctx)
	var ended []uuid.UUID
	_, err := c.act(ctx, func(request context.Context, tx *postgres.Tx) (_ string, err error) {
		if ended, err = c.Webhooks.Cancel(request, tx, uids); err != nil {
			return "", err
		}
		for _, uid := range ended {
			if err := c.Operators.Audit(request, tx, operator.Entry{
				Actor: user.Email, Address: ctx.RealIP(), Action: "delivery.cancel",
				SubjectKind: "delivery", Subject: uid.String(), Reason: reason,
				After: map[string]any{"state": webhook.DeliveryCancelled},
			}); err != nil {
				return "", err
			}
		}
		return backToList(ctx), nil
	})
	return len(ended), err
}

// askToCancel names how many would be cancelled, where they go, and what that
// means.
func (c *Console) askToCancel(
	ctx echo.Context, uids []uuid.UUID, status int, fault string,
) error {
	form := deliveries.CancelForm{
		Query: ctx.FormValue("filter"), Back: backToList(ctx), Reason: ctx.FormValue("reason"),
		Fault: fault,
	}
	chosen, err := c.Webhooks.DeliveriesByUID(ctx.Request().Context(), uids)
	if err != nil {
		return err
	}
	endpoints := map[uuid.UUID]bool{}
	for _, delivery := range chosen {
		form.UIDs = append(form.UIDs, delivery.UID.String())
		if !delivery.State.IsFinal() {
			form.Waiting++
			endpoints[delivery.SubscriptionUID] = true
		}
	}
	form.Endpoints = len(endpoints)
	if form.Waiting == 0 {
		return lending.NewError(lending.CodeInvalidState,
			"None of the chosen deliveries waits for an attempt: there is nothing to cancel.")
	}
	form.Frame, err = c.frame(ctx, ui.SectionDeliveries, "Cancel deliveries",
		ui.Crumb{Label: "Deliveries", Href: form.Back}, ui.Crumb{Label: "Cancel"})
	if err != nil {
		return err
	}
	return render(ctx, status, deliveries.CancelPage(form))
}
