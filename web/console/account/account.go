// Package account is the sign-in and sign-out of the console, by password or by the OpenID
// provider, and the pages on which users manage their own account.
package account

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"drawbridge/internal/lending"
	"drawbridge/internal/operator"
	"drawbridge/internal/postgres"
	"drawbridge/views/account"
	"drawbridge/views/paths"
	"drawbridge/web/console/action"
	"drawbridge/web/console/page"
)

// Feature serves the pages.
type Feature struct {
	*action.Engine
	// Provider signs users in by OpenID Connect; nil for passwords only.
	Provider *operator.Provider
}

// Routes lists the pages and changes. The routes to and from the provider exist only if
// there is one. The return is a GET, as browsers are redirected that way; it changes
// something only for a browser that its own form sent to the provider.
func (f *Feature) Routes() []page.Route {
	const guest, support = operator.Role(""), operator.RoleSupport
	routes := []page.Route{
		page.Get(paths.SignIn, "console.signIn", guest, f.signInForm),
		page.Post(paths.SignIn, "console.signIn.submit", guest, f.signIn),
		page.Get(paths.SignInCode, "console.signIn.code", guest, f.codeForm),
		page.Post(paths.SignInCode, "console.signIn.code.submit", guest, f.checkCode),
		page.Post(paths.SignOut, "console.signOut", support, f.signOut),
		page.Get(paths.Account, "console.account", support, f.overview),
		page.Get(paths.Here, "console.here", support, f.Here),
		page.Get(paths.Confirm, "console.confirm", support, f.confirmForm),
		page.Post(paths.Confirm, "console.confirm.submit", support, f.confirm),
		page.Get(paths.Password, "console.password", support, f.passwordForm),
		page.Post(paths.Password, "console.password.submit", support, f.changePassword),
		page.Get(paths.SecondFactor, "console.factor", support, f.factorForm),
		page.Post(paths.SecondFactor, "console.factor.on", support, f.Reauthenticated(f.confirmFactor)),
		page.Post(paths.SecondBegin, "console.factor.begin", support, f.Reauthenticated(f.beginFactor)),
		page.Get(paths.SecondFactorQR, "console.factor.picture", support, f.factorPicture),
		page.Post(paths.SecondOff, "console.factor.off", support,
			f.Reauthenticated(f.Post(f.removeFactor))),
		page.Post(paths.RecoveryCodes, "console.recoveryCodes", support,
			f.Reauthenticated(f.recoveryCodes)),
		page.Post(paths.SessionEnd, "console.session.end", support, f.Post(f.endSessions)),
		page.Post(paths.SessionsEnd, "console.sessions.end", support, f.Post(f.endSessions)),
	}
	if f.Provider == nil {
		return routes
	}
	return append(routes,
		page.Post(paths.SignInProvider, "console.signIn.provider", guest, f.toProvider),
		page.Get(paths.SignInReturn, "console.signIn.return", guest, f.fromProvider))
}

var place = page.Place{Title: "Your account"}

// overview shows how the viewer signs in, and their sessions.
func (f *Feature) overview(ctx echo.Context) error {
	request, user := ctx.Request().Context(), page.User(ctx)
	sessions, err := f.Operators.Sessions(request, user.UID)
	if err != nil {
		return err
	}
	left, err := f.Operators.SecondFactors().RecoveryLeft(request, user)
	if err != nil {
		return err
	}
	return f.Show(ctx, http.StatusOK, place,
		account.Overview(user, sessions, page.Session(ctx).UID, left, f.providerOf(user)))
}

// providerOf names the provider that a user signs in by, empty if none.
func (f *Feature) providerOf(user operator.User) string {
	if f.Provider == nil || !user.Provided {
		return ""
	}
	return f.Provider.Name
}

// own is a change of the viewer's own account; name is its audit action.
func own(
	ctx echo.Context, name, done string, use func(ctx context.Context, tx *postgres.Tx) error,
) action.Change {
	user := page.User(ctx).Email
	return action.Change{
		Done: done,
		Do: func(ctx context.Context, tx *postgres.Tx) (operator.Outcome, error) {
			return operator.Did(paths.Account, operator.NewEntry(name, user, nil, nil)), use(ctx, tx)
		},
	}
}

// endSessions signs the viewer out of the session that the path names, or everywhere else.
func (f *Feature) endSessions(ctx echo.Context) (action.Change, error) {
	user, here := page.User(ctx), page.Session(ctx)
	if ctx.Path() == paths.SessionsEnd {
		return own(ctx, "user.sessions_end", "You are signed out everywhere else.",
			func(ctx context.Context, tx *postgres.Tx) error {
				return f.Operators.EndSessions(ctx, tx, user.UID, here.UID)
			}), nil
	}
	session, err := page.SessionUID(ctx)
	if err != nil {
		return action.Change{}, err
	}
	signed, leaves := page.SignedIn(ctx), session == here.UID
	change := own(ctx, "user.session_end", "That session has ended.",
		func(ctx context.Context, tx *postgres.Tx) error {
			if leaves {
				if err := f.Operators.HoldSession(ctx, tx, signed); err != nil {
					return err
				}
			}
			return f.Operators.EndSession(ctx, tx, user.UID, session)
		})
	change.Leaves = leaves
	return change, nil
}

