package email_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/emersion/go-smtp"
	"github.com/google/uuid"

	"drawbridge/internal/email"
	"drawbridge/internal/email/emailtest"
	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
)

func TestDeliver(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.inTx(t, func(tx *postgres.Tx) error {
		return email.SaveSettings(t.Context(), tx, validSettings(), "admin")
	})
	message := b.welcome()
	message.ToName, message.ToAddress = `Zoë "Sun", 李 👩‍👩‍👧`, "Ana.Lopez@MÜNCHEN.de"
	b.schedule(t, message)
	certificate := emailtest.Certificate(true)
	server := emailtest.NewServer(t, emailtest.Options{
		TLS: &certificate, User: "ana", Password: "secret",
	})
	report := b.deliver(t, b.mailSender(t, server.URL()), b.last(t))
	mail := b.only(t)
	if mail.State != email.StateSent || mail.Reason != "" || mail.NextAttemptAt != nil ||
		mail.FinishedAt == nil || mail.AttemptCount != 1 || len(mail.Attempts) != 1 {
		t.Fatalf("the log says %+v", mail)
	}
	attempt := mail.Attempts[0]
	if attempt.Outcome != email.OutcomeSent || attempt.ReplyCode != 250 ||
		attempt.HandedOverAt == nil || attempt.FinishedAt == nil || attempt.TLS != "TLS 1.3" ||
		!strings.HasPrefix(attempt.Server, "127.0.0.1:") {
		t.Errorf("the attempt is %+v", attempt)
	}
	if report.Email.State != email.StateSent || report.Attempt == nil || report.Attempt.Number != 1 {
		t.Errorf("the report is %+v", report)
	}
	if got := server.Messages()[0]; got.From != "mail@meadow.example" ||
		got.To != "Ana.Lopez@xn--mnchen-3ya.de" || got.Source != mail.Source {
		t.Errorf("the envelope is %s to %s", got.From, got.To)
	}
	parsed := arrived(t, server)[0]
	if to := parsed.Address(t, "To"); to.Name != message.ToName {
		t.Errorf("addressed to %q", to.Name)
	}
	if reply := parsed.Address(t, "Reply-To"); reply.Address != "help@meadow.example" {
		t.Errorf("answers go to %q", reply.Address)
	}
	if parsed.Subject(t) != "Meadow Lending: welcome" || mail.Subject != "Meadow Lending: welcome" {
		t.Errorf("the subject is %q", parsed.Subject(t))
	}
	if id := parsed.Header.Get("Message-Id"); id != "<"+mail.MessageID+">" {
		t.Errorf("the message id is %s, logged as %s", id, mail.MessageID)
	}
	contains(t, mail.Headers(), "Subject: ", "Reply-To: ")
	if strings.Contains(mail.Headers(), "<p>") {
		t.Errorf("the headers hold the body:\n%s", mail.Headers())
	}
}

// TestNoServer keeps the mail for display.
func TestNoServer(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.schedule(t, b.welcome())
	report := b.deliver(t, b.mailSender(t, ""), b.last(t))
	mail := b.only(t)
	if mail.State != email.StateNotSent || mail.Reason != "no mail server configured" ||
		mail.AttemptCount != 0 || report.Attempt != nil {
		t.Errorf("the log says %+v", mail)
	}
	contains(t, mail.HTML, "Ana")
	contains(t, mail.Text, `"Ana"`)
	contains(t, mail.Source, "Message-ID: <"+mail.MessageID+">")
	if b.deliver(t, b.mailSender(t, ""), b.last(t)); len(b.queue(t)) != 1 {
		t.Errorf("the queue holds %+v", b.queue(t))
	}
}

// TestASandboxKeepsBorrowersMail: although a mail server is configured, only the operators' alert
// and the mail to a partner's contact are sent, and a re-sent mail is kept again.
func TestASandboxKeepsBorrowersMail(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	server := emailtest.NewServer(t, emailtest.Options{})
	stipulation := b.welcome()
	stipulation.Kind = email.KindStipulation
	stipulation.Params = map[string]string{email.ParamStatus: "Pend Clearance"}
	for _, sender := range []*email.MailSender{b.mailSender(t, server.URL()), b.mailSender(t, "")} {
		sender.Captures = true
		application := b.newApplication(t) // each gets one welcome mail
		for _, message := range []email.Message{
			b.welcome(), stipulation, b.task("Send the permit"),
		} {
			message.ApplicationUID = application
			b.schedule(t, message)
			b.deliver(t, sender, b.last(t))
			kept := b.get(t, b.last(t).EmailUID)
			if kept.Kind != message.Kind || kept.State != email.StateCaptured ||
				kept.AttemptCount != 0 || kept.HTML == "" {
				t.Errorf("%s is %s after %d attempts", kept.Kind, kept.State, kept.AttemptCount)
			}
		}
	}
	b.inTx(t, func(tx *postgres.Tx) error {
		_, err := b.service.Resend(t.Context(), tx, b.last(t).EmailUID, "ana@lender.example", "")
		return err
	})
	sender := b.mailSender(t, server.URL())
	sender.Captures = true
	b.deliver(t, sender, b.last(t))
	if again := b.get(t, b.last(t).EmailUID); again.State != email.StateCaptured {
		t.Errorf("the re-send is %s", again.State)
	}
	for _, message := range []email.Message{
		{Kind: email.KindAttemptsUsedUp, ToAddress: "olga@lender.example"},
		{Kind: email.KindDeliveriesFailed, ToName: "Sunfield", ToAddress: "it@sunfield.example"},
	} {
		message.Params = map[string]string{}
		b.schedule(t, message)
		b.deliver(t, sender, b.last(t))
		if out := b.get(t, b.last(t).EmailUID); out.State != email.StateSent {
			t.Errorf("%s is %s", out.Kind, out.State)
		}
	}
	var to []string
	for _, message := range server.Wait(t, 2) {
		to = append(to, message.To)
	}
	if !slices.Equal(to, []string{"olga@lender.example", "it@sunfield.example"}) {
		t.Errorf("the server got mails to %q", to)
	}
}

