package jobs

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"time"

	"github.com/google/uuid"
	"github.com/riverqueue/river"

	"drawbridge/internal/email"
	"drawbridge/internal/lending"
	"drawbridge/views/mail"
)

// SendEmail makes one attempt to send one mail.
type SendEmail struct {
	river.WorkerDefaults[email.SendArgs]

	MailSender *email.MailSender
	// Observe, unless nil, is called with the outcome of each attempt.
	Observe func(email.Outcome)
}

// Timeout is above the longest that an attempt can take, so that the queue
// never takes a mail that is being sent for lost.
func (w *SendEmail) Timeout(*river.Job[email.SendArgs]) time.Duration {
	return w.MailSender.Longest() + time.Minute
}

// Work makes the attempt and logs one line about it. The mail server's
// answer is an outcome, not an error: the mail sender has queued any retry.
func (w *SendEmail) Work(ctx context.Context, job *river.Job[email.SendArgs]) error {
	report, err := w.MailSender.Deliver(ctx, job.Args)
	if lending.ErrorCode(err) == lending.CodeNotFound {
		return river.JobCancel(err) // no retry brings it back
	}
	if err != nil {
		return err
	}
	if report.Attempt != nil && w.Observe != nil {
		w.Observe(report.Attempt.Outcome)
	}
	slog.LogAttrs(ctx, levelFor(report.Attempt != nil), "mail", describe(report)...)
	return nil
}

// describe names no borrower: neither address nor subject, nor the server's answer, which
// may quote them.
func describe(report email.Report) []slog.Attr {
	attrs := []slog.Attr{
		slog.String("email_uid", report.Email.EmailUID.String()),
		slog.String("kind", string(report.Email.Kind)),
		slog.String("state", string(report.Email.State)),
		slog.Bool("outcome_unknown", report.Email.OutcomeUnknown),
	}
	if report.Email.ApplicationUID.Valid {
		attrs = append(attrs, slog.String("application_uid", report.Email.ApplicationUID.UUID.String()))
	}
	if report.Email.WaitsFor != email.WaitNothing {
		attrs = append(attrs, slog.String("waits_for", string(report.Email.WaitsFor)))
	} else if report.Email.NextAttemptAt != nil {
		attrs = append(attrs, slog.Time("next_attempt_at", *report.Email.NextAttemptAt))
	}
	if attempt := report.Attempt; attempt != nil {
		attrs = append(attrs,
			slog.Int("attempt", attempt.Number),
			slog.String("outcome", string(attempt.Outcome)),
			slog.String("stage", string(attempt.Stage)),
			slog.Int("reply_code", attempt.ReplyCode),
			slog.String("server", attempt.Server),
			slog.String("tls", attempt.TLS),
			slog.Duration("duration", attempt.Duration()),
		)
	}
	return attrs
}

// RenderMail returns the function that renders the facts of a mail. publicURL is the
// origin under which operators reach the console, currency that of the amounts.
func RenderMail(publicURL, currency string) email.RenderFunc {
	return func(ctx context.Context, draft email.Draft) (email.Content, error) {
		message, err := messageOf(draft, publicURL)
		if err != nil {
			return email.Content{}, err
		}
		return mail.Render(ctx, mail.Lender{Settings: draft.Settings, Currency: currency}, message)
	}
}

func messageOf(draft email.Draft, publicURL string) (mail.Message, error) {
	facts := draft.Params
	switch draft.Kind {
	case email.KindWelcome:
		return mail.Welcome{
			Borrower:       borrowerOf(draft),
			ProductName:    facts[email.ParamProductName],
			ApprovedAmount: facts[email.ParamApprovedAmount],
			Term:           facts[email.ParamTerm],
			InterestRate:   facts[email.ParamInterestRate],
		}, nil
	case email.KindStipulation:
		return mail.Stipulation{
			Borrower: borrowerOf(draft),
			Status:   lending.ApplicationStatus(facts[email.ParamStatus]),
		}, nil
	case email.KindTask:
		return mail.Task{Borrower: borrowerOf(draft), Title: facts[email.ParamTaskTitle]}, nil
	case email.KindSubscriptionFailing, email.KindSubscriptionRecovered, email.KindAttemptsUsedUp,
		email.KindDrawsOverdue, email.KindUndecided:
		return alertOf(draft.Kind, facts, publicURL), nil
	case email.KindDeliveriesFailed:
		contact := mail.Contact{
			PartnerName:  facts[email.ParamPartnerName],
			Subscription: facts[email.ParamSubscriptionUID],
			Name:         facts[email.ParamSubscription],
			URL:          facts[email.ParamURL],
			Failures:     facts[email.ParamFailures],
			Kinds:        facts[email.ParamKinds],
			Since:        facts[email.ParamSince],
			RecoverSince: facts[email.ParamRecoverSince],
			Deleted:      facts[email.ParamDeleted] != "",
		}
		if publicURL != "" {
			contact.DocsURL, _ = url.JoinPath(publicURL, "docs", "catch-up")
		}
		return contact, nil
	}
	return nil, fmt.Errorf("no template for the mail kind %q", draft.Kind)
}

func borrowerOf(draft email.Draft) mail.Borrower {
	borrower := mail.Borrower{
		FirstName:    draft.Params[email.ParamFirstName],
		ProjectName:  draft.Params[email.ParamProjectName],
		MerchantName: draft.Params[email.ParamMerchantName],
	}
	if draft.ApplicationUID != uuid.Nil {
		borrower.Reference = draft.ApplicationUID.String()
	}
	return borrower
}

func alertOf(kind email.Kind, facts map[string]string, publicURL string) mail.Alert {
	alert := mail.Alert{
		Kind:        kind,
		PartnerName: facts[email.ParamPartnerName],
		Name:        facts[email.ParamSubscription],
		URL:         facts[email.ParamURL],
		Since:       facts[email.ParamSince],
		Failures:    facts[email.ParamFailures],
		LastError:   facts[email.ParamLastError],
		Event:       facts[email.ParamEvent],
		Reference:   facts[email.ParamApplicationUID],
		Delivery:    facts[email.ParamDeliveryUID],
		Paused:      facts[email.ParamPaused] == "true",
		Count:       facts[email.ParamCount],
		Day:         facts[email.ParamDay],
		Draws:       facts[email.ParamDraws],
	}
	page, uid := "subscriptions", facts[email.ParamSubscriptionUID]
	switch kind {
	case email.KindAttemptsUsedUp:
		page, uid = "deliveries", alert.Delivery
	case email.KindDrawsOverdue, email.KindUndecided:
		page, uid = "attention", "."
	default:
	}
	if uid != "" && publicURL != "" {
		// The origin was checked when the configuration was read.
		alert.ConsoleURL, _ = url.JoinPath(publicURL, "console", page, uid)
	}
	return alert
}