// passwordForm asks for the viewer's current password and the new one.
func (f *Feature) passwordForm(ctx echo.Context) error {
	return f.showPasswordForm(ctx, http.StatusOK, nil)
}

func (f *Feature) showPasswordForm(ctx echo.Context, status int, problems map[string]string) error {
	return f.Show(ctx, status, place.Under(paths.Account, "Change your password"),
		account.Password(page.User(ctx).MustChangePassword, problems))
}

// changePassword replaces the viewer's password, continues this session under a new token
// and ends all other sessions.
func (f *Feature) changePassword(ctx echo.Context) error {
	signed := page.SignedIn(ctx)
	if ctx.FormValue("password") != ctx.FormValue("again") {
		return f.showPasswordForm(ctx, http.StatusBadRequest, map[string]string{
			"again": "The two new passwords are not the same; type them again.",
		})
	}
	// Before the transaction, because the check uses a connection of its own.
	wrong := f.Operators.CheckPassword(ctx.Request().Context(), signed, ctx.FormValue("current"))
	var changed operator.User
	var session operator.Session
	var refusedBy error
	change := own(ctx, "user.password_change", "",
		func(request context.Context, tx *postgres.Tx) (err error) {
			// Refuse inside the transaction: a second submission would be checked against the new password.
			refusedBy = wrong
			if refusedBy != nil {
				return refusedBy
			}
			if err := f.Operators.HoldSession(request, tx, signed); err != nil {
				return err
			}
			changed, err = f.Operators.ChangePassword(request, tx, signed.User, ctx.FormValue("password"))
			if err != nil {
				return err
			}
			visit := signed.Session
			visit.ProvedAt = time.Time{} // now, by the password just entered
			session, err = f.Operators.Begin(request, tx, changed, visit)
			return err
		})
	change.Leaves = true
	_, err := f.Commit(ctx, change)
	if text, refused := refusedProof(ctx, refusedBy); refused {
		status := http.StatusBadRequest
		if code := lending.ErrorCode(refusedBy); code == lending.CodeUnavailable {
			status = f.Status(code)
		}
		return f.showPasswordForm(ctx, status, map[string]string{"current": text})
	}
	if refusal, ok := errors.AsType[*lending.Error](err); ok && len(refusal.Details) > 0 {
		return f.showPasswordForm(ctx, http.StatusBadRequest, passwordProblems(refusal))
	}
	if err != nil {
		return err
	}
	if err := f.keep(ctx, changed, session); err != nil {
		return err
	}
	f.LeaveNotice(ctx, "Your password is changed. Every other session has ended.")
	return ctx.Redirect(http.StatusSeeOther, paths.Account)
}

// passwordProblems maps the fields of the form to the messages of a refusal.
func passwordProblems(refusal *lending.Error) map[string]string {
	problems := map[string]string{}
	for _, detail := range refusal.Details {
		message := strings.ReplaceAll(detail.Message, `"password"`, "the new password")
		problems[detail.Field] = strings.TrimSpace(
			problems[detail.Field] + " " + page.Sentence(message))
	}
	return problems
}

// confirmForm asks for the password again.
func (f *Feature) confirmForm(ctx echo.Context) error {
	return f.showConfirm(ctx, http.StatusOK, ctx.QueryParam("next"), "")
}

func (f *Feature) showConfirm(ctx echo.Context, status int, next, problem string) error {
	return f.Show(ctx, status, place.Under(paths.Account, "Confirm that it is you"),
		account.Confirm(page.SafeNext(next), problem, f.providerOf(page.User(ctx))))
}

// confirm records that the viewer has re-authenticated.
func (f *Feature) confirm(ctx echo.Context) error {
	next := ctx.FormValue("next")
	err := f.Operators.CheckPassword(
		ctx.Request().Context(), page.SignedIn(ctx), ctx.FormValue("password"))
	if text, refused := refusedProof(ctx, err); refused {
		return f.showConfirm(ctx, f.Status(lending.ErrorCode(err)), next, text)
	}
	if err != nil {
		return err
	}
	return f.proved(ctx, page.SafeNext(next))
}

// proved records that the viewer has re-authenticated, and redirects.
func (f *Feature) proved(ctx echo.Context, next string) error {
	if err := f.Operators.Prove(ctx.Request().Context(), page.Session(ctx).UID); err != nil {
		return err
	}
	f.LeaveNotice(ctx, "Thank you. Nothing was changed yet; you can do it now.")
	return ctx.Redirect(http.StatusSeeOther, next)
}
