package doctor

import (
	"context"
	"fmt"

	"drawbridge/internal/app"
	"drawbridge/internal/config"
	"drawbridge/internal/email"
)

// examineMail opens a session with the mail server, names the sender and sends
// nothing.
func examineMail(ctx context.Context, s *app.Services) ([]Checkup, error) {
	if s.Settings.SMTPURL == "" {
		found := Checkup{
			Name: "mail", Finding: Skipped,
			Detail: "No mail server is configured; mails are kept and not sent.",
		}
		if s.Settings.Env.Hosted() {
			found.Finding, found.Remedy = Warning, "Set DRAWBRIDGE_SMTP_URL."
		}
		return []Checkup{found}, nil
	}
	found := []Checkup{examineMailServer(ctx, s.Settings)}
	if s.Settings.SentByLocalhost() {
		found = append(found, Checkup{
			Name: "sender", Finding: Warning,
			Detail: s.Settings.MailFrom + " is no valid address outside this machine; mails will bounce.",
			Remedy: "Set DRAWBRIDGE_MAIL_FROM='Lender <mail@lender.example>', with your own domain.",
		})
	}
	return found, nil
}

// examineMailServer reports only what it saw of the server.
func examineMailServer(ctx context.Context, settings config.Config) Checkup {
	found := Checkup{
		Name: "mail", Finding: Failed,
		Remedy: "Check host, port, user and password of DRAWBRIDGE_SMTP_URL, and the firewall.",
	}
	server, err := email.ParseServer(settings.SMTPURL)
	if err != nil {
		found.Detail = Sentence(err)
		return found
	}
	from, err := email.ParseSender(settings.MailFrom)
	if err != nil {
		found.Detail = Sentence(err)
		found.Remedy = "Give DRAWBRIDGE_MAIL_FROM an address such as Lender <mail@lender.example>."
		return found
	}
	client := email.NewSMTPClient(server, email.DefaultLimits())
	defer client.Close()
	seen, err := client.Probe(ctx, from)
	if err != nil {
		stage, cause := email.FailedStage(err)
		found.Detail = Sentence(err)
		switch stage { //nolint:exhaustive // the others are matters of the network
		case email.StageAuth:
			found.Detail = Sentence(fmt.Errorf("%s did not accept the sign-in of %s: %w",
				server.Address(), server.User, cause))
			found.Remedy = "Fix the user and password in DRAWBRIDGE_SMTP_URL; characters such as @ and / " +
				"are percent-encoded there."
		case email.StageSender:
			found.Detail = Sentence(fmt.Errorf("%s did not accept the sender %s: %w",
				server.Address(), from.Address, cause))
			found.Remedy = "Let the server accept that sender from this machine, or change " +
				"DRAWBRIDGE_MAIL_FROM, or give DRAWBRIDGE_SMTP_URL a user and a password."
		}
		return found
	}
	greeted, signed := " answered over "+seen.TLS, "accepted the sign-in"
	if seen.TLS == "" {
		greeted = " answered without encryption"
	}
	if !seen.SignedIn {
		signed = "was given no sign-in"
	}
	found.Finding, found.Remedy = OK, ""
	found.Detail = server.Address() + greeted + ", " + signed + " and accepted the sender " +
		from.Address + ". No recipient was tried."
	return found
}
