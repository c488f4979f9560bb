package console

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"drawbridge/internal/lending"
	"drawbridge/internal/operator"
	"drawbridge/internal/postgres"
	"drawbridge/views/account"
	"drawbridge/views/paths"
)

// factorForm shows the secret of a second factor that waits for its first code,
// or offers to begin. Reading it makes no secret.
func (c *Console) factorForm(ctx echo.Context) error {
	if currentUser(ctx).SecondFactor {
		return ctx.Redirect(http.StatusSeeOther, paths.Account)
	}
	return c.showFactorForm(ctx, http.StatusOK, "")
}

func (c *Console) showFactorForm(ctx echo.Context, status int, fault string) error {
	enrolment, begun := c.enrolling(ctx)
	frame, err := c.accountFrame(ctx, "Set up a second factor")
	if err != nil {
		return err
	}
	form := account.SecondFactorForm{
		Frame: frame, Forced: owed(signedIn(ctx)) == paths.SecondFactor, Fault: fault,
	}
	if begun {
		form.Secret = enrolment.Spaced()
	}
	return render(ctx, status, account.SecondFactorPage(form))
}

// sessionEnrolment is where the session keeps a second factor that waits for its first
// code.
const sessionEnrolment = "enrolment"

func (c *Console) enrolling(ctx echo.Context) (operator.Enrolment, bool) {
	kept := c.sessions.GetString(ctx.Request().Context(), sessionEnrolment)
	return c.Operators.Enrolling(signedIn(ctx), kept)
}

// beginFactor makes the secret that the viewer's app is to learn. Begun again it
// stays the same, so that an app that has learned it is right.
func (c *Console) beginFactor(ctx echo.Context) error {
	if _, begun := c.enrolling(ctx); !begun {
		kept, err := c.Operators.Enrol(signedIn(ctx))
		if err != nil {
			return err
		}
		c.sessions.Put(ctx.Request().Context(), sessionEnrolment, kept)
	}
	return ctx.Redirect(http.StatusSeeOther, paths.SecondFactor)
}

// factorPicture is the secret as a QR code. It is never cached.
func (c *Console) factorPicture(ctx echo.Context) error {
	enrolment, begun := c.enrolling(ctx)
	if !begun {
		return lending.NewError(lending.CodeNotFound,
			"no second factor is being set up; begin on the page of your account")
	}
	picture, err := enrolment.QR()
	if err != nil {
		return err
	}
	return ctx.Blob(http.StatusOK, "image/png", picture)
}

// confirmFactor turns the second factor on and shows the recovery codes, once.
func (c *Console) confirmFactor(ctx echo.Context) error {
	request, user := ctx.Request().Context(), currentUser(ctx)
	var codes []string
	err := c.changeOwn(ctx, "user.second_factor_on", func(tx *postgres.Tx) (err error) {
		codes, err = c.Operators.ConfirmSecondFactor(request, tx, signedIn(ctx),
			c.sessions.GetString(request, sessionEnrolment), ctx.FormValue("code"))
		return err
	})
	if lending.ErrorCode(err) == lending.CodeValidation {
		return c.showFactorForm(ctx, http.StatusBadRequest,
			"This is not the code that the app shows now. Check that the device's clock is right.")
	}
	if err != nil {
		return err
	}
	c.sessions.Remove(request, sessionEnrolment)
	// What the session may do has grown: it goes on under a new token.
	if err := c.keep(ctx, user, currentSession(ctx)); err != nil {
		return err
	}
	return c.showRecoveryCodes(ctx, codes)
}

func (c *Console) showRecoveryCodes(ctx echo.Context, codes []string) error {
	frame, err := c.accountFrame(ctx, "Your recovery codes")
	if err != nil {
		return err
	}
	return render(ctx, http.StatusOK, account.RecoveryCodesPage(account.RecoveryCodes{
		Frame: frame, Codes: codes,
	}))
}

// recoveryCodes makes new recovery codes and shows them, once.
func (c *Console) recoveryCodes(ctx echo.Context) error {
	request, user := ctx.Request().Context(), currentUser(ctx)
	if !user.SecondFactor {
		return lending.NewError(lending.CodeInvalidState,
			"recovery codes belong to a second factor; set one up first")
	}
	var codes []string
	err := c.changeOwn(ctx, "user.recovery_codes", func(tx *postgres.Tx) (err error) {
		codes, err = c.Operators.NewRecoveryCodes(request, tx, user)
		return err
	})
	if err != nil {
		return err
	}
	return c.showRecoveryCodes(ctx, codes)
}

// removeFactor turns the viewer's second factor off.
func (c *Console) removeFactor(ctx echo.Context) error {
	request, user := ctx.Request().Context(), currentUser(ctx)
	if user.SecondFactorNeeded {
		return lending.NewError(lending.CodeInvalidState,
			"your role must have a second factor; an admin can reset yours")
	}
	err := c.changeOwn(ctx, "user.second_factor_off", func(tx *postgres.Tx) error {
		return c.Operators.RemoveSecondFactor(request, tx, user)
	})
	if err != nil {
		return err
	}
	c.leaveNotice(ctx, "The second factor is off.")
	return ctx.Redirect(http.StatusSeeOther, paths.Account)
}
