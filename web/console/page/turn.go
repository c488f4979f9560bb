package page

import (
	"context"
	"errors"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
)

// atOnce is how many requests of a user are handled at a time, including updates of live
// pages. The others wait: hundreds of pages that a user requests or keeps live must not take
// the database from the API.
const atOnce = 8

// turn waits for the user's turn, which the caller must leave. The wait counts against the
// request's database wait budget. Error: UNAVAILABLE, or why ctx ended.
func (s *Site) turn(ctx context.Context, user uuid.UUID) (leave func(), err error) {
	found, _ := s.turns.LoadOrStore(user, make(chan struct{}, atOnce))
	places, _ := found.(chan struct{})
	defer postgres.Waiting(ctx)()
	select {
	case places <- struct{}{}:
		return func() { <-places }, nil
	case <-ctx.Done():
		err := context.Cause(ctx)
		if errors.Is(err, postgres.ErrOutOfTime) {
			err = lending.NewError(lending.CodeUnavailable,
				"Too many of your pages load at once. Close some, then reload this one.")
		}
		return nil, err
	}
}

// inTurn runs a handler in its user's turn. A stream takes a turn for each update.
func (s *Site) inTurn(handler echo.HandlerFunc) echo.HandlerFunc {
	return func(ctx echo.Context) error {
		if isStream(ctx.Request()) {
			return handler(ctx)
		}
		leave, err := s.turn(ctx.Request().Context(), User(ctx).UID)
		if err != nil {
			return err
		}
		defer leave()
		return handler(ctx)
	}
}
