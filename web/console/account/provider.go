package account

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
	"drawbridge/web/console/page"
)

// departure is the state that a browser keeps, encrypted, while it is at the provider. It is
// not stored in the database, because anybody may start signing in, as often as they like.
type departure struct {
	operator.Ticket
	Next string
	// Session is the session that re-authenticates; nil for a sign-in.
	Session uuid.UUID
}

const (
	departureCookie = "provider"
	// maxDepartureNext bounds the path to return to, in bytes: browsers drop cookies larger
	// than 4 KiB.
	maxDepartureNext = 1500
)

// The table, column and row that a departure is encrypted for.
const departureTable, departureColumn, departureRow = "sign_in", "departure", "cookie"

// toProvider sends the browser to the provider with a new ticket, through a page of ours:
// browsers refuse to follow a form's redirect to a site that the policy does not name.
func (f *Feature) toProvider(ctx echo.Context) error {
	request := ctx.Request().Context()
	address, ticket, err := f.Provider.Start(request, page.User(ctx).Email != "", f.DB.Now())
	if err != nil {
		slog.WarnContext(request, "beginning a sign-in by the provider", "error", err)
		return f.refuseSignIn(ctx, lending.NewError(lending.CodeInvalidState,
			"The provider does not answer. Try again, or sign in with your password."))
	}
	leaving := departure{
		Ticket: ticket, Next: page.SafeNext(ctx.FormValue("next")), Session: page.Session(ctx).UID,
	}
	if len(leaving.Next) > maxDepartureNext {
		leaving.Next = paths.Home
	}
	plain, err := json.Marshal(leaving)
	if err != nil {
		return fmt.Errorf("writing down a sign-in by the provider: %w", err)
	}
	sealed := f.Operators.Keys.Seal(plain, departureTable, departureColumn, departureRow)
	ctx.SetCookie(f.Cookie(departureCookie, sealed, operator.TicketLife))
	ctx.Response().Header().Set("Refresh", "0;url="+address)
	return f.showToGuest(ctx, http.StatusOK, account.ToProvider(f.Provider.Name, address))
}

// fromProvider signs in the user whom the provider has identified.
func (f *Feature) fromProvider(ctx echo.Context) error {
	request, here := ctx.Request().Context(), page.User(ctx)
	// Remove the browser's state. Without state, the ticket is one that nothing matches.
	var leaving departure
	if cookie, err := ctx.Cookie(f.CookieName(departureCookie)); err == nil {
		ctx.SetCookie(f.Cookie(departureCookie, "", -time.Second))
		plain, err := f.Operators.Keys.Open(
			cookie.Value, departureTable, departureColumn, departureRow)
		if err != nil || json.Unmarshal(plain, &leaving) != nil {
			leaving = departure{}
		}
	}
	if here.Email != "" && leaving.Session != page.Session(ctx).UID {
		// Signed in meanwhile on another page: the provider was not asked to re-authenticate.
		return ctx.Redirect(http.StatusSeeOther, page.SafeNext(leaving.Next))
	}
	identity, err := f.Provider.Finish(request, leaving.Ticket,
		ctx.QueryParam("state"), ctx.QueryParam("code"), f.DB.Now())
	if err != nil {
		return f.refuseSignIn(ctx, err)
	}
	user, err := f.admitIdentity(ctx, identity)
	if err != nil {
		return f.refuseSignIn(ctx, err)
	}
	switch here.UID {
	case uuid.Nil:
	case user.UID:
		return f.proved(ctx, leaving.Next)
	default:
		return lending.NewError(lending.CodeForbidden,
			"You are signed in to the provider as another user. Sign out here first to change users.")
	}
	visit := operator.Session{Method: operator.MethodProvider, ProvedAt: identity.ProvedAt}
	if now := f.DB.Now(); visit.ProvedAt.After(now) {
		visit.ProvedAt = now // the authentication cannot be in the future
	} else if visit.ProvedAt.IsZero() {
		visit.ProvedAt = time.Unix(0, 0) // long ago if the provider does not say when
	}
	return f.admit(ctx, user, visit, leaving.Next)
}

// admitIdentity finds or creates the user of an identity.
func (f *Feature) admitIdentity(
	ctx echo.Context, identity operator.Identity,
) (operator.User, error) {
	var user operator.User
	err := f.ActAs(ctx, "",
		func(request context.Context, tx *postgres.Tx) (_ operator.Outcome, err error) {
			var created bool
			user, created, err = f.Operators.Admit(request, tx, f.Provider, identity)
			if err != nil || !created {
				return operator.Outcome{}, err
			}
			return operator.Did(paths.Home, operator.Entry{
				Actor: user.Email, Address: ctx.RealIP(), Action: "user.create", SubjectKind: "user",
				Subject: user.Email, Reason: "first sign-in through " + f.Provider.Name,
				After: user.Recorded(),
			}), nil
		})
	return user, err
}

// refuseSignIn shows the reason on the sign-in page or, to a signed-in user, on the page
// that asks to re-authenticate. An error that is not a refusal is returned.
func (f *Feature) refuseSignIn(ctx echo.Context, err error) error {
	switch lending.ErrorCode(err) {
	case lending.CodeUnauthorized, lending.CodeInvalidState:
		if page.User(ctx).Email != "" {
			return f.showConfirm(ctx, f.Status(lending.ErrorCode(err)), "", page.ErrorText(err))
		}
		return f.showSignIn(ctx, f.Status(lending.ErrorCode(err)),
			account.SignInForm{Problem: page.ErrorText(err)})
	default:
		return err
	}
}
