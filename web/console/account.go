package console

import (
	"errors"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"drawbridge/internal/lending"
	"drawbridge/internal/operator"
	"drawbridge/internal/postgres"
	"drawbridge/views/account"
	"drawbridge/views/paths"
	"drawbridge/views/ui"
	"drawbridge/web/console/page"
)

// accountRoutes lists sign-in and what everybody may do with their own account.
func (c *Console) accountRoutes() []Route {
	const support = operator.RoleSupport
	return []Route{
		{http.MethodGet, paths.SignInCode, "console.signIn.code", "", c.signInCodeForm},
		{http.MethodPost, paths.SignInCode, "console.signIn.code.submit", "", c.signInCode},
		{http.MethodGet, paths.Account, "console.account", support, c.account},
		{http.MethodGet, paths.Confirm, "console.confirm", support, c.confirmForm},
		{http.MethodPost, paths.Confirm, "console.confirm.submit", support, c.confirm},
		{http.MethodGet, paths.Password, "console.password", support, c.passwordForm},
		{http.MethodPost, paths.Password, "console.password.submit", support, c.changePassword},
		{http.MethodGet, paths.SecondFactor, "console.factor", support, c.factorForm},
		{
			http.MethodPost, paths.SecondFactor, "console.factor.on", support,
			c.Reauthenticated(c.confirmFactor),
		},
		{
			http.MethodPost, paths.SecondBegin, "console.factor.begin", support,
			c.Reauthenticated(c.beginFactor),
		},
		{http.MethodGet, paths.SecondFactorQR, "console.factor.picture", support, c.factorPicture},
		{
			http.MethodPost, paths.SecondOff, "console.factor.off", support,
			c.Reauthenticated(c.removeFactor),
		},
		{
			http.MethodPost, paths.RecoveryCodes, "console.recoveryCodes", support,
			c.Reauthenticated(c.recoveryCodes),
		},
		{http.MethodPost, paths.SessionEnd, "console.session.end", support, c.endOwnSession},
		{http.MethodPost, paths.SessionsEnd, "console.sessions.end", support, c.endOwnSessions},
	}
}

// account shows how the viewer signs in and where they are signed in.
func (c *Console) account(ctx echo.Context) error {
	request, user := ctx.Request().Context(), currentUser(ctx)
	sessions, err := c.Operators.Sessions(request, user.UID)
	if err != nil {
		return err
	}
	left, err := c.Operators.RecoveryLeft(request, user)
	if err != nil {
		return err
	}
	shown := account.Account{
		PasswordChanged: value(user.PasswordChangedAt), SecondFactor: user.SecondFactor,
		FactorNeeded: user.SecondFactorNeeded, RecoveryLeft: left,
		Sessions: sessions, Current: currentSession(ctx).UID,
	}
	if c.Provider != nil && user.Provided {
		shown.Provider = c.Provider.Name
	}
	if shown.Frame, err = c.accountFrame(ctx, "Your account"); err != nil {
		return err
	}
	return render(ctx, http.StatusOK, account.Page(shown))
}

// accountFrame is the frame of a page about the viewer's own account.
func (c *Console) accountFrame(ctx echo.Context, title string) (ui.Frame, error) {
	crumbs := []ui.Crumb{{Label: "Your account", Href: paths.Account}}
	if title == crumbs[0].Label {
		crumbs[0].Href = ""
	} else {
		crumbs = append(crumbs, ui.Crumb{Label: title})
	}
	frame, err := c.Frame(ctx, "", title, crumbs...)
	frame.Notice = c.TakeNotice(ctx)
	return frame, err
}

// endOwnSession signs the viewer out of one of their other sessions.
func (c *Console) endOwnSession(ctx echo.Context) error {
	request, user := ctx.Request().Context(), currentUser(ctx)
	session, err := page.SessionUID(ctx)
	if err != nil {
		return err
	}
	err = c.changeOwn(ctx, "user.session_end", func(tx *postgres.Tx) error {
		return c.Operators.EndSession(request, tx, user.UID, session)
	})
	if err != nil {
		return err
	}
	c.LeaveNotice(ctx, "That session has ended.")
	return ctx.Redirect(http.StatusSeeOther, paths.Account)
}

