package console

import (
	"context"
	"net/http"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"drawbridge/internal/email"
	"drawbridge/internal/lending"
	"drawbridge/internal/operator"
	"drawbridge/internal/postgres"
	"drawbridge/views/emails"
	"drawbridge/views/paths"
	"drawbridge/views/ui"
)

// maySendAgain tells whether support may re-send a mail: neither one that is
// still being sent, nor one that must never be.
func maySendAgain(mail email.Email) bool {
	return mail.State != email.StateQueued && mail.State != email.StateSuppressed
}

// resendEmailForm shows the re-send form on a page of its own.
func (c *Console) resendEmailForm(ctx echo.Context) error {
	uid, err := pathUID(ctx)
	if err != nil {
		return err
	}
	return c.showEmailResend(ctx, uid, http.StatusOK, "")
}

// resendEmail adds a new mail with the same text and leads to it.
func (c *Console) resendEmail(ctx echo.Context) error {
	uid, err := pathUID(ctx)
	if err != nil {
		return err
	}
	made, err := c.sendAgain(ctx, uid, ctx.FormValue("reason"))
	if lending.ErrorCode(err) == lending.CodeValidation {
		return c.showEmailResend(ctx, uid, http.StatusBadRequest, sentence(err.Error()))
	}
	if err != nil {
		return err
	}
	c.leaveNotice(ctx, "Re-sent. This is the new e-mail.")
	return ctx.Redirect(http.StatusSeeOther, paths.To(paths.Email, made.String()))
}

// sendAgain re-sends and keeps it in the audit log, both or neither.
func (c *Console) sendAgain(
	ctx echo.Context, uid uuid.UUID, reason string,
) (uuid.UUID, error) {
	user := currentUser(ctx)
	var made uuid.UUID
	_, err := c.act(ctx, func(request context.Context, tx *postgres.Tx) (_ string, err error) {
		made, err = c.Emails.Resend(request, tx, uid, user.Email, reason)
		if err != nil {
			return "", err
		}
		return paths.To(paths.Email, made.String()), c.Operators.Audit(request, tx, operator.Entry{
			Actor: user.Email, Address: ctx.RealIP(), Action: "email.resend",
			SubjectKind: "email", Subject: uid.String(), Reason: reason,
			After: map[string]any{"email_uid": made},
		})
	})
	return made, err
}

func (c *Console) showEmailResend(
	ctx echo.Context, uid uuid.UUID, status int, fault string,
) error {
	detail, err := email.Get(ctx.Request().Context(), c.DB, uid)
	if err != nil {
		return err
	}
	if !maySendAgain(detail.Email) {
		return lending.NewError(lending.CodeInvalidState,
			"This e-mail is %s and cannot be re-sent.", detail.State)
	}
	form := emailResendForm(detail.Email)
	form.Reason, form.Fault = ctx.FormValue("reason"), fault
	frame, err := c.frame(ctx, ui.SectionEmails, "Re-send this e-mail",
		ui.Crumb{Label: "E-mails", Href: paths.Emails},
		ui.Crumb{Label: emailPage(detail).Email.Title(), Href: paths.To(paths.Email, uid.String())},
		ui.Crumb{Label: "Re-send"})
	if err != nil {
		return err
	}
	return render(ctx, status, emails.EmailResendPage(frame, form))
}

// emailResendForm names what a re-send would do, and what speaks against it.
func emailResendForm(mail email.Email) emails.EmailResendForm {
	form := emails.EmailResendForm{
		UID: mail.EmailUID.String(), Kind: string(mail.Kind), To: mail.ToAddress,
	}
	switch {
	case mail.OutcomeUnknown:
		form.Risks = append(form.Risks,
			"The outcome of the last attempt is unknown: it may have arrived already.")
	case mail.State == email.StateSent:
		form.Risks = append(form.Risks,
			"The mail server has accepted this e-mail already: the recipient gets it twice.")
	case mail.State == email.StateNotSent:
		form.Risks = append(form.Risks,
			"As long as no mail server is configured, the re-send is not sent either.")
	}
	return form
}
