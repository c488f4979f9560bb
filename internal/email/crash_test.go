package email_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverdatabasesql"

	"drawbridge/internal/email"
	"drawbridge/internal/email/emailtest"
	"drawbridge/internal/postgres"
)

// victimVariable makes the test binary a process that delivers one mail, for tests to kill.
const victimVariable = "DRAWBRIDGE_EMAILTEST_VICTIM"

// victim is the input of such a process.
type victim struct {
	Database, Server string
	Job              email.SendArgs
}

func (v victim) run() error {
	db, err := postgres.Open(context.Background(), v.Database)
	if err != nil {
		return err
	}
	jobs, err := river.NewClient(riverdatabasesql.New(db.DB.DB), &river.Config{})
	if err != nil {
		return err
	}
	server, err := email.ParseServer(v.Server)
	if err != nil {
		return err
	}
	from, err := email.ParseSender("mail@meadow.example")
	if err != nil {
		return err
	}
	sender := &email.MailSender{
		DB: db, Jobs: jobs, From: from, Render: plain,
		SMTP: email.NewSMTPClient(server, email.DefaultLimits()),
	}
	_, err = sender.Deliver(context.Background(), v.Job)
	return err
}

// runVictim is called by TestMain.
func runVictim(encoded string) int {
	var v victim
	if err := json.Unmarshal([]byte(encoded), &v); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if err := v.run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// kill delivers the mail in another process and kills that with SIGKILL when the mail server
// returns from until.
func kill(t *testing.T, b *bench, until func(*emailtest.Talk)) {
	t.Helper()
	command := exec.CommandContext(t.Context(), os.Args[0])
	reached := make(chan struct{})
	script := emailtest.NewScript(t, func(talk *emailtest.Talk) {
		until(talk)
		close(reached)
		talk.Silence()
	})
	encoded, err := json.Marshal(victim{
		Database: b.db.URL(), Server: "smtp://" + script.Address(), Job: b.last(t),
	})
	if err != nil {
		t.Fatal(err)
	}
	command.Env = append(os.Environ(), victimVariable+"="+string(encoded))
	var said strings.Builder
	command.Stderr = &said
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- command.Wait() }()
	select {
	case <-reached:
	case err := <-ended:
		t.Fatalf("the process ended by itself: %v\n%s", err, said.String())
	}
	if err := command.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-ended
}

// TestKilledBeforeTheDot: nothing was sent, so the mail is sent again.
func TestKilledBeforeTheDot(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.schedule(t, b.welcome())
	job := b.last(t)
	kill(t, b, func(talk *emailtest.Talk) {
		talk.Greet()
		talk.Hear()
		talk.Say("250 ok")
		talk.Hear() // RCPT, which gets no reply
	})
	server := emailtest.NewServer(t, emailtest.Options{})
	b.deliver(t, b.mailSender(t, server.URL()), job)
	mail := b.only(t)
	if mail.State != email.StateSent || mail.AttemptCount != 2 || len(server.Messages()) != 1 {
		t.Fatalf("the log says %+v", mail)
	}
	if first := mail.Attempts[0]; first.Outcome != email.OutcomeInterrupted ||
		first.HandedOverAt != nil || first.FinishedAt == nil || first.Error == "" {
		t.Errorf("the first attempt is %+v", first)
	}
}

// TestKilledAfterTheDot is the one window: the server has the mail, and the process died before it
// could record that. The mail is not sent again, and the log says that the outcome is unknown.
func TestKilledAfterTheDot(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.schedule(t, b.welcome())
	job := b.last(t)
	kill(t, b, func(talk *emailtest.Talk) {
		talk.Greet()
		talk.Envelope()
		talk.Message() // the server has the message now
	})
	server := emailtest.NewServer(t, emailtest.Options{})
	sender := b.mailSender(t, server.URL())
	for range 3 {
		b.deliver(t, sender, job)
	}
	mail := b.only(t)
	if mail.State != email.StateFailed || !mail.OutcomeUnknown || mail.AttemptCount != 1 ||
		!strings.HasPrefix(mail.Reason, "outcome unknown") {
		t.Errorf("the log says %+v", mail)
	}
	if attempt := mail.Attempts[0]; attempt.Outcome != email.OutcomeUnknown ||
		attempt.HandedOverAt == nil {
		t.Errorf("the attempt is %+v", attempt)
	}
	if len(server.Messages()) != 0 || len(b.queue(t)) != 1 {
		t.Errorf("%d mails were sent again", len(server.Messages()))
	}
	// A person may nevertheless send it again.
	b.inTx(t, func(tx *postgres.Tx) error {
		_, err := b.service.Resend(t.Context(), tx, mail.EmailUID, "support", "never arrived")
		return err
	})
	if b.deliver(t, sender, b.last(t)); len(server.Messages()) != 1 {
		t.Error("the re-send did not arrive")
	}
}

