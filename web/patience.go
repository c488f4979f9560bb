package web

import (
	"cmp"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"

	"drawbridge/internal/postgres"
)

// retryAfter is when a request that the database kept from its answer may be worth
// repeating.
const retryAfter = 5 * time.Second

// patient bounds what a request waits for the database, all statements together. It
// stands outside of what answers errors, for which the context must live.
func patient(timeout time.Duration) echo.MiddlewareFunc {
	timeout = cmp.Or(timeout, postgres.DefaultTimeout)
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			ctx, end := postgres.WithWaitBudget(c.Request().Context(), timeout)
			defer end()
			c.SetRequest(c.Request().WithContext(ctx))
			return next(c)
		}
	}
}

// suggestRetry says when to ask again.
func suggestRetry(c echo.Context) {
	c.Response().Header().Set(echo.HeaderRetryAfter, strconv.Itoa(int(retryAfter.Seconds())))
}