func TestRefusedForGood(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.schedule(t, b.welcome())
	server := emailtest.NewServer(t, emailtest.Options{Rcpt: func(string) error {
		return &smtp.SMTPError{
			Code: 550, EnhancedCode: smtp.EnhancedCode{5, 1, 1}, Message: "no such user",
		}
	}})
	b.deliver(t, b.mailSender(t, server.URL()), b.last(t))
	mail := b.only(t)
	if mail.State != email.StateFailed || mail.OutcomeUnknown || mail.AttemptCount != 1 {
		t.Errorf("the log says %+v", mail)
	}
	contains(t, mail.Reason, "550 5.1.1 no such user")
	if len(b.queue(t)) != 1 {
		t.Errorf("a retry is queued: %+v", b.queue(t))
	}
}

// TestGreylisting: the retry sends the same bytes, and comes when it is due.
func TestGreylisting(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	now := time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
	b.db.Now = func() time.Time { return now }
	b.schedule(t, b.welcome())
	var sources []string
	var tries atomic.Int32
	server := emailtest.NewServer(t, emailtest.Options{Data: func(message emailtest.Message) error {
		sources = append(sources, message.Source)
		if tries.Add(1) == 1 {
			return &smtp.SMTPError{Code: 451, Message: "greylisted, come back later"}
		}
		return nil
	}})
	sender := b.mailSender(t, server.URL())
	b.deliver(t, sender, b.last(t))
	waiting := b.only(t)
	if waiting.State != email.StateQueued || waiting.AttemptCount != 1 ||
		waiting.Attempts[0].Outcome != email.OutcomeTemporary || waiting.Attempts[0].ReplyCode != 451 {
		t.Fatalf("the log says %+v", waiting)
	}
	wait := waiting.NextAttemptAt.Sub(now)
	if first := email.DefaultRetry()[0]; wait < first || wait > first+first/10 {
		t.Errorf("the retry is due in %s", wait)
	}
	jobs := b.queue(t)
	if len(jobs) != 2 || jobs[1].Attempt != 2 || !jobs[1].At.Equal(*waiting.NextAttemptAt) {
		t.Fatalf("the queue holds %+v", jobs)
	}
	// The settings change meanwhile; a mail that was begun is sent unchanged.
	b.inTx(t, func(tx *postgres.Tx) error {
		return email.SaveSettings(t.Context(), tx, validSettings(), "admin")
	})
	now = now.Add(wait)
	b.deliver(t, sender, b.last(t))
	mail := b.only(t)
	if mail.State != email.StateSent || mail.AttemptCount != 2 || len(server.Messages()) != 1 {
		t.Errorf("the log says %+v", mail)
	}
	if len(sources) != 2 || sources[0] != sources[1] {
		t.Error("the second attempt sent other bytes")
	}
}

func TestGivingUp(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.schedule(t, b.welcome())
	sender := b.mailSender(t, emailtest.NewStopped(t, emailtest.Options{}).URL())
	sender.Retry = []time.Duration{time.Minute, time.Hour}
	for range 3 {
		b.deliver(t, sender, b.last(t))
	}
	mail := b.only(t)
	if mail.State != email.StateFailed || mail.OutcomeUnknown || mail.AttemptCount != 3 ||
		len(b.queue(t)) != 3 {
		t.Errorf("the log says %+v", mail)
	}
	contains(t, mail.Reason, "gave up after 3 attempts", "connection refused")
}

// TestDefaultRetry: ten retries over about a day.
func TestDefaultRetry(t *testing.T) {
	t.Parallel()
	var sum, last time.Duration
	for _, wait := range email.DefaultRetry() {
		if wait <= last {
			t.Errorf("%s comes after %s", wait, last)
		}
		sum, last = sum+wait, wait
	}
	if count := len(email.DefaultRetry()); count != 10 || sum < 22*time.Hour || sum > 26*time.Hour {
		t.Errorf("%d retries over %s", count, sum)
	}
}

