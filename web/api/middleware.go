package api

import (
	"errors"
	"fmt"
	"math"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"drawbridge/internal/lending"
	"drawbridge/internal/partner"
	"drawbridge/internal/postgres"
)

// The credential headers (specification section 5).
const (
	clientIDHeader     = "x-service-client-id"
	clientSecretHeader = "x-service-client-secret"
	merchantHeader     = "x-service-merchant-uid"
)

// Guard checks the credentials, the rate and the scope of a request before its handler.
func (a *API) Guard(route Route) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			header := c.Request().Header
			id := header.Get(clientIDHeader)
			presented := newCredentialsAt(c.RealIP(), id, header.Get(clientSecretHeader))
			if wait := a.credentials.wait(presented); wait > 0 {
				setRateLimitHeaders(c, wrongBurst, 0, int(wrongBurst*wrongPause/time.Second))
				c.Response().Header().Set(echo.HeaderRetryAfter, strconv.Itoa(wait))
				return lending.NewError(lending.CodeRateLimited,
					"too many requests with wrong credentials came from this address; correct the "+
						"credentials and try again in %d s", wait)
			}
			leave, err := a.admit(c, route, id)
			if err != nil {
				return err
			}
			defer leave()
			caller, err := authenticate(c, a.Partners, route, nil)
			a.credentials.learn(presented, err)
			if caller.ClientID == "" {
				return err
			}
			// An authenticated client is logged and limited even if the request is refused, for
			// instance for a merchant that is not its own.
			c.Set(callerKey, caller)
			c.Set(routeKey, route)
			if err := a.limit(c, caller); err != nil {
				return err
			}
			if err != nil {
				return err
			}
			if err := checkScope(route, caller); err != nil {
				return err
			}
			if err := lending.CheckValues(c.QueryParams()); err != nil {
				return err
			}
			err = next(c)
			setQuotaHeaders(c, err)
			return err
		}
	}
}

// authenticate returns the caller. tx is the open transaction of the request, nil outside of one.
func authenticate(
	c echo.Context, partners *partner.Service, route Route, tx *postgres.Tx,
) (partner.Caller, error) {
	check := partners.Authenticate
	switch {
	case route.IsLender():
		check = partners.AuthenticateLender
	case route.AllMerchants:
		check = partners.AuthenticateAll
	}
	header := c.Request().Header
	// A text that is no address, as on a listener without addresses, counts as in no network.
	address, _ := netip.ParseAddr(c.RealIP())
	return check(c.Request().Context(), partner.Presented{
		ClientID: header.Get(clientIDHeader), Secret: header.Get(clientSecretHeader),
		Merchant: header.Get(merchantHeader), Address: address, Within: tx,
	})
}

// recheck refuses a request as Guard would if it came now: its credentials may have been
// revoked, replaced or restricted since. Shortly after another check it costs no query.
func (e *edge) recheck(c echo.Context, tx *postgres.Tx) (partner.Caller, error) {
	route := routeOf(c)
	caller, err := authenticate(c, e.partners, route, tx)
	if err != nil {
		return partner.Caller{}, err
	}
	return caller, checkScope(route, caller)
}

// admit waits until the request is admitted and announces it to the delivery engine. A request that
// may wait for events is not announced, and keeps its slot until it waits, so that asking to wait
// gains nothing. Once woken it continues without a slot, bounded by the events and the waiters.
func (a *API) admit(c echo.Context, route Route, client string) (leave func(), err error) {
	request, answer := c.Request(), c.Response()
	enter, mayWait := a.Admission.Enter, route.Waits && waitOf(c) > 0
	if mayWait {
		enter = a.Admission.EnterPatient
	}
	slot, err := enter(request.Context(), client)
	if err != nil {
		return nil, err
	}
	request.Body, answer.Writer = slot.Body(request.Body), slot.Answer(answer.Writer)
	if mayWait {
		c.Set(slotKey, slot)
		return slot.Leave, nil
	}
	answered := a.Calls.Begin()
	return func() {
		answered()
		slot.Leave()
	}, nil
}

// checkScope refuses a lender's system that has none of the scopes of the operation. Error:
// FORBIDDEN.
func checkScope(route Route, caller partner.Caller) error {
	if !route.IsLender() || slices.ContainsFunc(route.Scopes, func(s partner.Scope) bool {
		return slices.Contains(caller.Scopes, s)
	}) {
		return nil
	}
	names := make([]string, 0, len(route.Scopes))
	for _, scope := range route.Scopes {
		names = append(names, string(scope))
	}
	return lending.NewError(lending.CodeForbidden,
		"these credentials lack the scope %s, which this operation needs",
		strings.Join(names, " or "))
}

func (a *API) limit(c echo.Context, caller partner.Caller) error {
	decision, err := a.Limiter.Take(c.Request().Context(), caller)
	if err != nil {
		return fmt.Errorf("limiting client %s: %w", caller.ClientID, err)
	}
	setRateLimitHeaders(c, decision.Limit, decision.Remaining, decision.Reset)
	if decision.Allowed {
		return nil
	}
	c.Response().Header().Set(echo.HeaderRetryAfter, strconv.Itoa(decision.RetryAfter))
	return lending.NewError(lending.CodeRateLimited,
		"too many requests: at most %d per second, in bursts of up to %d; try again in %d s",
		caller.RatePerSecond, decision.Limit, decision.RetryAfter)
}

// setRateLimitHeaders sets the rate limit headers: how many requests may be made at once,
// how many of them are left, and in how many seconds the full limit is restored.
func setRateLimitHeaders(c echo.Context, limit, remaining, reset int) {
	header := c.Response().Header()
	header.Set("RateLimit-Limit", strconv.Itoa(limit))
	header.Set("RateLimit-Remaining", strconv.Itoa(remaining))
	header.Set("RateLimit-Reset", strconv.Itoa(reset))
}

// setQuotaHeaders replaces the rate limit headers by the quota that the request exceeded.
func setQuotaHeaders(c echo.Context, err error) {
	refusal, ok := errors.AsType[*lending.Error](err)
	if ok && refusal.Quota > 0 {
		setRateLimitHeaders(c, refusal.Quota, 0, int(math.Ceil(refusal.RetryAfter.Seconds())))
	}
}

// CallerID returns the authenticated client of a request for the log, empty if there is
// none.
func CallerID(c echo.Context) string {
	caller, _ := c.Get(callerKey).(partner.Caller)
	return caller.ClientID
}
