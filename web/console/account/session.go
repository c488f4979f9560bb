package account

import (
	"context"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"drawbridge/internal/operator"
	"drawbridge/internal/postgres"
	"drawbridge/views/paths"
	"drawbridge/web/console/page"
)

// codeWait is how long a correct password is valid while the code is awaited.
const codeWait = 10 * time.Minute

// The session's keys between the password and the code.
const (
	sessionWaiting    = "waiting"
	sessionWaitingFor = "waiting.credential"
	sessionWaitingAt  = "waiting.at"
	sessionWaitingBy  = "waiting.by"
	// sessionWaitingProof is when the provider authenticated the user.
	sessionWaitingProof = "waiting.proof"
)

// begin starts a session under a new token, so that a token planted before the sign-in is
// useless, and writes the sign-in to the audit log.
func (f *Feature) begin(
	ctx echo.Context, user operator.User, visit operator.Session, how map[string]any,
) error {
	visit.Address, visit.Device = ctx.RealIP(), ctx.Request().UserAgent()
	var session operator.Session
	err := f.ActAs(ctx, user.Email,
		func(ctx context.Context, tx *postgres.Tx) (_ operator.Outcome, err error) {
			session, err = f.Operators.Begin(ctx, tx, user, visit)
			return operator.Did(paths.Home, operator.NewEntry("user.sign_in", user.Email, nil, how)), err
		})
	if err != nil {
		return err
	}
	// Recognise the browser when it signs in to the account again.
	kept := f.Operators.NewDevice(user.Email, f.visitor(ctx, user.Email).Known)
	if kept != "" {
		//nolint:gosec // it sets every attribute
		cookie := f.Cookie(operator.DeviceCookie(user.Email), kept, operator.DeviceLife)
		cookie.SameSite = http.SameSiteStrictMode
		ctx.SetCookie(cookie)
	}
	// Data in the session, such as a new secret, belongs to its former user.
	if err := f.Sessions.Clear(ctx.Request().Context()); err != nil {
		return err
	}
	return f.keep(ctx, user, session)
}

// visitor describes where an attempt to sign in to an account comes from.
func (f *Feature) visitor(ctx echo.Context, email string) operator.Visitor {
	visitor := operator.Visitor{Address: ctx.RealIP()}
	if cookie, err := ctx.Cookie(f.CookieName(operator.DeviceCookie(email))); err == nil {
		visitor.Known = f.Operators.Device(email, cookie.Value)
	}
	return visitor
}

// keep continues a session of the browser under a new token.
func (f *Feature) keep(ctx echo.Context, user operator.User, session operator.Session) error {
	request := ctx.Request().Context()
	if err := f.Sessions.RenewToken(request); err != nil {
		return err
	}
	for _, key := range []string{
		sessionWaiting, sessionWaitingFor, sessionWaitingAt, sessionWaitingBy, sessionWaitingProof,
	} {
		f.Sessions.Remove(request, key)
	}
	f.Sessions.Put(request, page.SessionID, session.UID.String())
	f.Sessions.Put(request, page.SessionCredential, user.Credential)
	return nil
}
