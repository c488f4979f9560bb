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

// Recorder keeps what partners asked of the API. It must not wait.
type Recorder interface {
	Record(entry apilog.Entry)
}

// besideAPI is where the paths begin that are not the API's, also where these begin with "/".
var besideAPI = []string{
	"/console", "/static", "/docs", "/healthz", "/readyz", "/metrics", "/sample-receiver",
}

// isOfAPI tells whether a path is under the API's base path and under no other.
func (o Options) isOfAPI(path string) bool {
	return path != "/" && strings.HasPrefix(path, o.BasePath+"/") &&
		!slices.ContainsFunc(besideAPI, func(beside string) bool {
			return path == beside || strings.HasPrefix(path, beside+"/")
		})
}

// recordCalls hands every request under the API's base path to the recorder
// once it was answered, those to paths that do not exist included. It stands
// outside the request log, which sees to it that errors are answered by then.
func recordCalls(options Options) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			if options.Requests == nil || options.API == nil || !options.isOfAPI(c.Request().URL.Path) {
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