// endOwnSessions signs the viewer out everywhere else.
func (c *Console) endOwnSessions(ctx echo.Context) error {
	request, user := ctx.Request().Context(), currentUser(ctx)
	err := c.changeOwn(ctx, "user.sessions_end", func(tx *postgres.Tx) error {
		return c.Operators.EndSessions(request, tx, user.UID, currentSession(ctx).UID)
	})
	if err != nil {
		return err
	}
	c.LeaveNotice(ctx, "You are signed out everywhere else.")
	return ctx.Redirect(http.StatusSeeOther, paths.Account)
}

// passwordForm asks for the viewer's password now and the new one.
func (c *Console) passwordForm(ctx echo.Context) error {
	return c.showPasswordForm(ctx, http.StatusOK, nil)
}

func (c *Console) showPasswordForm(
	ctx echo.Context, status int, faults map[string]string,
) error {
	frame, err := c.accountFrame(ctx, "Change your password")
	if err != nil {
		return err
	}
	return render(ctx, status, account.PasswordPage(account.PasswordForm{
		Frame: frame, Forced: currentUser(ctx).MustChangePassword, Faults: faults,
	}))
}

// changePassword replaces the viewer's password, goes on with this session under
// a new token and ends every other one.
func (c *Console) changePassword(ctx echo.Context) error {
	request, user := ctx.Request().Context(), currentUser(ctx)
	if ctx.FormValue("password") != ctx.FormValue("again") {
		return c.showPasswordForm(ctx, http.StatusBadRequest, map[string]string{
			"again": "The two new passwords are not the same; type them again.",
		})
	}
	var changed operator.User
	var session operator.Session
	var refusedBy error
	err := c.changeOwn(ctx, "user.password_change", func(tx *postgres.Tx) (err error) {
		// In here, since a second arrival of the form would find the new password.
		refusedBy = c.Operators.CheckPassword(request, signedIn(ctx), ctx.FormValue("current"))
		if refusedBy != nil {
			return refusedBy
		}
		changed, err = c.Operators.ChangePassword(request, tx, user, ctx.FormValue("password"))
		if err != nil {
			return err
		}
		visit := currentSession(ctx)
		visit.ProvedAt = time.Time{} // now, by the password that was typed
		session, err = c.Operators.Begin(request, tx, changed, visit)
		return err
	})
	if text, refused := refusedProof(ctx, refusedBy); refused {
		status := http.StatusBadRequest
		if code := lending.ErrorCode(refusedBy); code == lending.CodeUnavailable {
			status = c.Status(code)
		}
		return c.showPasswordForm(ctx, status, map[string]string{"current": text})
	}
	if refusal, ok := errors.AsType[*lending.Error](err); ok && len(refusal.Details) > 0 {
		return c.showPasswordForm(ctx, http.StatusBadRequest, passwordFaults(refusal))
	}
	if err != nil {
		return err
	}
	if err := c.keep(ctx, changed, session); err != nil {
		return err
	}
	c.LeaveNotice(ctx, "Your password is changed. Every other session has ended.")
	return ctx.Redirect(http.StatusSeeOther, paths.Account)
}

// passwordFaults says what is wrong with a password, in the form's words.
func passwordFaults(refusal *lending.Error) map[string]string {
	return labelled(refusal.Details, map[string]string{"password": "the new password"})
}

// confirmForm asks for the password once more.
func (c *Console) confirmForm(ctx echo.Context) error {
	return c.showConfirm(ctx, http.StatusOK, ctx.QueryParam("next"), "")
}

func (c *Console) showConfirm(ctx echo.Context, status int, next, fault string) error {
	frame, err := c.accountFrame(ctx, "Confirm that it is you")
	if err != nil {
		return err
	}
	form := account.ConfirmForm{Frame: frame, Next: safeNext(next), Fault: fault}
	if c.Provider != nil && currentUser(ctx).Provided {
		form.Provider = c.Provider.Name
	}
	return render(ctx, status, account.ConfirmPage(form))
}

// confirm notes that the viewer has shown who they are.
func (c *Console) confirm(ctx echo.Context) error {
	request, next := ctx.Request().Context(), ctx.FormValue("next")
	err := c.Operators.CheckPassword(request, signedIn(ctx), ctx.FormValue("password"))
	if text, refused := refusedProof(ctx, err); refused {
		return c.showConfirm(ctx, c.Status(lending.ErrorCode(err)), next, text)
	}
	if err != nil {
		return err
	}
	if err := c.Operators.Prove(request, currentSession(ctx).UID); err != nil {
		return err
	}
	c.LeaveNotice(ctx, "Thank you. Nothing was changed yet; you can do it now.")
	return ctx.Redirect(http.StatusSeeOther, safeNext(next))
}
