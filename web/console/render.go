package console

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/a-h/templ"
	"github.com/labstack/echo/v4"

	"drawbridge/internal/attention"
	"drawbridge/internal/lending"
	"drawbridge/internal/secret"
	"drawbridge/internal/webhook"
	"drawbridge/views/ui"
)

const (
	// recent is the time that the overview and the rail's badge look back.
	recent = 24 * time.Hour
	// maxBadge is the highest number that the rail's badge counts to.
	maxBadge = 999
)

// render writes a whole page or a fragment. Nothing is sent before the
// component is rendered to its end, so that a fault can still be answered, and that
// of a request whose context has ended, too.
func render(ctx echo.Context, status int, component templ.Component) error {
	html, err := renderHTML(context.WithoutCancel(ctx.Request().Context()), component)
	if err != nil {
		return err
	}
	return send(ctx, status, html)
}

// zipFrom is the size from which a page is worth compressing, in bytes.
const zipFrom = 4 << 10

// send writes HTML, compressed where the browser takes it. Answers to forms may
// show a new secret, whose length alone could tell something: they never are.
func send(ctx echo.Context, status int, html []byte) error {
	html = withTokens(html)
	request, header := ctx.Request(), ctx.Response().Header()
	header.Add(echo.HeaderVary, echo.HeaderAcceptEncoding)
	if request.Method != http.MethodGet || len(html) < zipFrom ||
		!strings.Contains(request.Header.Get(echo.HeaderAcceptEncoding), "gzip") {
		return ctx.HTMLBlob(status, html)
	}
	var zipped bytes.Buffer
	writer := gzip.NewWriter(&zipped)
	if _, err := writer.Write(html); err != nil {
		return fmt.Errorf("compressing a page: %w", err)
	}
	if err := writer.Close(); err != nil {
		return fmt.Errorf("compressing a page: %w", err)
	}
	header.Set(echo.HeaderContentEncoding, "gzip")
	return ctx.HTMLBlob(status, zipped.Bytes())
}

func renderHTML(ctx context.Context, component templ.Component) ([]byte, error) {
	var html bytes.Buffer
	if err := component.Render(ctx, &html); err != nil {
		return nil, fmt.Errorf("rendering a page: %w", err)
	}
	return html.Bytes(), nil
}

// frame is what surrounds a page of the signed-in user.
func (c *Console) frame(
	ctx echo.Context, section ui.Section, title string, crumbs ...ui.Crumb,
) (ui.Frame, error) {
	request := ctx.Request()
	failing, err := c.Webhooks.CountDeliveries(request.Context(), webhook.DeliveryFilter{
		State: webhook.DeliveryFailed, Since: c.DB.Now().Add(-recent),
	}, maxBadge)
	if err != nil {
		return ui.Frame{}, err
	}
	waiting, err := c.Attention.Count(request.Context(),
		attention.Filter{State: attention.Waiting}, maxBadge)
	if err != nil {
		return ui.Frame{}, err
	}
	frame := c.plainFrame(ctx, section, title, crumbs...)
	frame.Failing, frame.Attention = failing, waiting
	return frame, nil
}

// plainFrame is a frame without the counts, which need the database.
func (c *Console) plainFrame(
	ctx echo.Context, section ui.Section, title string, crumbs ...ui.Crumb,
) ui.Frame {
	user := currentUser(ctx)
	_, zone := c.zone(ctx)
	return ui.Frame{
		Zone:  zone,
		Title: title, Section: section, Crumbs: crumbs,
		User:        ui.User{Name: user.Name, Email: user.Email, Role: string(user.Role)},
		Environment: c.Environment, Version: c.Version,
		Development: c.Development != nil,
		Theme:       c.preference(ctx, "theme"), Density: c.preference(ctx, "density"),
		Path: ctx.Request().URL.RequestURI(),
	}
}

// RenderFault answers an error of any console path: a page for people, a notice
// for a part of a page. The status is that of the error's code.
func (c *Console) RenderFault(ctx echo.Context, err error) error {
	c.strictHeaders(ctx.Response().Header())
	status := c.Status(lending.ErrorCode(err))
	fault := ui.Fault{
		Environment: c.Environment, Theme: c.preference(ctx, "theme"), Status: status,
		Title: faultTitle(status, err), Text: faultText(err),
		RequestID: ctx.Response().Header().Get(echo.HeaderXRequestID),
	}
	request := ctx.Request()
	if isFragment(request) || isStream(request) {
		return render(ctx, status, ui.FaultFragment(fault))
	}
	if status >= http.StatusInternalServerError && request.Method == http.MethodGet {
		fault.RetryHref = request.URL.RequestURI()
	}
	back := wayBack(request.URL.Path, status)
	fault.BackHref, fault.BackLabel = back.href, back.label
	if currentUser(ctx).Email != "" && owed(signedIn(ctx)) == "" {
		frame := c.faultFrame(ctx, back.section, fault.Title, status)
		fault.Frame = &frame
	}
	return render(ctx, status, ui.FaultPage(fault))
}

// faultFrame surrounds a fault of who is signed in. The counts are left out where
// they cannot be had: what keeps the page from its data may keep the frame too.
func (c *Console) faultFrame(
	ctx echo.Context, section ui.Section, title string, status int,
) ui.Frame {
	crumb := ui.Crumb{Label: title}
	if status < http.StatusInternalServerError {
		if frame, err := c.frame(ctx, section, title, crumb); err == nil {
			return frame
		}
	}
	return c.plainFrame(ctx, section, title, crumb)
}

func faultTitle(status int, err error) string {
	switch status {
	case http.StatusNotFound:
		return "There is nothing here"
	case http.StatusForbidden:
		return "You may not do this"
	case http.StatusUnauthorized:
		return "You are signed out"
	case http.StatusConflict:
		return "This cannot be done now"
	case http.StatusTooManyRequests:
		return "Too often"
	case http.StatusInternalServerError:
		if errors.Is(err, secret.ErrUnknownKey) {
			return "A key is missing"
		}
	case http.StatusRequestEntityTooLarge:
		return "The form is too large"
	case http.StatusServiceUnavailable:
		return "The database does not answer"
	case http.StatusMethodNotAllowed, http.StatusBadRequest:
		return "The request is not right"
	}
	return "Something went wrong"
}

// missingKey is what to do about a value that no key opens.
const missingKey = "A secret that belongs here is sealed with the key %s, which this server does " +
	"not have. Ask whoever runs it to add that key behind the first one of DRAWBRIDGE_SECRETS_KEY " +
	"and to restart. If the key is lost, delete the subscription and create it anew; what it sent " +
	"is still in the list of deliveries."

// faultText is what a person may read of an error.
func faultText(err error) string {
	if lending.ErrorCode(err) == lending.CodeUnavailable {
		return "Try again in a moment. If you changed something, look first whether it was done."
	}
	if refusal, ok := errors.AsType[*lending.Error](err); ok {
		return sentence(refusal.Message)
	}
	if missing, ok := errors.AsType[*secret.UnknownKeyError](err); ok {
		return fmt.Sprintf(missingKey, missing.ID)
	}
	return "It is our fault, and it is written down. Try again; if it stays, quote the request id."
}
