package account

import (
	"context"
	"net/http"

	"github.com/labstack/echo/v4"

	"drawbridge/internal/lending"
	"drawbridge/internal/operator"
	"drawbridge/internal/postgres"
	"drawbridge/views/account"
	"drawbridge/views/paths"
	"drawbridge/web/console/action"
	"drawbridge/web/console/page"
)

// factorForm shows the secret of a second factor whose first code is awaited, or offers to
// begin. Reading it creates no secret.
func (f *Feature) factorForm(ctx echo.Context) error {
	if page.User(ctx).SecondFactor {
		return ctx.Redirect(http.StatusSeeOther, paths.Account)
	}
	return f.showFactorForm(ctx, http.StatusOK, "")
}

func (f *Feature) showFactorForm(ctx echo.Context, status int, problem string) error {
	secret := ""
	if enrolment, begun := f.enrolling(ctx); begun {
		secret = enrolment.Spaced()
	}
	must := page.RequiredStep(page.SignedIn(ctx)) == paths.SecondFactor
	return f.Show(ctx, status, place.Under(paths.Account, "Set up a second factor"),
		account.SecondFactor(must, secret, problem))
}

// sessionEnrolment is the session's key of a second factor whose first code is awaited.
const sessionEnrolment = "enrolment"

func (f *Feature) enrolling(ctx echo.Context) (operator.Enrolment, bool) {
	kept := f.Sessions.GetString(ctx.Request().Context(), sessionEnrolment)
	return f.Operators.SecondFactors().Enrolling(page.SignedIn(ctx), kept)
}

// beginFactor creates the secret for the viewer's app. Beginning again keeps the secret, so
// that an app that has scanned it stays valid.
func (f *Feature) beginFactor(ctx echo.Context) error {
	if _, begun := f.enrolling(ctx); !begun {
		kept, err := f.Operators.SecondFactors().Enrol(page.SignedIn(ctx))
		if err != nil {
			return err
		}
		f.Sessions.Put(ctx.Request().Context(), sessionEnrolment, kept)
	}
	return ctx.Redirect(http.StatusSeeOther, paths.SecondFactor)
}

// factorPicture returns the secret as a QR code. It is never cached.
func (f *Feature) factorPicture(ctx echo.Context) error {
	enrolment, begun := f.enrolling(ctx)
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

// confirmFactor enables the second factor and shows the recovery codes, once.
func (f *Feature) confirmFactor(ctx echo.Context) error {
	request, user := ctx.Request().Context(), page.User(ctx)
	var codes []string
	_, err := f.Commit(ctx, own(ctx, "user.second_factor_on", "",
		func(request context.Context, tx *postgres.Tx) (err error) {
			codes, err = f.Operators.SecondFactors().Confirm(request, tx, page.SignedIn(ctx),
				f.Sessions.GetString(request, sessionEnrolment), ctx.FormValue("code"))
			return err
		}))
	if lending.ErrorCode(err) == lending.CodeValidation {
		return f.showFactorForm(ctx, http.StatusBadRequest,
			"This is not the code that the app shows now. Check that the device's clock is right.")
	}
	if err != nil {
		return err
	}
	f.Sessions.Remove(request, sessionEnrolment)
	// The session has gained rights, so it continues under a new token.
	if err := f.keep(ctx, user, page.Session(ctx)); err != nil {
		return err
	}
	return f.showRecoveryCodes(ctx, codes)
}

func (f *Feature) showRecoveryCodes(ctx echo.Context, codes []string) error {
	return f.Show(ctx, http.StatusOK, place.Under(paths.Account, "Your recovery codes"),
		account.RecoveryCodes(codes))
}

// recoveryCodes creates new recovery codes and shows them, once.
func (f *Feature) recoveryCodes(ctx echo.Context) error {
	user := page.User(ctx)
	if !user.SecondFactor {
		return lending.NewError(lending.CodeInvalidState,
			"recovery codes belong to a second factor; set one up first")
	}
	var codes []string
	_, err := f.Commit(ctx, own(ctx, "user.recovery_codes", "",
		func(ctx context.Context, tx *postgres.Tx) (err error) {
			codes, err = f.Operators.SecondFactors().NewRecoveryCodes(ctx, tx, user)
			return err
		}))
	if err != nil {
		return err
	}
	return f.showRecoveryCodes(ctx, codes)
}

// removeFactor disables the viewer's second factor.
func (f *Feature) removeFactor(ctx echo.Context) (action.Change, error) {
	user := page.User(ctx)
	if user.SecondFactorNeeded {
		return action.Change{}, lending.NewError(lending.CodeInvalidState,
			"your role requires a second factor, so you cannot turn it off; an admin can reset it")
	}
	return own(ctx, "user.second_factor_off", "The second factor is off.",
		func(ctx context.Context, tx *postgres.Tx) error {
			return f.Operators.SecondFactors().Remove(ctx, tx, user)
		}), nil
}