// TestLeftoverJobs: a job that runs again, for whatever reason, does nothing.
func TestLeftoverJobs(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.schedule(t, b.welcome())
	first := b.last(t)
	var tries atomic.Int32
	server := emailtest.NewServer(t, emailtest.Options{Rcpt: func(string) error {
		if tries.Add(1) == 1 {
			return &smtp.SMTPError{Code: 450, Message: "later"}
		}
		return nil
	}})
	sender := b.mailSender(t, server.URL())
	for range 3 {
		b.deliver(t, sender, first)
	}
	if mail := b.only(t); mail.State != email.StateQueued || mail.AttemptCount != 1 {
		t.Errorf("the log says %+v", mail)
	}
	second := b.last(t)
	for range 3 {
		b.deliver(t, sender, second)
		b.deliver(t, sender, first)
	}
	if mail := b.only(t); mail.State != email.StateSent || mail.AttemptCount != 2 ||
		len(server.Messages()) != 1 || len(b.queue(t)) != 2 {
		t.Errorf("the log says %+v, %d mails arrived", mail, len(server.Messages()))
	}
}

func TestDeliverUnknownMail(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	_, err := b.mailSender(t, "").Deliver(t.Context(),
		email.SendArgs{EmailUID: uuid.New(), Attempt: 1})
	if lending.ErrorCode(err) != lending.CodeNotFound {
		t.Error(err)
	}
}

// TestRenderingFails: the job fails and can run again.
func TestRenderingFails(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.schedule(t, b.welcome())
	server := emailtest.NewServer(t, emailtest.Options{})
	sender := b.mailSender(t, server.URL())
	broken := errors.New("broken template")
	sender.Render = func(context.Context, email.Draft) (email.Content, error) {
		return email.Content{}, broken
	}
	if _, err := sender.Deliver(t.Context(), b.last(t)); !errors.Is(err, broken) {
		t.Errorf("the error is %v", err)
	}
	if mail := b.only(t); mail.State != email.StateQueued || mail.AttemptCount != 0 {
		t.Errorf("the log says %+v", mail)
	}
	sender.Render = plain
	b.deliver(t, sender, b.last(t))
	if mail := b.only(t); mail.State != email.StateSent {
		t.Errorf("the log says %+v", mail)
	}
}

// TestResendArrives: the same text under a new message id, because receivers would drop a second
// message with the same one.
func TestResendArrives(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	server := emailtest.NewServer(t, emailtest.Options{})
	sender := b.mailSender(t, server.URL())
	b.schedule(t, b.welcome())
	b.deliver(t, sender, b.last(t))
	first := b.only(t)
	sender.Render = func(context.Context, email.Draft) (email.Content, error) {
		return email.Content{Subject: "other", Text: "other", HTML: "other"}, nil
	}
	b.inTx(t, func(tx *postgres.Tx) error {
		_, err := b.service.Resend(t.Context(), tx, first.EmailUID, "support", "not received")
		return err
	})
	b.deliver(t, sender, b.last(t))
	mails := arrived(t, server)
	if len(mails) != 2 || mails[0].Text != mails[1].Text || mails[0].HTML != mails[1].HTML {
		t.Fatalf("%d mails arrived", len(mails))
	}
	if mails[0].Header.Get("Message-Id") == mails[1].Header.Get("Message-Id") {
		t.Error("both have one message id")
	}
}

// TestDatabaseFails between the server's 250 and the commit: connections are cut, and statements
// fail for a while. The mail sender goes on until the result is stored.
func TestDatabaseFails(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.schedule(t, b.welcome())
	var failing atomic.Bool
	var tries atomic.Int32
	b.db.Now = func() time.Time { // called as each transaction begins
		if failing.Load() && tries.Add(1) == 3 {
			b.exec(t, `ALTER TABLE email_attempts_away RENAME TO email_attempts`)
		}
		return time.Now()
	}
	server := emailtest.NewServer(t, emailtest.Options{Data: func(emailtest.Message) error {
		b.exec(t, `ALTER TABLE email_attempts RENAME TO email_attempts_away`)
		b.exec(t, `
			SELECT pg_terminate_backend(pid)
			  FROM pg_stat_activity
			 WHERE datname = current_database() AND pid <> pg_backend_pid()`)
		failing.Store(true)
		return nil
	}})
	b.deliver(t, b.mailSender(t, server.URL()), b.last(t))
	if mail := b.only(t); mail.State != email.StateSent || len(server.Messages()) != 1 {
		t.Errorf("the log says %+v", mail)
	}
	if tries.Load() < 3 {
		t.Errorf("the result was stored in %d tries", tries.Load())
	}
}
