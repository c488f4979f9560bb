package web

import (
	"cmp"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"

	"drawbridge/internal/postgres"
)

// retryAfter is the Retry-After of a request that failed because the database was
// unavailable.
const retryAfter = 5 * time.Second

// limitDatabaseWait bounds the total time that a request may spend waiting for the
// database. It wraps the middleware that renders errors, which needs a live context.
func limitDatabaseWait(timeout time.Duration) echo.MiddlewareFunc {
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

// suggestRetry sets the Retry-After header.
func suggestRetry(c echo.Context) {
	c.Response().Header().Set(echo.HeaderRetryAfter, strconv.Itoa(int(retryAfter.Seconds())))
}
