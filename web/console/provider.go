package console

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"drawbridge/internal/lending"
	"drawbridge/internal/operator"
	"drawbridge/internal/postgres"
	"drawbridge/views/account"
	"drawbridge/views/paths"
)

// departure is what a browser keeps while it is at the provider, sealed. It is no row
// of ours: anybody may begin to sign in, as often as they like.
type departure struct {
	operator.Ticket
	Next string
	// Session is the one that is to be proved; nil for a sign-in.
	Session uuid.UUID
}

const (
	departureCookie = "provider"
	// maxDepartureNext bounds a page to come back to, in bytes: browsers drop cookies of
	// more than 4 KiB.
	maxDepartureNext = 1500
)

// The place that a departure is sealed for.
const departureTable, departureColumn, departureRow = "sign_in", "departure", "cookie"

// providerRoutes lists the way to the provider and back; there are none without
// a provider. The way back is a link, since that is how browsers come; it changes
// nothing but for the browser that was led away by its own form.
func (c *Console) providerRoutes() []Route {
	if c.Provider == nil {
		return nil
	}
	return []Route{
		{http.MethodPost, paths.SignInProvider, "console.signIn.provider", "", c.toProvider},
		{http.MethodGet, paths.SignInReturn, "console.signIn.return", "", c.fromProvider},
	}
}

// toProvider leads to the provider with a fresh ticket, by a page of ours: browsers
// refuse a form that is redirected to another site than the policy names.
func (c *Console) toProvider(ctx echo.Context) error {
	request := ctx.Request().Context()
	address, ticket, err := c.Provider.Start(
		request, currentUser(ctx).Email != "", c.DB.Now())
	if err != nil {
		slog.WarnContext(request, "beginning a sign-in by the provider", "error", err)
		return c.refuseSignIn(ctx, lending.NewError(lending.CodeInvalidState,
			"The provider does not answer. Try again, or sign in with your password."))
	}
	leaving := departure{
		Ticket: ticket, Next: safeNext(ctx.FormValue("next")), Session: currentSession(ctx).UID,
	}
	if len(leaving.Next) > maxDepartureNext {
		leaving.Next = paths.Home
	}
	plain, err := json.Marshal(leaving)
	if err != nil {
		return fmt.Errorf("writing down a sign-in by the provider: %w", err)
	}
	sealed := c.Operators.Keys.Seal(plain, departureTable, departureColumn, departureRow)
	ctx.SetCookie(c.departureCookie(sealed, int(operator.TicketLife.Seconds())))
	ctx.Response().Header().Set("Refresh", "0;url="+address)
	return render(ctx, http.StatusOK, account.ToProviderPage(account.ToProvider{
		Environment: c.Environment, Theme: c.Preference(ctx, "theme"),
		Provider: c.Provider.Name, Href: address,
	}))
}

func (c *Console) departureCookie(value string, maxAge int) *http.Cookie {
	//nolint:gosec // Secure wherever TLS is: over plain http browsers would drop the cookie
	return &http.Cookie{
		Name: c.CookieName(departureCookie), Value: value, Path: "/", Secure: c.Secure,
		HttpOnly: true, SameSite: http.SameSiteLaxMode, MaxAge: maxAge,
	}
}

// departed reads what the browser has kept, and takes it away; without it, the ticket
// is one that nothing belongs to.
func (c *Console) departed(ctx echo.Context) departure {
	var leaving departure
	cookie, err := ctx.Cookie(c.CookieName(departureCookie))
	if err != nil {
		return leaving
	}
	ctx.SetCookie(c.departureCookie("", -1))
	plain, err := c.Operators.Keys.Open(
		cookie.Value, departureTable, departureColumn, departureRow)
	if err != nil || json.Unmarshal(plain, &leaving) != nil {
		return departure{}
	}
	return leaving
}

// fromProvider lets in whom the provider vouches for.
func (c *Console) fromProvider(ctx echo.Context) error {
	request, leaving := ctx.Request().Context(), c.departed(ctx)
	here := currentUser(ctx)
	if here.Email != "" && leaving.Session != currentSession(ctx).UID {
		// Signed in meanwhile, by another page: the provider was not asked for a proof.
		return ctx.Redirect(http.StatusSeeOther, safeNext(leaving.Next))
	}
	identity, err := c.Provider.Finish(request, leaving.Ticket,
		ctx.QueryParam("state"), ctx.QueryParam("code"), c.DB.Now())
	if err != nil {
		return c.refuseSignIn(ctx, err)
	}
	user, err := c.admitIdentity(ctx, identity)
	if err != nil {
		return c.refuseSignIn(ctx, err)
	}
	if here.Email != "" {
		return c.proveByProvider(ctx, here, user, leaving.Next)
	}
	visit := operator.Session{
		Method: operator.MethodProvider, ProvedAt: provedAt(identity, c.DB.Now()),
	}
	return c.admit(ctx, user, visit, leaving.Next)
}

// provedAt is when the provider asked, but not in the future; long ago when it does
// not say.
func provedAt(identity operator.Identity, now time.Time) time.Time {
	switch {
	case identity.ProvedAt.IsZero():
		return time.Unix(0, 0)
	case identity.ProvedAt.After(now):
		return now
	}
	return identity.ProvedAt
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
	c.LeaveNotice(ctx, "Thank you. Nothing was changed yet; you can do it now.")
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
			After: user.Recorded(),
		})
	})
	return user, err
}

// refuseSignIn shows the sign-in page with the reason, or to who is signed in the one
// that asks for a proof; what is no refusal is a fault.
func (c *Console) refuseSignIn(ctx echo.Context, err error) error {
	switch lending.ErrorCode(err) {
	case lending.CodeUnauthorized, lending.CodeInvalidState:
		if currentUser(ctx).Email != "" {
			return c.showConfirm(ctx, c.Status(lending.ErrorCode(err)), "", errorText(err))
		}
		page := c.signInPage(ctx)
		page.Fault = errorText(err)
		return render(ctx, c.Status(lending.ErrorCode(err)), account.SignInPage(page))
	default:
		return err
	}
}
