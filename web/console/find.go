package console

import (
	"context"
	"net/http"
	"strings"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"drawbridge/internal/email"
	"drawbridge/internal/lending"
	"drawbridge/views"
)

// find leads from an id that somebody pasted to what it names: a delivery, a
// subscription's deliveries, an e-mail, or an application's deliveries.
func (c *Console) find(ctx echo.Context, sought string) error {
	sought = strings.TrimSpace(sought)
	uid, err := uuid.Parse(sought)
	if err != nil {
		// The list says what is wrong with the id, beside the field to mend.
		return ctx.Redirect(http.StatusSeeOther, views.DeliveriesOf("application", sought))
	}
	target, err := c.locate(ctx.Request().Context(), uid)
	if err != nil {
		return err
	}
	return ctx.Redirect(http.StatusSeeOther, target)
}

// locate returns the page of whatever has the id; an unknown one is taken for
// an application that had no event yet.
func (c *Console) locate(ctx context.Context, uid uuid.UUID) (string, error) {
	_, err := c.Webhooks.Delivery(ctx, uid)
	if err == nil {
		return views.DeliveryPath(uid.String()), nil
	}
	if lending.ErrorCode(err) != lending.CodeNotFound {
		return "", err
	}
	_, err = c.Webhooks.Subscription(ctx, uid)
	if err == nil {
		return views.DeliveriesOf("subscription", uid.String()), nil
	}
	if lending.ErrorCode(err) != lending.CodeNotFound {
		return "", err
	}
	_, err = email.Get(ctx, c.DB, uid)
	if err == nil {
		return views.EmailPath(uid.String()), nil
	}
	if lending.ErrorCode(err) != lending.CodeNotFound {
		return "", err
	}
	return views.DeliveriesOf("application", uid.String()), nil
}
