package people

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"

	"drawbridge/internal/lending"
	"drawbridge/internal/operator"
	"drawbridge/internal/postgres"
	"drawbridge/internal/secret"
	"drawbridge/views/paths"
	"drawbridge/views/people"
	"drawbridge/views/ui"
	"drawbridge/web/console/action"
	"drawbridge/web/console/page"
)

// invite creates a user and shows their one-time password.
func (f *Feature) invite() action.Spec {
	return action.Spec{
		Path: paths.PersonNew, Shown: "console.person.new", Sent: "console.person.invite",
		Role: operator.RoleAdmin,
		// Re-authenticate before the form, so that nothing has to be typed twice.
		Reauthenticate: true,
		Confirm: func(ctx echo.Context) (action.Form, error) {
			request := operator.NewUser{
				Email: strings.TrimSpace(ctx.FormValue("email")),
				Name:  strings.TrimSpace(ctx.FormValue("name")),
				Role:  operator.Role(ctx.FormValue("role")),
			}
			var user operator.User
			var password secret.String
			return action.Form{
				Place: place.Under(paths.People, "Invite somebody"),
				Fields: ui.Confirmation{
					Title: "Invite somebody", Action: paths.PersonNew, Cancel: paths.People,
					Submit: "Invite", NoReason: true,
					Effects: []string{"You get a password to pass on. It works for seven days, and only to " +
						"choose another one."},
					Controls: []ui.Control{
						{
							Name: "email", Label: "E-mail", Thing: "the address", Type: "email", MaxLength: 254,
							Hint:     "They sign in with it. With OpenID Connect it must be the provider's.",
							Required: true, Autocomplete: "off", Autofocus: true,
						},
						{
							Name: "name", Label: "Name", Thing: "the name", MaxLength: 200, Required: true,
							Autocomplete: "off",
						},
						{
							Kind: ui.ControlSelect, Name: "role", Label: "Role", Thing: "the role",
							Hint: people.RoleHint, Value: string(operator.RoleSupport),
							Options: people.RoleOptions(),
						},
					},
				},
				Change: action.Change{
					Do: func(ctx context.Context, tx *postgres.Tx) (_ operator.Outcome, err error) {
						if user, password, err = f.Operators.Invite(ctx, tx, request); err != nil {
							return operator.Outcome{}, err
						}
						return operator.Did(paths.To(paths.Person, user.UID.String()),
							operator.NewEntry("user.create", user.Email, nil, user.Recorded())), nil
					},
				},
				Show: func(ctx echo.Context) error { return f.showPassword(ctx, user, password) },
			}, nil
		},
	}
}

// showPassword shows a one-time password, once: it is in no session and no log.
func (f *Feature) showPassword(ctx echo.Context, user operator.User, password secret.String) error {
	at := place.Under(paths.People, user.Name).
		Under(paths.To(paths.Person, user.UID.String()), "One-time password")
	return f.Show(ctx, http.StatusOK, at, people.OncePassword(user, password.Reveal()))
}

// person shows one user and what an admin may do.
func (f *Feature) person(ctx echo.Context) error {
	user, err := page.Named(ctx, f.Operators.User)
	if err != nil {
		return err
	}
	sessions, err := f.Operators.Sessions(ctx.Request().Context(), user.UID)
	if err != nil {
		return err
	}
	return f.Show(ctx, http.StatusOK, place.Under(paths.People, user.Name),
		people.Detail(user, sessions, user.UID == page.User(ctx).UID, page.Session(ctx).UID))
}

// wholeChanges record the whole change: equal states before and after mean no change.
var wholeChanges = []string{"user.role", "user.disable", "user.enable"}