// TestEndlessCrashes: a mail on which every process dies is given up.
func TestEndlessCrashes(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.schedule(t, b.welcome())
	job := b.last(t)
	server := emailtest.NewServer(t, emailtest.Options{})
	sender := b.mailSender(t, server.URL())
	sender.Retry = nil
	b.exec(t, `UPDATE emails SET attempt_count = 11`)
	b.exec(t, `INSERT INTO email_attempts (email_uid, number, started_at, server)
	           VALUES ($1, 11, now(), 'mail.example:25')`, job.EmailUID)
	b.deliver(t, sender, job)
	if mail := b.only(t); mail.State != email.StateFailed || mail.OutcomeUnknown {
		t.Errorf("the log says %+v", mail)
	}
	if len(server.Messages()) != 0 {
		t.Error("a twelfth attempt was made")
	}
}

// TestFrozenBeforeTheDot: a process is frozen for so long that another one takes the mail over.
// When it resumes, it must not send it too.
func TestFrozenBeforeTheDot(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.schedule(t, b.welcome())
	job := b.last(t)
	frozen, thaw := make(chan struct{}), make(chan struct{})
	var dots atomic.Int32
	script := emailtest.NewScript(t, func(talk *emailtest.Talk) {
		talk.Greet()
		talk.Hear()
		talk.Say("250 ok")
		talk.Hear()
		close(frozen)
		<-thaw
		talk.Say("250 ok")
		talk.Hear()
		talk.Say("354 go on")
		talk.Message() // ends the scene unless the dot arrives
		dots.Add(1)
		talk.Say("250 ok")
	})
	slow := b.mailSender(t, "smtp://"+script.Address())
	slow.SMTP = newSMTPClient(t, "smtp://"+script.Address(), email.DefaultLimits())
	done := make(chan error, 1)
	go func() {
		_, err := slow.Deliver(context.WithoutCancel(t.Context()), job)
		done <- err
	}()
	<-frozen
	server := emailtest.NewServer(t, emailtest.Options{})
	b.deliver(t, b.mailSender(t, server.URL()), job)
	close(thaw)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	mail := b.only(t)
	if mail.State != email.StateSent || len(server.Messages()) != 1 || dots.Load() != 0 {
		t.Errorf("%d and %d mails arrived: %+v", len(server.Messages()), dots.Load(), mail)
	}
	first, second := mail.Attempts[0].Outcome, mail.Attempts[1].Outcome
	if first != email.OutcomeInterrupted || second != email.OutcomeSent {
		t.Errorf("the attempts ended as %s and %s", first, second)
	}
}

// TestFrozenAfterTheDot: the process that takes over cannot know the outcome, and records that;
// when the first one gets its answer after all, the log is corrected.
func TestFrozenAfterTheDot(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.schedule(t, b.welcome())
	job := b.last(t)
	frozen, thaw := make(chan struct{}), make(chan struct{})
	server := emailtest.NewServer(t, emailtest.Options{Data: func(emailtest.Message) error {
		close(frozen)
		<-thaw
		return nil
	}})
	slow := b.mailSender(t, server.URL())
	slow.SMTP = newSMTPClient(t, server.URL(), email.DefaultLimits())
	done := make(chan error, 1)
	go func() {
		_, err := slow.Deliver(context.WithoutCancel(t.Context()), job)
		done <- err
	}()
	<-frozen
	b.deliver(t, b.mailSender(t, server.URL()), job)
	if mail := b.only(t); mail.State != email.StateFailed || !mail.OutcomeUnknown {
		t.Errorf("meanwhile the log says %+v", mail)
	}
	close(thaw)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	mail := b.only(t)
	if mail.State != email.StateSent || mail.OutcomeUnknown || mail.Reason != "" ||
		mail.Attempts[0].Outcome != email.OutcomeSent || len(server.Messages()) != 1 {
		t.Errorf("in the end the log says %+v", mail)
	}
}
