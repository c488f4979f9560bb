package console

import (
	"context"
	"net/http"

	"github.com/labstack/echo/v4"

	"drawbridge/internal/lending"
	"drawbridge/internal/operator"
	"drawbridge/internal/postgres"
	"drawbridge/internal/secret"
	"drawbridge/views/paths"
	"drawbridge/views/people"
	"drawbridge/views/ui"
)

// person shows one user and what an admin may do.
func (c *Console) person(ctx echo.Context) error {
	user, err := c.userParam(ctx)
	if err != nil {
		return err
	}
	sessions, err := c.Operators.Sessions(ctx.Request().Context(), user.UID)
	if err != nil {
		return err
	}
	frame, err := c.personFrame(ctx, user, "")
	if err != nil {
		return err
	}
	frame.Notice = c.takeNotice(ctx)
	return render(ctx, http.StatusOK, people.PersonPage(people.Person{
		Frame: frame, PersonRow: personRow(user),
		PasswordChanged: value(user.PasswordChangedAt),
		PasswordExpires: value(user.PasswordExpiresAt),
		Provided:        user.Provided, Self: user.UID == currentUser(ctx).UID,
		Sessions:  sessionViews(sessions, currentSession(ctx).UID),
		AuditHref: paths.Where(paths.Audit, "subject", user.Email, "kind", "user"),
		DoneHref:  paths.Where(paths.Audit, "actor", user.Email),
	}))
}

// personFrame is the frame of a page about a user, titled by the name without
// a title of its own.
func (c *Console) personFrame(
	ctx echo.Context, user operator.User, title string,
) (ui.Frame, error) {
	crumbs := []ui.Crumb{{Label: "People", Href: paths.People}}
	if title == "" {
		title = user.Name
		crumbs = append(crumbs, ui.Crumb{Label: user.Name})
	} else {
		crumbs = append(crumbs,
			ui.Crumb{Label: user.Name, Href: paths.To(paths.Person, user.UID.String())},
			ui.Crumb{Label: title})
	}
	return c.frame(ctx, ui.SectionPeople, title, crumbs...)
}

// changePerson runs an admin's change of somebody else and keeps it in the audit
// log, both or neither. Error: INVALID_STATE for a change of oneself.
func (c *Console) changePerson(
	ctx echo.Context, action string,
	use func(tx *postgres.Tx, user operator.User) (operator.User, error),
) (operator.User, error) {
	user, err := c.userParam(ctx)
	if err != nil {
		return operator.User{}, err
	}
	if user.UID == currentUser(ctx).UID {
		return operator.User{}, lending.NewError(lending.CodeInvalidState,
			"this is your own account; ask another admin, so that nobody locks themselves out")
	}
	var changed operator.User
	_, err = c.act(ctx, func(_ context.Context, tx *postgres.Tx) (_ string, err error) {
		if changed, err = use(tx, user); err != nil {
			return "", err
		}
		return paths.To(paths.Person, user.UID.String()), c.auditUser(ctx, tx, action, &user, &changed)
	})
	return changed, err
}

// backToPerson leads back to a user's page with a notice.
func (c *Console) backToPerson(ctx echo.Context, err error, notice string) error {
	if err != nil {
		return err
	}
	c.leaveNotice(ctx, notice)
	return ctx.Redirect(http.StatusSeeOther, paths.To(paths.Person, ctx.Param("uid")))
}

// setRole gives a user another role.
func (c *Console) setRole(ctx echo.Context) error {
	request, role := ctx.Request().Context(), operator.Role(ctx.FormValue("role"))
	_, err := c.changePerson(ctx, "user.role",
		func(tx *postgres.Tx, user operator.User) (operator.User, error) {
			return c.Operators.SetRole(request, tx, user.UID, role)
		})
	return c.backToPerson(ctx, err, "The role is "+ui.RoleWord(string(role))+" now.")
}

// setAccess ends a user's access or gives it back.
func (c *Console) setAccess(ctx echo.Context) error {
	disabled, action, notice := true, "user.disable", "Their access has ended."
	switch ctx.FormValue("access") {
	case accessDisabled:
	case accessEnabled:
		disabled, action, notice = false, "user.enable", "They may sign in again."
	default:
		return lending.Invalid("access", `"access" must be enabled or disabled`)
	}
	_, err := c.changePerson(ctx, action,
		func(tx *postgres.Tx, user operator.User) (operator.User, error) {
			return c.Operators.SetDisabled(ctx.Request().Context(), tx, user.UID, disabled)
		})
	return c.backToPerson(ctx, err, notice)
}

// resetPassword gives a user a one-time password and shows it.
func (c *Console) resetPassword(ctx echo.Context) error {
	var password secret.String
	user, err := c.changePerson(ctx, "user.password_reset",
		func(tx *postgres.Tx, user operator.User) (changed operator.User, err error) {
			changed, password, err = c.Operators.ResetPassword(ctx.Request().Context(), tx, user.UID)
			return changed, err
		})
	if err != nil {
		return err
	}
	return c.showPassword(ctx, user, password)
}

// resetFactor turns a user's second factor off and signs them out.
func (c *Console) resetFactor(ctx echo.Context) error {
	request := ctx.Request().Context()
	_, err := c.changePerson(ctx, "user.second_factor_reset",
		func(tx *postgres.Tx, user operator.User) (operator.User, error) {
			if err := c.Operators.RemoveSecondFactor(request, tx, user); err != nil {
				return operator.User{}, err
			}
			user.SecondFactor = false
			return user, c.Operators.EndSessions(request, tx, user.UID)
		})
	return c.backToPerson(ctx, err, "Their second factor is off and they are signed out.")
}

// endSessions signs a user out everywhere.
func (c *Console) endSessions(ctx echo.Context) error {
	_, err := c.changePerson(ctx, "user.sessions_end",
		func(tx *postgres.Tx, user operator.User) (operator.User, error) {
			return user, c.Operators.EndSessions(ctx.Request().Context(), tx, user.UID)
		})
	return c.backToPerson(ctx, err, "They are signed out everywhere.")
}

// endSession signs a user out of one session.
func (c *Console) endSession(ctx echo.Context) error {
	session, err := sessionParam(ctx)
	if err != nil {
		return err
	}
	_, err = c.changePerson(ctx, "user.session_end",
		func(tx *postgres.Tx, user operator.User) (operator.User, error) {
			return user, c.Operators.EndSession(ctx.Request().Context(), tx, user.UID, session)
		})
	return c.backToPerson(ctx, err, "That session has ended.")
}
