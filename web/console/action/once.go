package action

import (
	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"drawbridge/internal/lending"
	"drawbridge/web/console/page"
)

// actedKey is where the engine leaves that a form has acted.
const actedKey = "console.acted"

// Once runs the handler of a form, and leads the form's second arrival to what the
// first one came to. It looks before, since what the first did may be why the
// handler would refuse now, and after, since both may arrive at the same moment.
func (e *Engine) Once(handler echo.HandlerFunc) echo.HandlerFunc {
	return func(ctx echo.Context) error {
		if led, err := e.leadToFirst(ctx); led || err != nil {
			return err
		}
		refusal := handler(ctx)
		if refusal == nil || ctx.Get(actedKey) != nil {
			return refusal
		}
		if led, err := e.leadToFirst(ctx); led {
			return err
		}
		return refusal
	}
}

// leadToFirst leads the second arrival of a form to what the first came to, and
// tells whether there was a first. It may be the only one, where the answer to its commit was
// lost: then nobody has seen what the first would have shown.
func (e *Engine) leadToFirst(ctx echo.Context) (bool, error) {
	token, err := FormToken(ctx)
	user := page.User(ctx)
	if err != nil || !page.IsSent(ctx) || user.Email == "" {
		return false, nil //nolint:nilerr // what has no token is unknown; Commit refuses it
	}
	target, known, err := e.Operators.Submitted(ctx.Request().Context(), token, user.Email)
	if err != nil || !known {
		return false, err
	}
	notice := e.ShownOnce[ctx.Path()]
	if notice == "" {
		notice = "This form has acted already. Nothing was done a second time."
	}
	e.LeaveNotice(ctx, notice)
	return true, page.LeadTo(ctx, page.SafeNext(target))
}

// FormToken is the token of the form that was sent. Error: VALIDATION_ERROR.
func FormToken(ctx echo.Context) (uuid.UUID, error) {
	token, err := uuid.Parse(ctx.FormValue(page.TokenField))
	if err != nil {
		return uuid.Nil, lending.NewError(lending.CodeValidation,
			"The form is not whole. Open it again and send it once more.")
	}
	return token, nil
}
