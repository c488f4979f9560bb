package account

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/a-h/templ"
	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"drawbridge/internal/lending"
	"drawbridge/internal/operator"
	"drawbridge/internal/postgres"
	"drawbridge/views/account"
	"drawbridge/views/paths"
	"drawbridge/views/ui"
	"drawbridge/web/console/page"
)

// signInForm shows the sign-in, or redirects a user who is signed in already.
func (f *Feature) signInForm(ctx echo.Context) error {
	if page.User(ctx).Email != "" {
		return ctx.Redirect(http.StatusSeeOther, page.SafeNext(ctx.QueryParam("next")))
	}
	form := account.SignInForm{Next: ctx.QueryParam("next")}
	switch ctx.QueryParam("why") {
	case "expired":
		form.Notice = "You were signed out, and nothing was changed. Sign in and do it again."
	case "left":
		form.Notice = "You are signed out."
	case "code":
		form.Notice = "The code came too late. Sign in again."
	}
	users, _, err := f.Operators.Users(ctx.Request().Context(), operator.UserFilter{Limit: 1})
	if err != nil {
		return err
	}
	if len(users) == 0 && f.Provider == nil {
		form.Notice = "Nobody has access yet. Add the first person on the server: " +
			"drawbridge user create --email ADDRESS --name NAME --role admin"
	}
	return f.showSignIn(ctx, http.StatusOK, form)
}

func (f *Feature) showSignIn(ctx echo.Context, status int, form account.SignInForm) error {
	if f.Provider != nil {
		form.Provider = f.Provider.Name
	}
	return f.showToGuest(ctx, status, account.SignIn(form))
}

// showToGuest answers with a page that needs no sign-in.
func (f *Feature) showToGuest(ctx echo.Context, status int, body templ.Component) error {
	around := ui.AuthLayout("Sign in", f.Environment, f.Preference(ctx, "theme"))
	return page.Render(ctx, status, templ.ComponentFunc(
		func(ctx context.Context, w io.Writer) error {
			return around.Render(templ.WithChildren(ctx, body), w)
		}))
}

// signIn checks the password and starts a session.
func (f *Feature) signIn(ctx echo.Context) error {
	email := ctx.FormValue("email")
	user, err := f.Operators.SignIn(
		ctx.Request().Context(), email, ctx.FormValue("password"), f.visitor(ctx, email))
	if text, refused := refusedProof(ctx, err); refused {
		return f.showSignIn(ctx, f.Status(lending.ErrorCode(err)), account.SignInForm{
			Email: email, Next: ctx.FormValue("next"), Problem: text,
		})
	}
	if err != nil {
		return err
	}
	visit := operator.Session{Method: operator.MethodPassword}
	return f.admit(ctx, user, visit, ctx.FormValue("next"))
}

// busySeconds is the Retry-After of a sign-in that was refused for lack of capacity.
const busySeconds = "5"

// refusedProof returns why a password or code was refused, to be shown beside its field;
// false for any other error and for nil.
func refusedProof(ctx echo.Context, err error) (text string, refused bool) {
	refusal, ok := errors.AsType[*lending.Error](err)
	if !ok {
		return "", false
	}
	switch refusal.Code {
	case lending.CodeUnavailable:
		ctx.Response().Header().Set(echo.HeaderRetryAfter, busySeconds)
	case lending.CodeUnauthorized, lending.CodeRateLimited:
	default:
		return "", false
	}
	return refusal.Message, true
}

// admit signs in a user who has passed the first factor, or stores the user in the session
// and asks for the second factor.
func (f *Feature) admit(
	ctx echo.Context, user operator.User, visit operator.Session, next string,
) error {
	next = page.SafeNext(next)
	if user.SecondFactor {
		request := ctx.Request().Context()
		if err := f.Sessions.RenewToken(request); err != nil {
			return err
		}
		f.Sessions.Put(request, sessionWaiting, user.UID.String())
		f.Sessions.Put(request, sessionWaitingFor, user.Credential)
		f.Sessions.Put(request, sessionWaitingAt, f.DB.Now().Unix())
		f.Sessions.Put(request, sessionWaitingBy, string(visit.Method))
		f.Sessions.Put(request, sessionWaitingProof, visit.ProvedAt.Unix())
		return ctx.Redirect(http.StatusSeeOther, paths.Where(paths.SignInCode, "next", next))
	}
	if err := f.begin(ctx, user, visit, map[string]any{"by": visit.Method}); err != nil {
		return err
	}
	return ctx.Redirect(http.StatusSeeOther, next)
}

