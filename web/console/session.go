package console

import (
	"context"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"drawbridge/internal/operator"
	"drawbridge/internal/postgres"
)

// codeWait is how long a right password waits for the code.
const codeWait = 10 * time.Minute

// What a session holds between the password and the code.
const (
	sessionWaiting    = "waiting"
	sessionWaitingFor = "waiting.credential"
	sessionWaitingAt  = "waiting.at"
	sessionWaitingBy  = "waiting.by"
	// sessionWaitingProof is when the provider asked who they are.
	sessionWaitingProof = "waiting.proof"
)

// begin starts a session under a new token, so that one that was planted
// before the sign-in is worth nothing, and keeps it in the audit log.
func (c *Console) begin(
	ctx echo.Context, user operator.User, visit operator.Session, how map[string]any,
) error {
	visit.Address, visit.Device = ctx.RealIP(), ctx.Request().UserAgent()
	var session operator.Session
	err := c.inTx(ctx, func(request context.Context, tx *postgres.Tx) (err error) {
		session, err = c.Operators.Begin(request, tx, user, visit)
		if err != nil {
			return err
		}
		return c.Operators.Audit(request, tx, operator.Entry{
			Actor: user.Email, Address: ctx.RealIP(), Action: "user.sign_in",
			SubjectKind: "user", Subject: user.Email, After: how,
		})
	})
	if err != nil {
		return err
	}
	c.keepDevice(ctx, user.Email)
	return c.keep(ctx, user, session)
}

// visitor is where a try to sign in to an account comes from.
func (c *Console) visitor(ctx echo.Context, email string) operator.Visitor {
	visitor := operator.Visitor{Address: ctx.RealIP()}
	if cookie, err := ctx.Cookie(c.CookieName(operator.DeviceCookie(email))); err == nil {
		visitor.Known = c.Operators.Device(email, cookie.Value)
	}
	return visitor
}

// keepDevice lets the browser be known when it signs in to an account again.
func (c *Console) keepDevice(ctx echo.Context, email string) {
	kept := c.Operators.NewDevice(email, c.visitor(ctx, email).Known)
	if kept == "" {
		return
	}
	//nolint:gosec // Secure wherever TLS is: over plain http browsers would drop the cookie
	ctx.SetCookie(&http.Cookie{
		Name: c.CookieName(operator.DeviceCookie(email)), Value: kept, Path: "/",
		Secure: c.Secure, HttpOnly: true, SameSite: http.SameSiteStrictMode,
		MaxAge: int(operator.DeviceLife.Seconds()),
	})
}

// keep lets the browser go on with a session under a new token.
func (c *Console) keep(ctx echo.Context, user operator.User, session operator.Session) error {
	request := ctx.Request().Context()
	if err := c.Sessions.RenewToken(request); err != nil {
		return err
	}
	c.forgetWaiting(ctx)
	c.Sessions.Put(request, sessionID, session.UID.String())
	c.Sessions.Put(request, sessionCredential, user.Credential)
	return nil
}

// wait keeps who has given the right password until the code comes.
func (c *Console) wait(ctx echo.Context, user operator.User, visit operator.Session) error {
	request := ctx.Request().Context()
	if err := c.Sessions.RenewToken(request); err != nil {
		return err
	}
	c.Sessions.Put(request, sessionWaiting, user.UID.String())
	c.Sessions.Put(request, sessionWaitingFor, user.Credential)
	c.Sessions.Put(request, sessionWaitingAt, c.DB.Now().Unix())
	c.Sessions.Put(request, sessionWaitingBy, string(visit.Method))
	c.Sessions.Put(request, sessionWaitingProof, visit.ProvedAt.Unix())
	return nil
}

func (c *Console) forgetWaiting(ctx echo.Context) {
	for _, key := range []string{
		sessionWaiting, sessionWaitingFor, sessionWaitingAt, sessionWaitingBy,
		sessionWaitingProof,
	} {
		c.Sessions.Remove(ctx.Request().Context(), key)
	}
}
