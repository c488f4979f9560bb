package console

import (
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	"drawbridge/internal/lending"
	"drawbridge/internal/operator"
	"drawbridge/internal/postgres"
	"drawbridge/views"
)

// signInForm shows the sign-in, or leads on who is signed in already.
func (c *Console) signInForm(ctx echo.Context) error {
	if currentUser(ctx).Email != "" {
		return ctx.Redirect(http.StatusSeeOther, safeNext(ctx.QueryParam("next")))
	}
	page := c.signInPage(ctx)
	page.Next = ctx.QueryParam("next")
	switch {
	case ctx.QueryParam("why") == "expired":
		page.Notice = "You were signed out, and nothing was changed. Sign in and do it again."
	case ctx.QueryParam("why") == "left":
		page.Notice = "You are signed out."
	}
	return render(ctx, http.StatusOK, views.SignInPage(page))
}

// signIn checks the password and starts a session.
func (c *Console) signIn(ctx echo.Context) error {
	email := ctx.FormValue("email")
	user, err := c.Operators.SignIn(
		ctx.Request().Context(), email, ctx.FormValue("password"), ctx.RealIP())
	switch lending.ErrorCode(err) {
	case "":
	case lending.CodeUnauthorized, lending.CodeRateLimited:
		page := c.signInPage(ctx)
		page.Email, page.Next, page.Fault = email, ctx.FormValue("next"), err.Error()
		return render(ctx, c.Status(lending.ErrorCode(err)), views.SignInPage(page))
	default:
		return err
	}
	if err := c.begin(ctx, user); err != nil {
		return err
	}
	if err := c.audit(ctx, user, "user.sign_in"); err != nil {
		return err
	}
	return ctx.Redirect(http.StatusSeeOther, safeNext(ctx.FormValue("next")))
}

// signOut ends the session.
func (c *Console) signOut(ctx echo.Context) error {
	if err := c.sessions.Destroy(ctx.Request().Context()); err != nil {
		return err
	}
	if err := c.audit(ctx, currentUser(ctx), "user.sign_out"); err != nil {
		return err
	}
	return ctx.Redirect(http.StatusSeeOther, views.PathSignIn+"?why=left")
}

// audit keeps what a user did with their own session.
func (c *Console) audit(ctx echo.Context, user operator.User, action string) error {
	request := ctx.Request().Context()
	return c.DB.InTx(request, func(tx *postgres.Tx) error {
		return c.Operators.Audit(request, tx, operator.Entry{
			Actor: user.Email, Address: ctx.RealIP(), Action: action,
			SubjectKind: "user", Subject: user.Email,
		})
	})
}

func (c *Console) signInPage(ctx echo.Context) views.SignIn {
	return views.SignIn{Environment: c.Environment, Theme: c.preference(ctx, "theme")}
}

// safeNext returns where to go after signing in: a page of the console and no
// other place, however the address is written.
func safeNext(next string) string {
	inside := next == Prefix || strings.HasPrefix(next, Prefix+"/") ||
		strings.HasPrefix(next, Prefix+"?")
	if !inside || strings.ContainsAny(next, "\\\r\n\t") || strings.Contains(next, "..") {
		return views.PathHome
	}
	return next
}
