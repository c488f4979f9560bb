package console

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"drawbridge/internal/lending"
	"drawbridge/internal/operator"
	"drawbridge/internal/postgres"
	"drawbridge/views/account"
	"drawbridge/views/paths"
)

// signInForm shows the sign-in, or leads on who is signed in already.
func (c *Console) signInForm(ctx echo.Context) error {
	if currentUser(ctx).Email != "" {
		return ctx.Redirect(http.StatusSeeOther, safeNext(ctx.QueryParam("next")))
	}
	page := c.signInPage(ctx)
	page.Next = ctx.QueryParam("next")
	switch ctx.QueryParam("why") {
	case "expired":
		page.Notice = "You were signed out, and nothing was changed. Sign in and do it again."
	case "left":
		page.Notice = "You are signed out."
	case "code":
		page.Notice = "The code came too late. Sign in again."
	}
	return render(ctx, http.StatusOK, account.SignInPage(page))
}

// signIn checks the password and starts a session.
func (c *Console) signIn(ctx echo.Context) error {
	email := ctx.FormValue("email")
	user, err := c.Operators.SignIn(
		ctx.Request().Context(), email, ctx.FormValue("password"), c.visitor(ctx, email))
	if text, refused := refusedProof(ctx, err); refused {
		page := c.signInPage(ctx)
		page.Email, page.Next, page.Fault = email, ctx.FormValue("next"), text
		return render(ctx, c.Status(lending.ErrorCode(err)), account.SignInPage(page))
	}
	if err != nil {
		return err
	}
	visit := operator.Session{Method: operator.MethodPassword}
	return c.admit(ctx, user, visit, ctx.FormValue("next"))
}

// busySeconds is for how long who is refused for want of room is asked to wait.
const busySeconds = "5"

// refusedProof is why a password or code was refused, to be shown where it was typed;
// false for any other error and for none.
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

// admit lets in who has shown the first factor, or asks for the second.
func (c *Console) admit(
	ctx echo.Context, user operator.User, visit operator.Session, next string,
) error {
	next = safeNext(next)
	if user.SecondFactor {
		if err := c.wait(ctx, user, visit); err != nil {
			return err
		}
		return ctx.Redirect(http.StatusSeeOther, nextTo(paths.SignInCode, next))
	}
	if err := c.begin(ctx, user, visit, map[string]any{"by": visit.Method}); err != nil {
		return err
	}
	return ctx.Redirect(http.StatusSeeOther, next)
}

// signInCodeForm asks for the second factor.
func (c *Console) signInCodeForm(ctx echo.Context) error {
	_, ok, err := c.awaitedCode(ctx)
	if err != nil {
		return err
	}
	if !ok {
		return ctx.Redirect(http.StatusSeeOther, paths.SignIn+"?why=code")
	}
	return render(ctx, http.StatusOK, account.SignInCodePage(account.SignInCode{
		Environment: c.Environment, Theme: c.preference(ctx, "theme"),
		Next: ctx.QueryParam("next"),
	}))
}

// signInCode checks the second factor and starts a session.
func (c *Console) signInCode(ctx echo.Context) error {
	owing, ok, err := c.awaitedCode(ctx)
	if err != nil {
		return err
	}
	if !ok {
		return ctx.Redirect(http.StatusSeeOther, paths.SignIn+"?why=code")
	}
	user, visit := owing.User, owing.Session
	recovered, err := c.Operators.CheckCode(
		ctx.Request().Context(), user, ctx.FormValue("code"), c.visitor(ctx, user.Email))
	if text, refused := refusedProof(ctx, err); refused {
		return render(ctx, c.Status(lending.ErrorCode(err)), account.SignInCodePage(account.SignInCode{
			Environment: c.Environment, Theme: c.preference(ctx, "theme"),
			Next: ctx.FormValue("next"), Fault: text,
		}))
	}
	if err != nil {
		return err
	}
	factor := "app"
	if recovered {
		factor = "recovery code"
		c.leaveNotice(ctx, "You used a recovery code; it will not work again. "+
			"Make new ones on your account page before they run out.")
	}
	how := map[string]any{"by": visit.Method, "second_factor": factor}
	if err := c.begin(ctx, user, visit, how); err != nil {
		return err
	}
	return ctx.Redirect(http.StatusSeeOther, safeNext(ctx.FormValue("next")))
}

// awaitedCode returns who has given the right password a moment ago and owes a code.
func (c *Console) awaitedCode(ctx echo.Context) (operator.Signed, bool, error) {
	request := ctx.Request().Context()
	uid, err := uuid.Parse(c.sessions.GetString(request, sessionWaiting))
	began := time.Unix(c.sessions.GetInt64(request, sessionWaitingAt), 0)
	if err != nil || c.DB.Now().Sub(began) > codeWait {
		return operator.Signed{}, false, nil //nolint:nilerr // no id: nobody waits
	}
	user, err := c.Operators.User(request, uid)
	if lending.ErrorCode(err) == lending.CodeNotFound {
		return operator.Signed{}, false, nil
	}
	same := user.Credential == c.sessions.GetString(request, sessionWaitingFor)
	owing := operator.Signed{User: user, Session: operator.Session{
		Method:   operator.Method(c.sessions.GetString(request, sessionWaitingBy)),
		ProvedAt: time.Unix(c.sessions.GetInt64(request, sessionWaitingProof), 0),
	}}
	return owing, err == nil && same && user.DisabledAt == nil, err
}

// signOut ends the session.
func (c *Console) signOut(ctx echo.Context) error {
	request, user := ctx.Request().Context(), currentUser(ctx)
	err := c.inTx(ctx, func(request context.Context, tx *postgres.Tx) error {
		err := c.Operators.EndSession(request, tx, user.UID, currentSession(ctx).UID)
		if err != nil {
			return err
		}
		return c.auditOwn(ctx, tx, "user.sign_out")
	})
	if err != nil && lending.ErrorCode(err) != lending.CodeNotFound {
		return err
	}
	if err := c.sessions.Destroy(request); err != nil {
		return err
	}
	return ctx.Redirect(http.StatusSeeOther, paths.SignIn+"?why=left")
}

// changeOwn changes the viewer's own account, once for each form, and keeps it in
// the audit log, both or neither.
func (c *Console) changeOwn(
	ctx echo.Context, action string, use func(tx *postgres.Tx) error,
) error {
	_, err := c.act(ctx, func(_ context.Context, tx *postgres.Tx) (string, error) {
		if err := use(tx); err != nil {
			return "", err
		}
		return paths.Account, c.auditOwn(ctx, tx, action)
	})
	return err
}

func (c *Console) auditOwn(ctx echo.Context, tx *postgres.Tx, action string) error {
	user := currentUser(ctx).Email
	return c.Operators.Audit(ctx.Request().Context(), tx, operator.Entry{
		Actor: user, Address: ctx.RealIP(), Action: action, SubjectKind: "user", Subject: user,
	})
}

func (c *Console) signInPage(ctx echo.Context) account.SignIn {
	page := account.SignIn{Environment: c.Environment, Theme: c.preference(ctx, "theme")}
	if c.Provider != nil {
		page.Provider = c.Provider.Name
	}
	return page
}

// safeNext returns where to go after signing in: a page of the console and no
// other place, however the address is written.
func safeNext(next string) string {
	inside := next == Prefix || strings.HasPrefix(next, Prefix+"/") ||
		strings.HasPrefix(next, Prefix+"?")
	if !inside || strings.ContainsAny(next, "\\\r\n\t") || strings.Contains(next, "..") {
		return paths.Home
	}
	return next
}
