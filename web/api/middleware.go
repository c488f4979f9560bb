package api

import (
	"fmt"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"

	"drawbridge/internal/lending"
	"drawbridge/internal/partner"
)

// The credential headers (specification section 5).
const (
	clientIDHeader     = "x-service-client-id"
	clientSecretHeader = "x-service-client-secret"
	merchantHeader     = "x-service-merchant-uid"
)

// Guard checks the credentials and the rate of a request before its handler.
func (a *API) Guard(route Route) echo.MiddlewareFunc {
	authenticate := a.Partners.Authenticate
	if route.AllMerchants {
		authenticate = a.Partners.AuthenticateAll
	}
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			if !route.Waits {
				defer a.Calls.Begin()()
			}
			header := c.Request().Header
			id := header.Get(clientIDHeader)
			if wait := a.credentials.wait(c.RealIP(), id); wait > 0 {
				return refuseWrong(c, wait)
			}
			caller, err := authenticate(c.Request().Context(),
				id, header.Get(clientSecretHeader), header.Get(merchantHeader))
			a.credentials.learn(c.RealIP(), id, err)
			if err != nil {
				return err
			}
			c.Set(callerKey, caller)
			c.Set(pathKey, route.Path)
			if err := a.limit(c, caller); err != nil {
				return err
			}
			if err := lending.CheckValues(c.QueryParams()); err != nil {
				return err
			}
			return next(c)
		}
	}
}

// refuseWrong answers an address that tried too many wrong credentials.
func refuseWrong(c echo.Context, wait int) error {
	header := c.Response().Header()
	header.Set("RateLimit-Limit", strconv.Itoa(wrongBurst))
	header.Set("RateLimit-Remaining", "0")
	header.Set("RateLimit-Reset", strconv.Itoa(int(wrongBurst*wrongPause/time.Second)))
	header.Set(echo.HeaderRetryAfter, strconv.Itoa(wait))
	return lending.NewError(lending.CodeRateLimited,
		"too many requests with wrong credentials came from this address; correct them and "+
			"try again in %d s", wait)
}

func (a *API) limit(c echo.Context, caller partner.Caller) error {
	decision, err := a.Limiter.Take(c.Request().Context(), caller)
	if err != nil {
		return fmt.Errorf("limiting client %s: %w", caller.ClientID, err)
	}
	header := c.Response().Header()
	header.Set("RateLimit-Limit", strconv.Itoa(decision.Limit))
	header.Set("RateLimit-Remaining", strconv.Itoa(decision.Remaining))
	header.Set("RateLimit-Reset", strconv.Itoa(decision.Reset))
	if decision.Allowed {
		return nil
	}
	header.Set(echo.HeaderRetryAfter, strconv.Itoa(decision.RetryAfter))
	return lending.NewError(lending.CodeRateLimited,
		"too many requests: at most %d per second, %d at once; try again in %d s",
		caller.RatePerSecond, decision.Limit, decision.RetryAfter)
}

// CallerID names the authenticated client of a request for the log, empty for
// none.
func CallerID(c echo.Context) string {
	caller, _ := c.Get(callerKey).(partner.Caller)
	return caller.ClientID
}
