package console

import (
	"context"
	"log/slog"
	"net/http"

	"github.com/labstack/echo/v4"

	"drawbridge/internal/lending"
	"drawbridge/internal/operator"
	"drawbridge/internal/postgres"
	"drawbridge/views"
)

// What a session holds while its browser is at the provider.
const (
	sessionState    = "provider.state"
	sessionNonce    = "provider.nonce"
	sessionVerifier = "provider.verifier"
	sessionNext     = "provider.next"
)

// providerRoutes lists the way to the provider and back; there are none without
// a provider. Both are links, since that is how browsers come back; what they
// change is the sign-in that the session's own ticket began.
func (c *Console) providerRoutes() []Route {
	if c.Provider == nil {
		return nil
	}
	return []Route{
		{http.MethodGet, views.PathSignInProvider, "console.signIn.provider", "", c.toProvider},
		{http.MethodGet, views.PathSignInReturn, "console.signIn.return", "", c.fromProvider},
	}
}

// toProvider leads to the provider with a fresh ticket.
func (c *Console) toProvider(ctx echo.Context) error {
	request := ctx.Request().Context()
	address, ticket, err := c.Provider.Start(request, currentUser(ctx).Email != "")
	if err != nil {
		slog.WarnContext(request, "beginning a sign-in by the provider", "error", err)
		return c.refuseSignIn(ctx, lending.NewError(lending.CodeInvalidState,
			"The provider does not answer. Try again, or sign in with your password."))
	}
	for key, value := range map[string]string{
		sessionState: ticket.State, sessionNonce: ticket.Nonce, sessionVerifier: ticket.Verifier,
		sessionNext: safeNext(ctx.QueryParam("next")),
	} {
		c.sessions.Put(request, key, value)
	}
	return ctx.Redirect(http.StatusSeeOther, address)
}

// fromProvider lets in whom the provider vouches for. The ticket works once.
func (c *Console) fromProvider(ctx echo.Context) error {
	request := ctx.Request().Context()
	ticket := operator.Ticket{
		State:    c.sessions.PopString(request, sessionState),
		Nonce:    c.sessions.PopString(request, sessionNonce),
		Verifier: c.sessions.PopString(request, sessionVerifier),
	}
	next := safeNext(c.sessions.PopString(request, sessionNext))
	identity, err := c.Provider.Finish(
		request, ticket, ctx.QueryParam("state"), ctx.QueryParam("code"))
	if err != nil {
		return c.refuseSignIn(ctx, err)
	}
	user, err := c.admitIdentity(ctx, identity)
	if err != nil {
		return c.refuseSignIn(ctx, err)
	}
	if here := currentUser(ctx); here.Email != "" {
		return c.proveByProvider(ctx, here, user, next)
	}
	return c.admit(ctx, user, operator.MethodProvider, next)
}

// proveByProvider takes the sign-in of who is signed in already for a proof.
func (c *Console) proveByProvider(
	ctx echo.Context, here, there operator.User, next string,
) error {
	if here.UID != there.UID {
		return lending.NewError(lending.CodeForbidden,
			"The provider knows you as somebody else. Sign out first to change.")
	}
	err := c.Operators.Prove(ctx.Request().Context(), currentSession(ctx).UID)
	if err != nil {
		return err
	}
	c.leaveNotice(ctx, "Thank you. Nothing was changed yet; you can do it now.")
	return ctx.Redirect(http.StatusSeeOther, next)
}

// admitIdentity finds or makes the user of an identity.
func (c *Console) admitIdentity(
	ctx echo.Context, identity operator.Identity,
) (operator.User, error) {
	var user operator.User
	err := c.inTx(ctx, func(request context.Context, tx *postgres.Tx) (err error) {
		var created bool
		user, created, err = c.Operators.Admit(request, tx, c.Provider, identity)
		if err != nil || !created {
			return err
		}
		return c.Operators.Audit(request, tx, operator.Entry{
			Actor: user.Email, Address: ctx.RealIP(), Action: "user.create", SubjectKind: "user",
			Subject: user.Email, Reason: "first sign-in through " + c.Provider.Name,
			After: userState(&user),
		})
	})
	return user, err
}

// refuseSignIn shows the sign-in page with the reason; what is no refusal is a
// fault.
func (c *Console) refuseSignIn(ctx echo.Context, err error) error {
	switch lending.ErrorCode(err) {
	case lending.CodeUnauthorized, lending.CodeInvalidState:
		page := c.signInPage(ctx)
		page.Fault = faultText(err)
		return render(ctx, c.Status(lending.ErrorCode(err)), views.SignInPage(page))
	default:
		return err
	}
}
