package web

import (
	"slices"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"drawbridge/internal/apilog"
	"drawbridge/internal/postgres"
	"drawbridge/web/api"
)

// Recorder keeps the API requests of partners. Record must not block.
type Recorder interface {
	Record(entry apilog.Entry)
}

// nonAPIPaths are the path prefixes that are not the API's, even when BasePath is a prefix of one.
var nonAPIPaths = []string{
	"/console", "/static", "/docs", "/healthz", "/readyz", "/metrics", "/sample-receiver",
}

// isAPIPath reports whether a path is under the API's base path and not one of nonAPIPaths.
func (o Options) isAPIPath(path string) bool {
	return path != "/" && strings.HasPrefix(path, o.BasePath+"/") &&
		!slices.ContainsFunc(nonAPIPaths, func(beside string) bool {
			return path == beside || strings.HasPrefix(path, beside+"/")
		})
}

// recordCalls passes every request under the API's base path to the recorder after it was
// answered, including requests to paths that do not exist. It wraps the request log, which
// ensures that errors have been answered by then.
func recordCalls(options Options) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			if options.Requests == nil || options.API == nil || !options.isAPIPath(c.Request().URL.Path) {
				return next(c)
			}
			body := watchBody(c)
			started := options.Now()
			err := next(c)
			took := options.Now().Sub(started) - api.Waited(c)
			trace, at := api.TraceOf(c), started.UTC().Truncate(time.Microsecond)
			entry := apilog.Entry{
				UID: postgres.NewUID(at), At: at,
				RequestID: c.Response().Header().Get(echo.HeaderXRequestID),
				Method:    c.Request().Method, Route: c.Path(), Path: c.Request().URL.Path,
				ClientID: trace.Caller.ClientID, Authenticated: trace.Caller.ClientID != "",
				PartnerUID: trace.Caller.PartnerUID, MerchantUID: trace.Caller.MerchantUID,
				ApplicationUID: trace.ApplicationUID,
				Status:         c.Response().Status, ErrorCode: trace.Code, ErrorFields: trace.Fields,
				IdempotencyKey: c.Request().Header.Get("Idempotency-Key"), Replayed: trace.Replayed,
				Duration: took, BytesIn: body.read, BytesOut: c.Response().Size,
				Address: c.RealIP(), UserAgent: c.Request().UserAgent(),
			}
			if !entry.Authenticated {
				entry.ClientID = trace.ClaimedID
			}
			options.Requests.Record(entry)
			return err
		}
	}
}