// codeForm asks for the second factor.
func (f *Feature) codeForm(ctx echo.Context) error {
	_, ok, err := f.awaitedCode(ctx)
	if err != nil {
		return err
	}
	if !ok {
		return ctx.Redirect(http.StatusSeeOther, paths.SignIn+"?why=code")
	}
	return f.showToGuest(ctx, http.StatusOK, account.SignInCode(ctx.QueryParam("next"), ""))
}

// checkCode checks the second factor and starts a session.
func (f *Feature) checkCode(ctx echo.Context) error {
	waiting, ok, err := f.awaitedCode(ctx)
	if err != nil {
		return err
	}
	if !ok {
		return ctx.Redirect(http.StatusSeeOther, paths.SignIn+"?why=code")
	}
	user, visit := waiting.User, waiting.Session
	recovered, err := f.Operators.SecondFactors().Check(
		ctx.Request().Context(), user, ctx.FormValue("code"), f.visitor(ctx, user.Email))
	if text, refused := refusedProof(ctx, err); refused {
		return f.showToGuest(ctx, f.Status(lending.ErrorCode(err)),
			account.SignInCode(ctx.FormValue("next"), text))
	}
	if err != nil {
		return err
	}
	factor := ui.If(recovered, "recovery code", "app")
	how := map[string]any{"by": visit.Method, "second_factor": factor}
	if err := f.begin(ctx, user, visit, how); err != nil {
		return err
	}
	if recovered { // after begin, which clears the session
		f.LeaveNotice(ctx, "You used a recovery code; it will not work again. "+
			"Make new ones on your account page before they run out.")
	}
	return ctx.Redirect(http.StatusSeeOther, page.SafeNext(ctx.FormValue("next")))
}

// awaitedCode returns the user who has just given the correct password and must enter a code.
func (f *Feature) awaitedCode(ctx echo.Context) (operator.Signed, bool, error) {
	request := ctx.Request().Context()
	uid, err := uuid.Parse(f.Sessions.GetString(request, sessionWaiting))
	began := time.Unix(f.Sessions.GetInt64(request, sessionWaitingAt), 0)
	if err != nil || f.DB.Now().Sub(began) > codeWait {
		return operator.Signed{}, false, nil //nolint:nilerr // no id: nobody waits
	}
	user, err := f.Operators.User(request, uid)
	if lending.ErrorCode(err) == lending.CodeNotFound {
		return operator.Signed{}, false, nil
	}
	same := user.Credential == f.Sessions.GetString(request, sessionWaitingFor)
	waiting := operator.Signed{User: user, Session: operator.Session{
		Method:   operator.Method(f.Sessions.GetString(request, sessionWaitingBy)),
		ProvedAt: time.Unix(f.Sessions.GetInt64(request, sessionWaitingProof), 0),
	}}
	return waiting, err == nil && same && user.DisabledAt == nil, err
}

// signOut ends the session.
func (f *Feature) signOut(ctx echo.Context) error {
	user, session := page.User(ctx), page.Session(ctx)
	err := f.ActAs(ctx, user.Email,
		func(ctx context.Context, tx *postgres.Tx) (operator.Outcome, error) {
			return operator.Did(paths.SignIn, operator.NewEntry("user.sign_out", user.Email,
				nil, nil)), f.Operators.EndSession(ctx, tx, user.UID, session.UID)
		})
	if err != nil && lending.ErrorCode(err) != lending.CodeNotFound {
		return err
	}
	if err := f.Sessions.Destroy(ctx.Request().Context()); err != nil {
		return err
	}
	return ctx.Redirect(http.StatusSeeOther, paths.SignIn+"?why=left")
}
