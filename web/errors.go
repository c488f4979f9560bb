package web

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"net/http"
	"strconv"
	"strings"

	"github.com/labstack/echo/v4"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
	"drawbridge/web/api"
	"drawbridge/web/console"
)

// internalErrorKey marks a request that failed by an error of our own. The status alone
// does not show it: the specification gives a pending draw 500 as well.
const internalErrorKey = "drawbridge.fault"

// newErrorHandler returns the one place where an error becomes an answer: the envelope for
// API clients, a page or fragment for the console. Internal and database errors are logged
// here and nowhere else.
func newErrorHandler(options Options) echo.HTTPErrorHandler {
	return func(err error, c echo.Context) {
		err = translateError(c.Request().Context(), err)
		code := lending.ErrorCode(err)
		if code == lending.CodeUnavailable {
			suggestRetry(c)
		}
		refusal, coded := errors.AsType[*lending.Error](err)
		if coded && refusal.RetryAfter > 0 {
			wait := int(math.Ceil(refusal.RetryAfter.Seconds()))
			c.Response().Header().Set(echo.HeaderRetryAfter, strconv.Itoa(wait))
		}
		// A refusal that only asks the client to retry later (no cause) is not an error of ours.
		if code == lending.CodeInternal ||
			code == lending.CodeUnavailable && refusal.Unwrap() != nil {
			c.Set(internalErrorKey, true)
			log := slog.With(
				"request_id", c.Response().Header().Get(echo.HeaderXRequestID),
				"method", methodOf(c.Request()),
				"route", c.Path(),
				"error", err)
			if code == lending.CodeUnavailable {
				log.ErrorContext(c.Request().Context(), "the database cannot be used")
			} else {
				log.ErrorContext(c.Request().Context(), "internal error")
			}
		}
		if c.Response().Committed {
			return
		}
		path := c.Request().URL.Path
		isConsole := path == console.Prefix || strings.HasPrefix(path, console.Prefix+"/")
		if options.Console != nil && isConsole {
			if pageErr := options.Console.RenderError(c, err); pageErr == nil {
				return
			}
		}
		api.TraceError(c, err)
		status, body := api.RenderError(err, options.Now())
		if c.Request().Method == http.MethodHead {
			_ = c.NoContent(status) // fails only if the client is gone
			return
		}
		c.Response().Header().Set(echo.HeaderContentLength, strconv.Itoa(len(body)))
		_ = c.Blob(status, echo.MIMEApplicationJSON, body) // likewise
	}
}

// translateError translates errors of the router and the middleware into lending errors.
func translateError(ctx context.Context, err error) error {
	if _, ok := errors.AsType[*lending.Error](err); ok {
		return err
	}
	unread := errors.Is(err, errUnread)
	unavailable := !unread && postgres.IsUnavailable(err)
	if ctx.Err() != nil {
		unavailable = errors.Is(context.Cause(ctx), postgres.ErrOutOfTime)
	}
	if unavailable {
		return lending.NewError(lending.CodeUnavailable, "the service cannot use its database at the "+
			"moment; try again in %d s, with the same Idempotency-Key if you sent one",
			int(retryAfter.Seconds())).WithCause(err)
	}
	// The client has disconnected, which cancels its request.
	if unread || errors.Is(err, context.Canceled) ||
		ctx.Err() != nil && (postgres.IsCancelled(err) || postgres.IsUnavailable(err)) {
		return lending.NewError(lending.CodeValidation,
			"the request was cancelled before it was answered").WithCause(err)
	}
	httpErr, ok := errors.AsType[*echo.HTTPError](err)
	if !ok {
		return err
	}
	switch httpErr.Code {
	case http.StatusNotFound:
		return lending.NewError(lending.CodeNotFound,
			"no operation has this path; compare it with the API reference")
	case http.StatusMethodNotAllowed:
		return lending.NewError(lending.CodeMethodNotAllowed,
			"this path does not support the request's method; the Allow header lists those it supports")
	case http.StatusRequestEntityTooLarge:
		return lending.NewError(lending.CodePayloadTooLarge, "the body is too large")
	}
	return err
}