// other is an admin's change of another user; name is its audit action. Errors: NOT_FOUND,
// INVALID_STATE for a change of oneself.
func (f *Feature) other(
	ctx echo.Context, name, done string,
	use func(ctx context.Context, tx *postgres.Tx, user operator.User) (operator.User, error),
) (action.Change, error) {
	user, err := page.Named(ctx, f.Operators.User)
	if err != nil {
		return action.Change{}, err
	}
	if user.UID == page.User(ctx).UID {
		return action.Change{}, lending.NewError(lending.CodeInvalidState,
			"this is your own account; ask another admin, so that you cannot lock yourself out")
	}
	return action.Change{
		Done: done,
		Do: func(ctx context.Context, tx *postgres.Tx) (operator.Outcome, error) {
			changed, err := use(ctx, tx, user)
			target, before, after := paths.To(paths.Person, user.UID.String()), user.Recorded(),
				changed.Recorded()
			if err != nil || slices.Contains(wholeChanges, name) && maps.Equal(before, after) {
				return operator.Outcome{Target: target}, err
			}
			return operator.Did(target, operator.NewEntry(name, changed.Email, before, after)), nil
		},
	}, nil
}

// setRole changes a user's role.
func (f *Feature) setRole(ctx echo.Context) (action.Change, error) {
	role := operator.Role(ctx.FormValue("role"))
	return f.other(ctx, "user.role", "The role is "+ui.RoleWord(string(role))+" now.",
		func(ctx context.Context, tx *postgres.Tx, user operator.User) (operator.User, error) {
			return f.Operators.SetRole(ctx, tx, user.UID, role)
		})
}

// setAccess ends or restores a user's access.
func (f *Feature) setAccess(ctx echo.Context) (action.Change, error) {
	disabled, name, done := true, "user.disable", "Their access has ended."
	switch ctx.FormValue("access") {
	case accessDisabled:
	case accessEnabled:
		disabled, name, done = false, "user.enable", "They may sign in again."
	default:
		return action.Change{}, lending.Invalid("access", `"access" must be enabled or disabled`)
	}
	return f.other(ctx, name, done,
		func(ctx context.Context, tx *postgres.Tx, user operator.User) (operator.User, error) {
			return f.Operators.SetDisabled(ctx, tx, user.UID, disabled)
		})
}

// resetPassword gives a user a new one-time password and shows it.
func (f *Feature) resetPassword(ctx echo.Context) error {
	var changed operator.User
	var password secret.String
	change, err := f.other(ctx, "user.password_reset", "",
		func(ctx context.Context, tx *postgres.Tx, user operator.User) (_ operator.User, err error) {
			changed, password, err = f.Operators.ResetPassword(ctx, tx, user.UID)
			return changed, err
		})
	if err == nil {
		_, err = f.Commit(ctx, change)
	}
	if err != nil {
		return err
	}
	return f.showPassword(ctx, changed, password)
}

// resetFactor disables a user's second factor and signs them out.
func (f *Feature) resetFactor(ctx echo.Context) (action.Change, error) {
	return f.other(ctx, "user.second_factor_reset",
		"Their second factor is off and they are signed out.",
		func(ctx context.Context, tx *postgres.Tx, user operator.User) (operator.User, error) {
			if err := f.Operators.SecondFactors().Remove(ctx, tx, user); err != nil {
				return operator.User{}, err
			}
			user.SecondFactor = false
			return user, f.Operators.EndSessions(ctx, tx, user.UID)
		})
}

// endSessions signs a user out of the session that the path names, or everywhere.
func (f *Feature) endSessions(ctx echo.Context) (action.Change, error) {
	if ctx.Path() == paths.PersonSession {
		session, err := page.SessionUID(ctx)
		if err != nil {
			return action.Change{}, err
		}
		return f.other(ctx, "user.session_end", "That session has ended.",
			func(ctx context.Context, tx *postgres.Tx, user operator.User) (operator.User, error) {
				return user, f.Operators.EndSession(ctx, tx, user.UID, session)
			})
	}
	return f.other(ctx, "user.sessions_end", "They are signed out everywhere.",
		func(ctx context.Context, tx *postgres.Tx, user operator.User) (operator.User, error) {
			return user, f.Operators.EndSessions(ctx, tx, user.UID)
		})
}
