package console

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"drawbridge/internal/application"
	"drawbridge/internal/email"
	"drawbridge/internal/lending"
	"drawbridge/views"
)

// find leads from what somebody pasted to what it names: a delivery, a
// subscription's deliveries, an e-mail, or an application, which is also found
// by its external reference, its borrower's address and its disbursements.
func (c *Console) find(ctx echo.Context, sought string) error {
	sought = strings.TrimSpace(sought)
	request := ctx.Request().Context()
	target := ""
	uid, err := uuid.Parse(sought)
	if err == nil {
		if target, err = c.locate(request, uid); err != nil {
			return err
		}
	}
	if target == "" {
		if target, err = c.findApplication(request, sought); err != nil {
			return err
		}
	}
	return ctx.Redirect(http.StatusSeeOther, target)
}

// findApplication returns the page of the one application that is meant, or the
// list of those that may be, which also says that there are none.
func (c *Console) findApplication(ctx context.Context, sought string) (string, error) {
	list := views.ApplicationsPath(url.Values{"q": {sought}})
	found, err := c.Applications.List(ctx, application.Filter{Search: sought, Limit: 2})
	if lending.ErrorCode(err) == lending.CodeValidation {
		return list, nil // which says what is wrong with it
	}
	if err != nil || len(found.Applications) != 1 {
		return list, err
	}
	page := views.ApplicationPath(found.Applications[0].UID.String())
	if number, err := strconv.ParseInt(sought, 10, 64); err == nil {
		page += fmt.Sprintf("#draw-%d", number)
	}
	return page, nil
}

// locate returns the page of the delivery, subscription or e-mail that has the
// id, empty if none has.
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
	return "", nil
}
