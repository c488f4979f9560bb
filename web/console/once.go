package console

import (
	"context"
	"errors"
	"regexp"
	"slices"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
	"drawbridge/views/paths"
)

// tokenField is the hidden field by which a form is known: one that is sent twice
// acts once.
const tokenField = "token"

// actedKey is where a handler leaves that its form has acted.
const actedKey = "console.acted"

// postForm begins a form that is posted, as templates write it: what is quoted
// in an attribute has no bracket.
var postForm = regexp.MustCompile(`<form\b[^>]*\smethod="post"[^>]*>`)

// withTokens gives every form of a page a token of its own. It is done as the page
// leaves, so that no form is without one, and a live region that has not changed
// still looks the same.
func withTokens(html []byte) []byte {
	return postForm.ReplaceAllFunc(html, func(start []byte) []byte {
		return append(slices.Clip(start),
			`<input type="hidden" name="`+tokenField+`" value="`+uuid.NewString()+`"/>`...)
	})
}

// errSentBefore ends the second arrival of a form; once leads it to what the first
// came to.
var errSentBefore = errors.New("this form was sent before")

// once runs the handler of a form, and leads the form's second arrival to what the
// first one came to. It looks before, since what the first did may be why the
// handler would refuse now, and after, since both may arrive at the same moment.
func (c *Console) once(ctx echo.Context, handler echo.HandlerFunc) error {
	if led, err := c.leadToFirst(ctx); led || err != nil {
		return err
	}
	refusal := handler(ctx)
	if refusal == nil || ctx.Get(actedKey) != nil {
		return refusal
	}
	if led, err := c.leadToFirst(ctx); led {
		return err
	}
	return refusal
}

// act does in one transaction what a form asks for, at most once for each form
// that was shown: the token is kept together with the change. It is the only way
// in which a form changes anything.
//
// A form that was refused has done nothing and may be sent again. Errors:
// VALIDATION_ERROR for a form without its token.
func (c *Console) act(ctx echo.Context, use useCase) (target string, err error) {
	token, err := formToken(ctx)
	if err != nil {
		return "", err
	}
	return c.actAs(ctx, token, use)
}

// useCase is what a form does; target is where the result is to be seen.
type useCase func(request context.Context, tx *postgres.Tx) (target string, err error)

// actAs is act under a token of its own.
func (c *Console) actAs(
	ctx echo.Context, token uuid.UUID, use useCase,
) (target string, err error) {
	request, actor := ctx.Request().Context(), currentUser(ctx).Email
	err = c.DB.InTx(request, func(tx *postgres.Tx) error {
		var repeated bool
		target, repeated, err = c.Operators.Once(request, tx, token, actor,
			func() (string, error) { return use(request, tx) })
		if repeated {
			return errSentBefore
		}
		return err
	})
	if err != nil {
		return "", err
	}
	ctx.Set(actedKey, true)
	return target, nil
}

// inTx runs a transaction that is no form's change: a look at several things at one
// moment, a note of who looked, or a sign-in, each of which may come twice.
func (c *Console) inTx(
	ctx echo.Context, use func(request context.Context, tx *postgres.Tx) error,
) error {
	request := ctx.Request().Context()
	return c.DB.InTx(request, func(tx *postgres.Tx) error { return use(request, tx) })
}

func formToken(ctx echo.Context) (uuid.UUID, error) {
	token, err := uuid.Parse(ctx.FormValue(tokenField))
	if err != nil {
		return uuid.Nil, lending.NewError(lending.CodeValidation,
			"The form is not whole. Open it again and send it once more.")
	}
	return token, nil
}

// leadToFirst leads the second arrival of a form to what the first came to, and
// tells whether there was a first.
func (c *Console) leadToFirst(ctx echo.Context) (bool, error) {
	token, err := formToken(ctx)
	if err != nil || !isSent(ctx) {
		return false, nil //nolint:nilerr // what has no token is unknown; act refuses it
	}
	target, known, err := c.Operators.Submitted(
		ctx.Request().Context(), token, currentUser(ctx).Email)
	if err != nil || !known {
		return false, err
	}
	said := "This form was sent before. Nothing was done a second time."
	if shown := shownThen[ctx.Path()]; shown != "" {
		said = shown
	}
	c.leaveNotice(ctx, said)
	return true, leadTo(ctx, safeNext(target))
}

// shownThen is what the second arrival is told where the first showed a secret,
// which no page shows again.
var shownThen = map[string]string{
	paths.ClientNew: "These credentials were issued before, and their secret was shown then. " +
		"If nobody copied it, rotate it.",
	paths.ClientRotate: "The secret was rotated before, and the new one shown then. " +
		"If nobody copied it, rotate again.",
	paths.PersonNew:      passwordShownThen,
	paths.PersonPassword: passwordShownThen,
	paths.SecondFactor:   codesShownThen,
	paths.RecoveryCodes:  codesShownThen,
}

const (
	passwordShownThen = "The one-time password was made before, and shown then. " +
		"If nobody copied it, reset the password."
	codesShownThen = "The recovery codes were made before, and shown then. " +
		"If you did not keep them, make new ones."
)
