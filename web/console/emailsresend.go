package console

import (
	"context"
	"net/http"
	"net/url"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"drawbridge/internal/email"
	"drawbridge/internal/lending"
	"drawbridge/internal/operator"
	"drawbridge/internal/postgres"
	"drawbridge/views/paths"
	"drawbridge/views/ui"
)

// maxEmailsResent bounds what one form re-sends.
const maxEmailsResent = 500

// resendEmails asks once what re-sending the chosen e-mails means, and then does it.
func (c *Console) resendEmails(ctx echo.Context) error {
	query, err := url.ParseQuery(ctx.FormValue("filter"))
	if err != nil {
		query = nil
	}
	back := paths.With(paths.Emails, query)
	uids, err := c.chosenEmails(ctx, query)
	if err != nil {
		return err
	}
	if len(uids) == 0 {
		c.leaveNotice(ctx, "Tick the e-mails to re-send first: none was ticked, or none that matches "+
			"can be re-sent.")
		return ctx.Redirect(http.StatusSeeOther, back)
	}
	chosen, err := email.Choose(ctx.Request().Context(), c.DB, uids)
	if err != nil {
		return err
	}
	form, uids := emailsResendForm(chosen)
	form.Cancel = back
	form.Hidden = append(form.Hidden, ui.HiddenField{Name: "filter", Value: query.Encode()})
	at := spot{ui.SectionEmails, []ui.Crumb{{Label: "E-mails", Href: back}}}
	switch {
	case len(uids) == 0:
		return lending.NewError(lending.CodeInvalidState,
			"None of the chosen e-mails can be re-sent: they are still being sent, were held back, or "+
				"have no text any more.")
	case ctx.FormValue("confirmed") == "":
		return c.showAsk(ctx, http.StatusOK, at, form)
	}
	return c.answerAsk(ctx, at, form, c.resendChosen(ctx, uids, back))
}

// chosenEmails reads the rows that were selected, or finds all that match.
func (c *Console) chosenEmails(ctx echo.Context, query url.Values) ([]uuid.UUID, error) {
	if ctx.FormValue("all") != "" {
		filter, shown, _ := readEmailFilter(query)
		if err := unlessFaulty(shown.Faults); err != nil {
			return nil, err
		}
		return email.FindResendable(ctx.Request().Context(), c.DB, filter, maxEmailsResent)
	}
	//nolint:forbidigo // a form that was received, not a client's call
	sent := ctx.Request().PostForm["email"]
	if len(sent) > maxEmailsResent {
		return nil, lending.Invalid("email", "Select at most %d e-mails in the list.", maxEmailsResent)
	}
	uids := make([]uuid.UUID, 0, len(sent))
	for _, text := range sent {
		uid, err := uuid.Parse(text)
		if err != nil {
			return nil, lending.Invalid("email", "%.60q is no id of an e-mail", text)
		}
		uids = append(uids, uid)
	}
	return uids, nil
}

// emailsResendForm asks about those of the chosen mails that can be re-sent, and
// returns their ids.
func emailsResendForm(chosen []email.Email) (ui.AskForm, []uuid.UUID) {
	form := ui.AskForm{
		Title: "Re-send e-mails", Action: paths.EmailsResend,
		Hidden: []ui.HiddenField{{Name: "confirmed", Value: "yes"}},
	}
	var uids []uuid.UUID
	var sent, unknown int
	for _, mail := range chosen {
		if !maySendAgain(mail) || mail.ContentRemovedAt != nil {
			continue
		}
		uids = append(uids, mail.EmailUID)
		form.Hidden = append(form.Hidden,
			ui.HiddenField{Name: "email", Value: mail.EmailUID.String()})
		switch {
		case mail.OutcomeUnknown:
			unknown++
		case mail.State == email.StateSent:
			sent++
		}
	}
	what := counted(len(uids), "e-mail", "e-mails")
	form.Submit = "Re-send " + what
	form.Says = []string{"This sends " + what + " once more, each to its recipient with the same " +
		"text, as an e-mail of its own."}
	if left := len(chosen) - len(uids); left > 0 {
		form.Says = append(form.Says, counted(left, "chosen e-mail is", "chosen e-mails are")+
			" left out: still being sent, held back, or without a text.")
	}
	if len(chosen) == maxEmailsResent {
		form.Says = append(form.Says,
			"These are the oldest; choose all that match again for those that are left.")
	}
	if sent > 0 {
		form.Risks = append(form.Risks, counted(sent, "was", "were")+
			" accepted by the mail server already: the recipients get them twice.")
	}
	if unknown > 0 {
		form.Risks = append(form.Risks, "Of "+counted(unknown, "e-mail", "e-mails")+
			" nobody knows the outcome: they may have arrived already.")
	}
	return form, uids
}

// resendChosen re-sends, with an entry in the audit log for each.
func (c *Console) resendChosen(ctx echo.Context, uids []uuid.UUID, back string) commitment {
	user, address, reason := currentUser(ctx).Email, ctx.RealIP(), ctx.FormValue("reason")
	return commitment{
		done: "Re-sent: " + counted(len(uids), "e-mail", "e-mails") + ".",
		do: func(ctx context.Context, tx *postgres.Tx) (operator.Entry, string, error) {
			resent, err := c.Emails.ResendAll(ctx, tx, uids, user, reason)
			if err != nil {
				return operator.Entry{}, "", err
			}
			var last operator.Entry
			for i, one := range resent {
				if i > 0 { // the last one is written with the form
					if err := c.Operators.Audit(ctx, tx, last); err != nil {
						return operator.Entry{}, "", err
					}
				}
				last = operator.Entry{
					Actor: user, Address: address, Action: "email.resend", Reason: reason,
					SubjectKind: "email", Subject: one.Original.String(),
					After: map[string]any{"email_uid": one.Made},
				}
			}
			return last, back, nil
		},
	}
}
