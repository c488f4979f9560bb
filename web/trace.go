package web

import (
	"net/http"

	"github.com/labstack/echo/v4"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

// traceRequests starts a new trace for each routed request. A trace id that the caller
// sends is ignored: partners must not decide what we record.
func traceRequests(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		request := c.Request()
		ctx, span := otel.Tracer("drawbridge/web").Start(request.Context(),
			methodOf(request)+" "+c.Path(), trace.WithSpanKind(trace.SpanKindServer))
		defer span.End()
		c.SetRequest(request.WithContext(ctx))
		if !span.IsRecording() {
			return next(c)
		}
		span.SetAttributes(
			attribute.String("http.request.method", methodOf(request)),
			attribute.String("http.route", c.Path()),
			attribute.String("drawbridge.request_id", c.Response().Header().Get(echo.HeaderXRequestID)),
		)
		err := next(c)
		if err != nil {
			// Answer now, so that the span has the status that was sent.
			c.Error(err)
		}
		status := c.Response().Status
		span.SetAttributes(attribute.Int("http.response.status_code", status))
		if status >= http.StatusInternalServerError {
			span.SetStatus(codes.Error, http.StatusText(status))
		}
		return nil
	}
}
