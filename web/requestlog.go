package web

import (
	"log/slog"
	"net/http"
	"regexp"
	"slices"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"
	"go.opentelemetry.io/otel/trace"

	"drawbridge/web/api"
)

// saneID matches the request ids that are safe to echo.
var saneID = regexp.MustCompile(`^[A-Za-z0-9._~:/+=-]{1,128}$`)

// requestID gives every answer an X-Request-Id: the client's own if saneID matches it,
// otherwise a new one.
func requestID(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		id := c.Request().Header.Get(echo.HeaderXRequestID)
		if !saneID.MatchString(id) {
			id = uuid.NewString()
		}
		c.Response().Header().Set(echo.HeaderXRequestID, id)
		return next(c)
	}
}

// methods are the values of the method label in metrics, traces and the log. A caller could
// invent others without limit.
var methods = []string{
	http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch,
	http.MethodDelete, http.MethodConnect, http.MethodOptions, http.MethodTrace,
}

// methodOf returns a request's method, or "_OTHER" if it is not a standard one.
func methodOf(request *http.Request) string {
	if slices.Contains(methods, request.Method) {
		return request.Method
	}
	return "_OTHER"
}

// logRequests writes one line per request. It logs the route, not the values in the path,
// and nothing from bodies or credentials.
func logRequests(options Options) echo.MiddlewareFunc {
	now := options.Now
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			started := now()
			err := next(c)
			if err != nil {
				// Answer now, so that the line has the status that was sent.
				c.Error(err)
			}
			// The trace id links the line to everything else that is logged for the request and, if
			// the trace is sampled, to the trace at the collector.
			traceID := ""
			if found := trace.SpanContextFromContext(c.Request().Context()); found.IsValid() {
				traceID = found.TraceID().String()
			}
			level := slog.LevelInfo
			if c.Response().Status >= 500 {
				level = slog.LevelWarn
			}
			slog.Log(c.Request().Context(), level, "request",
				"request_id", c.Response().Header().Get(echo.HeaderXRequestID),
				"method", methodOf(c.Request()),
				"route", c.Path(),
				"status", c.Response().Status,
				"code", api.TraceOf(c).Code,
				"duration_ms", now().Sub(started).Milliseconds(),
				"bytes_out", c.Response().Size,
				"client", api.CallerID(c),
				"trace_id", traceID,
				"address", c.RealIP())
			if options.Observe != nil {
				options.Observe(Answered{
					Method: methodOf(c.Request()), Route: c.Path(), Status: c.Response().Status,
					Took: now().Sub(started) - api.Waited(c), InternalError: c.Get(internalErrorKey) != nil,
					Client: api.CallerID(c),
				})
			}
			return nil
		}
	}
}
