package action

import (
	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"drawbridge/internal/lending"
	"drawbridge/web/console/page"
)

// actedKey is set in the request's context once a form has made its change.
const actedKey = "console.acted"

// Once runs the handler of a form, and redirects the form's second submission to the result
// of the first. It checks before the handler, which may refuse because of what the first
// one did, and after it, because both may arrive at the same moment.
func (e *Engine) Once(handler echo.HandlerFunc) echo.HandlerFunc {
	return func(ctx echo.Context) error {
		if led, err := e.redirectToFirst(ctx); led || err != nil {
			return err
		}
		refusal := handler(ctx)
		if refusal == nil || ctx.Get(actedKey) != nil {
			return refusal
		}
		if led, err := e.redirectToFirst(ctx); led {
			return err
		}
		return refusal
	}
}

// redirectToFirst redirects the second submission of a form to the result of the first, and
// reports whether there was a first. If the answer to the first commit was lost, there may
// be only one submission; then nobody has seen what the first would have shown.
func (e *Engine) redirectToFirst(ctx echo.Context) (bool, error) {
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
	return true, page.Redirect(ctx, page.SafeNext(target))
}

// FormToken returns the token of the submitted form. Error: VALIDATION_ERROR.
func FormToken(ctx echo.Context) (uuid.UUID, error) {
	token, err := uuid.Parse(ctx.FormValue(page.TokenField))
	if err != nil {
		return uuid.Nil, lending.NewError(lending.CodeValidation,
			"The form is incomplete. Open it again and send it once more.")
	}
	return token, nil
}
