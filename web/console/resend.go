package console

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

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

// resendForm shows the re-send form on a page of its own.
func (c *Console) resendForm(ctx echo.Context) error {
	uid, err := pathUID(ctx)
	if err != nil {
		return err
	}
	return c.showResend(ctx, uid, http.StatusOK, "", "")
}

// resend adds a new delivery of the same event. Under htmx the page stays and
// shows the new delivery among the re-sends; else its own page comes next.
func (c *Console) resend(ctx echo.Context) error {
	uid, err := pathUID(ctx)
	if err != nil {
		return err
	}
	reason := ctx.FormValue("reason")
	made, err := c.resendDelivery(ctx, uid, reason)
	if lending.ErrorCode(err) == lending.CodeValidation && !isFragment(ctx.Request()) {
		return c.showResend(ctx, uid, http.StatusBadRequest, reason, sentence(err.Error()))
	}
	if err != nil {
		return err
	}
	if !isFragment(ctx.Request()) {
		c.leaveNotice(ctx, "Re-sent. This is the new delivery.")
		return ctx.Redirect(http.StatusSeeOther, paths.To(paths.Delivery, made.String()))
	}
	page, err := c.deliveryPage(ctx.Request().Context(), uid, mayAct(ctx))
	if err != nil {
		return err
	}
	err = announce(ctx, "Re-sent as a new delivery", paths.To(paths.Delivery, made.String()))
	if err != nil {
		return err
	}
	return render(ctx, http.StatusOK, deliveries.DeliveryRegion(page))
}

// resendDelivery re-sends and keeps it in the audit log, both or neither.
func (c *Console) resendDelivery(
	ctx echo.Context, uid uuid.UUID, reason string,
) (uuid.UUID, error) {
	user := currentUser(ctx)
	var made uuid.UUID
	_, err := c.act(ctx, func(request context.Context, tx *postgres.Tx) (string, error) {
		uids, err := c.Webhooks.Resend(request, tx, []uuid.UUID{uid}, user.Email, reason)
		if err != nil {
			return "", err
		}
		made = uids[0]
		return paths.To(paths.Delivery, made.String()), c.Operators.Audit(request, tx, operator.Entry{
			Actor: user.Email, Address: ctx.RealIP(), Action: "delivery.resend",
			SubjectKind: "delivery", Subject: uid.String(), Reason: reason,
			After: map[string]any{"delivery_uid": made},
		})
	})
	return made, err
}

// announce tells the page's script what was done, where it is to be seen, and the
// token of the form that stands in the dialog from now on.
func announce(ctx echo.Context, text, href string) error {
	trigger, err := json.Marshal(map[string]any{
		"console:done": map[string]string{
			"text": text, "href": href, "label": "Open", tokenField: uuid.NewString(),
		},
	})
	if err != nil {
		return fmt.Errorf("announcing what was done: %w", err)
	}
	ctx.Response().Header().Set("HX-Trigger", string(trigger))
	return nil
}

func (c *Console) showResend(
	ctx echo.Context, uid uuid.UUID, status int, reason, fault string,
) error {
	request := ctx.Request().Context()
	detail, err := c.Webhooks.Delivery(request, uid)
	if err != nil {
		return err
	}
	subscription, err := c.Webhooks.Subscription(request, detail.SubscriptionUID)
	if err != nil {
		return err
	}
	form, err := c.resendFormOf(request, detail, subscription)
	if err != nil {
		return err
	}
	form.Reason, form.Fault = reason, fault
	frame, err := c.frame(ctx, ui.SectionDeliveries, "Re-send this delivery",
		ui.Crumb{Label: "Deliveries", Href: paths.Deliveries},
		ui.Crumb{
			Label: deliveryRow(detail.Delivery).Label(), Href: paths.To(paths.Delivery, uid.String()),
		},
		ui.Crumb{Label: "Re-send"})
	if err != nil {
		return err
	}
	return render(ctx, status, deliveries.ResendPage(frame, *form))
}

// resendFormOf names what a re-send would do, and what speaks against it.
func (c *Console) resendFormOf(
	ctx context.Context, detail webhook.DeliveryDetail, subscription webhook.Subscription,
) (*deliveries.ResendForm, error) {
	newer, err := c.Webhooks.NewerDelivered(ctx, detail.Delivery)
	if err != nil {
		return nil, err
	}
	return &deliveries.ResendForm{
		UID: detail.UID.String(), Event: string(detail.Event), Partner: detail.PartnerName,
		URL: subscription.URL, Risks: risks(detail, subscription, newer),
	}, nil
}

// risks lists what somebody should know before re-sending.
func risks(
	detail webhook.DeliveryDetail, subscription webhook.Subscription, newer bool,
) []string {
	var found []string
	switch detail.State {
	case webhook.DeliveryDelivered:
		found = append(found, "The partner has received this event already and will get it again.")
	case webhook.DeliveryPending, webhook.DeliveryRetrying:
		found = append(found, "It is still being tried by itself: the partner may get it twice.")
	case webhook.DeliveryFailed, webhook.DeliveryCancelled:
	}
	changed := false
	for _, attempt := range detail.Attempts {
		if attempt.ErrorClass == webhook.ClassUnknown {
			found = append(found, fmt.Sprintf(
				"The outcome of attempt %d is unknown: it may have arrived.", attempt.Number))
		}
		changed = changed || attempt.SubscriptionVersion != subscription.Version
	}
	if changed {
		found = append(found, "The subscription was changed since; the re-send uses it as it is now.")
	}
	if newer {
		found = append(found,
			"A later event of this application was delivered already: the partner gets this one after it.")
	}
	if subscription.State == webhook.StatePaused {
		found = append(found, "The subscription is paused: the re-send waits until it is resumed.")
	}
	return found
}

// leaveNotice keeps a message for the next page that is shown.
func (c *Console) leaveNotice(ctx echo.Context, text string) {
	c.sessions.Put(ctx.Request().Context(), sessionNotice, text)
}

// takeNotice returns the message that the last action left, nil without one.
func (c *Console) takeNotice(ctx echo.Context) *ui.Notice {
	text := c.sessions.PopString(ctx.Request().Context(), sessionNotice)
	if text == "" {
		return nil
	}
	return &ui.Notice{Tone: ui.Good, Title: text}
}
