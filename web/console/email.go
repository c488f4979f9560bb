package console

import (
	"fmt"
	"net/http"

	"github.com/labstack/echo/v4"

	"drawbridge/internal/email"
	"drawbridge/internal/lending"
	"drawbridge/views/emails"
	"drawbridge/views/paths"
	"drawbridge/views/ui"
)

// framePolicy is what a mail may do in a frame: bring its own styles. Nothing
// in it runs, sends a form, loads anything or leads anywhere.
const framePolicy = "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; " +
	"form-action 'none'; base-uri 'none'; frame-ancestors 'self'"

// stillLinks follows a framed mail: its links lead nowhere here, and a click
// would only put the browser's refusal in place of the mail.
const stillLinks = "<style>a{pointer-events:none}</style>"

// email shows one mail.
func (c *Console) email(ctx echo.Context) error {
	uid, err := pathUID(ctx)
	if err != nil {
		return err
	}
	detail, err := email.Get(ctx.Request().Context(), c.DB, uid)
	if err != nil {
		return err
	}
	page := emailPage(detail)
	page.Frame, err = c.frame(ctx, ui.SectionEmails, page.Email.Title(),
		ui.Crumb{Label: "E-mails", Href: paths.Emails}, ui.Crumb{Label: page.Email.Title()})
	if err != nil {
		return err
	}
	page.Notice = c.takeNotice(ctx)
	allowFrames(ctx)
	return render(ctx, http.StatusOK, emails.EmailDetailPage(page))
}

// emailBody answers the rendered body of a mail for the frame of its page.
func (c *Console) emailBody(ctx echo.Context) error {
	detail, err := c.writtenEmail(ctx)
	if err != nil {
		return err
	}
	return framed(ctx, detail.HTML)
}

// emailSource answers the message as it goes onto the wire, to be kept as
// proof or opened in a mail program.
func (c *Console) emailSource(ctx echo.Context) error {
	detail, err := c.writtenEmail(ctx)
	if err != nil {
		return err
	}
	ctx.Response().Header().Set(echo.HeaderContentDisposition,
		fmt.Sprintf(`attachment; filename="email-%s.eml"`, detail.EmailUID))
	return ctx.Blob(http.StatusOK, "message/rfc822", []byte(detail.Source))
}

// writtenEmail loads the mail in the path, which must have been written.
func (c *Console) writtenEmail(ctx echo.Context) (email.Detail, error) {
	uid, err := pathUID(ctx)
	if err != nil {
		return email.Detail{}, err
	}
	detail, err := email.Get(ctx.Request().Context(), c.DB, uid)
	if err == nil && (detail.HTML == "" || detail.Source == "") {
		err = lending.NewError(lending.CodeNotFound, "the e-mail %s is not written yet", uid)
	}
	return detail, err
}

// allowFrames lets a page hold frames of this origin, which no other page may.
func allowFrames(ctx echo.Context) {
	ctx.Response().Header().Set("Content-Security-Policy", policy+"; frame-src 'self'")
}

// framed answers foreign HTML so that it can be looked at and do nothing,
// within a frame of the console or opened by itself.
func framed(ctx echo.Context, html string) error {
	header := ctx.Response().Header()
	header.Set("Content-Security-Policy", framePolicy)
	header.Set("X-Frame-Options", "SAMEORIGIN")
	header.Set("Referrer-Policy", "no-referrer")
	// Browsers show no sandboxed document that asks for a group of its own.
	header.Del("Cross-Origin-Opener-Policy")
	return ctx.HTML(http.StatusOK, html+stillLinks)
}

// emailPage is everything that a mail's page says.
func emailPage(detail email.Detail) emails.EmailPage {
	page := emails.EmailPage{
		Email: emailRow(detail.Email), Explanation: explainEmail(detail),
		MessageID: detail.MessageID, Written: value(detail.RenderedAt),
		Finished: value(detail.FinishedAt), Attempts: emailAttempts(detail.Attempts),
		Resends: emailRows(detail.Resends),
	}
	if detail.HTML != "" {
		page.Message = &emails.EmailMessage{
			BodyURL: paths.To(paths.EmailBody, detail.EmailUID.String()),
			Text:    detail.Text, Headers: detail.Headers(),
		}
		if detail.Source != "" {
			page.Message.SourceURL = paths.To(paths.EmailSource, detail.EmailUID.String())
		}
	}
	if detail.ResendOf.Valid {
		page.Origin = detail.ResendOf.UUID.String()
	}
	if maySendAgain(detail.Email) {
		form := emailResendForm(detail.Email)
		page.Resend = &form
	}
	return page
}

func emailAttempts(attempts []email.Attempt) []emails.EmailAttempt {
	shown := make([]emails.EmailAttempt, 0, len(attempts))
	for _, attempt := range attempts {
		shown = append(shown, emails.EmailAttempt{
			Number: attempt.Number, Started: attempt.StartedAt, Took: attempt.Duration(),
			Outcome: string(attempt.Outcome), Stage: string(attempt.Stage),
			Code: attempt.ReplyCode, Reply: attempt.Reply, Error: sentence(attempt.Error),
			Server: attempt.Server, TLS: attempt.TLS,
		})
	}
	return shown
}

// explainEmail says in plain words where a mail stands and what to do.
func explainEmail(detail email.Detail) ui.Diagnosis {
	last := email.Attempt{}
	if len(detail.Attempts) > 0 {
		last = detail.Attempts[len(detail.Attempts)-1]
	}
	switch detail.State {
	case email.StateQueued:
		return explainQueued(detail.WaitsFor, last)
	case email.StateSent:
		return ui.Diagnosis{
			Tone: ui.Good, Title: "The mail server has accepted it", Text: sentence(fmt.Sprintf(
				"it answered %d to attempt %d and is responsible for the e-mail since",
				last.ReplyCode, last.Number)),
			Next: "If it cannot be found, look in the spam folder, then ask whoever runs the mail " +
				"server for its message id.",
		}
	case email.StateFailed:
		return explainFailed(detail, last)
	case email.StateSuppressed:
		return ui.Diagnosis{
			Tone: ui.Mute, Title: "It was held back and is never sent", Text: sentence(detail.Reason),
			Next: "Nothing. Communications begin when an offer is accepted; what was held back " +
				"before is not sent later.",
		}
	case email.StateNotSent:
		return ui.Diagnosis{
			Tone: ui.Warn, Title: "Not sent: " + detail.Reason,
			Text: "It was written and is kept here.",
			Next: "Set DRAWBRIDGE_SMTP_URL, start Drawbridge again, and re-send it if it is still wanted.",
		}
	}
	return ui.Diagnosis{}
}

func explainQueued(wait email.Wait, last email.Attempt) ui.Diagnosis {
	switch {
	case wait == email.WaitServer:
		said := "The server refused other e-mails in the same way."
		if last.Number > 0 {
			said = lastWord(last)
		}
		return ui.Diagnosis{
			Tone: ui.Warn, Title: "It waits: the mail server refuses us, whoever an e-mail is for",
			Text: said, Next: "Tell whoever runs Drawbridge. It is sent by itself once the mail server " +
				"takes e-mails again, and has used up no try.",
		}
	case wait == email.WaitWelcome:
		return ui.Diagnosis{
			Tone: ui.Calm, Title: "It waits for the welcome e-mail",
			Text: "The other e-mails about an application are sent once its welcome e-mail has ended.",
		}
	case last.Number == 0:
		return ui.Diagnosis{
			Tone: ui.Calm, Title: "It waits to be sent",
			Text: "The first attempt is made as soon as a worker is free.",
		}
	case last.Outcome == "":
		return ui.Diagnosis{
			Tone: ui.Calm, Title: "It is being sent", Text: "Reload the page for the result.",
		}
	}
	return ui.Diagnosis{
		Tone: ui.Warn, Title: "It was not accepted yet and is tried again by itself",
		Text: lastWord(last), Next: "Wait, unless every e-mail waits: then look at the mail server.",
	}
}

func explainFailed(detail email.Detail, last email.Attempt) ui.Diagnosis {
	switch {
	case detail.OutcomeUnknown:
		return ui.Diagnosis{
			Tone: ui.Odd, Title: "It may or may not have arrived", Text: sentence(detail.Reason),
			Next: "Ask the recipient before you re-send it: they may get it twice.",
		}
	case last.Outcome == email.OutcomePermanent:
		return ui.Diagnosis{
			Tone: ui.Bad, Title: "The mail server refused it for good", Text: lastWord(last),
			Next: "Check the address with the recipient; the server's answer says what it minds.",
		}
	}
	return ui.Diagnosis{
		Tone: ui.Bad, Title: "It was not sent", Text: sentence(detail.Reason),
		Next: "See that the mail server works again, then re-send it.",
	}
}

// lastWord is what the server said, or what went wrong without an answer.
func lastWord(last email.Attempt) string {
	if last.ReplyCode == 0 {
		return sentence(last.Error)
	}
	return sentence(fmt.Sprintf("attempt %d was answered: %d %s",
		last.Number, last.ReplyCode, last.Reply))
}
