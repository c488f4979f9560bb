package jobs_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/emersion/go-smtp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"

	"drawbridge/internal/app/apptest"
	"drawbridge/internal/email"
	"drawbridge/internal/email/emailtest"
	"drawbridge/internal/postgres"
	"drawbridge/internal/postgres/pgtest"
	"drawbridge/internal/waittest"
	"drawbridge/jobs"
)

// mailHarness is a running mail queue: a service that fills it and a working client that
// empties it.
type mailHarness struct {
	db         *postgres.DB
	service    *email.Service
	mailSender *email.MailSender
}

func newMailHarness(t *testing.T, rawURL string, retry ...time.Duration) *mailHarness {
	t.Helper()
	h := apptest.On(t, pgtest.New(t), "DRAWBRIDGE_SMTP_URL", rawURL)
	mailSender, err := h.NewMailSender()
	if err != nil {
		t.Fatal(err)
	}
	mailSender.Retry = retry
	if mailSender.SMTP != nil {
		t.Cleanup(mailSender.SMTP.Close)
	}
	return &mailHarness{db: h.DB, service: h.Emails, mailSender: mailSender}
}

// work starts the queue. It stops with the test.
func (m *mailHarness) work(t *testing.T) *river.Client[pgx.Tx] {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), m.db.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	workers := river.NewWorkers()
	river.AddWorker(workers, &jobs.SendEmail{MailSender: m.mailSender})
	client, err := river.NewClient(riverpgxv5.New(pool), &river.Config{
		Queues:        map[string]river.QueueConfig{email.Queue: {MaxWorkers: 10}},
		Workers:       workers,
		FetchCooldown: 5 * time.Millisecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := client.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		// The test's own context has ended, which stops the client.
		<-client.Stopped()
	})
	return client
}

func (m *mailHarness) schedule(t *testing.T, messages ...email.Message) {
	t.Helper()
	err := m.db.InTx(t.Context(), func(tx *postgres.Tx) error {
		for _, message := range messages {
			if err := m.service.Schedule(t.Context(), tx, message); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// list returns the mails in a state, all for an empty one.
func (m *mailHarness) list(t *testing.T, state email.State) []email.Email {
	t.Helper()
	rows, _, err := email.List(t.Context(), m.db, email.Filter{State: state},
		postgres.Paging{Limit: postgres.MaxPage})
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// sent counts the mails that were sent.
func (m *mailHarness) sent(t *testing.T) int {
	t.Helper()
	count, err := email.Count(t.Context(), m.db, email.Filter{State: email.StateSent}, 5000)
	if err != nil {
		t.Fatal(err)
	}
	return count
}

func task(number int) email.Message {
	return email.Message{
		Kind:      email.KindTask,
		ToName:    "Ana López",
		ToAddress: "ana@example.com",
		Params: map[string]string{
			email.ParamFirstName: "Ana", email.ParamTaskTitle: fmt.Sprintf("Task %d", number),
		},
	}
}

// TestEveryKindArrives sends a mail of each kind through the queue and reads
// what a borrower or operator would.
func TestEveryKindArrives(t *testing.T) {
	t.Parallel()
	certificate := emailtest.Certificate(true)
	server := emailtest.NewServer(t, emailtest.Options{TLS: &certificate})
	h := newMailHarness(t, server.URL())
	h.work(t)
	subscription, delivery := uuid.NewString(), uuid.NewString()
	const console = "https://drawbridge.example/console"
	facts := map[string]string{
		email.ParamFirstName:       "Ana",
		email.ParamProjectName:     "Rooftop",
		email.ParamMerchantName:    "Sunfield",
		email.ParamProductName:     "Solar 120",
		email.ParamApprovedAmount:  "24500.00",
		email.ParamTerm:            "120",
		email.ParamInterestRate:    "6.99",
		email.ParamStatus:          "Pend Clearance",
		email.ParamTaskTitle:       "Upload a photo",
		email.ParamPartnerName:     "Sunfield Energy",
		email.ParamSubscriptionUID: subscription,
		email.ParamURL:             "https://hooks.example/events",
		email.ParamSince:           "2026-11-21T09:12:00Z",
		email.ParamRecoverSince:    "2026-11-22T00:00:00Z",
		email.ParamFailures:        "84",
		email.ParamLastError:       "503",
		email.ParamDeliveryUID:     delivery,
		email.ParamEvent:           "task.created",
		email.ParamSubscription:    "Production",
		email.ParamCount:           "3",
		email.ParamDay:             "2026-11-24",
		email.ParamDraws:           "#1004, #1007, #1011",
		email.ParamKinds:           "task.created: 80\napplication.amount.update: 4\n",
	}
	subjects := map[email.Kind]string{
		email.KindWelcome:               "Welcome to Drawbridge",
		email.KindStipulation:           "Drawbridge needs something from you",
		email.KindTask:                  "A task for your application: Upload a photo",
		email.KindSubscriptionFailing:   "Webhooks failing: Production, hooks.example/events",
		email.KindSubscriptionRecovered: "Webhooks recovered: Production, hooks.example/events",
		email.KindAttemptsUsedUp:        "Webhook not delivered: Production, hooks.example/events",
		email.KindDrawsOverdue:          "Draws are overdue: 3",
		email.KindUndecided: "Applications are waiting for a decision: 3, " +
			"notice due on 24 November 2026",
		email.KindDeliveriesFailed: "84 webhooks were not delivered: " +
			"Production, hooks.example/events",
	}
	texts := map[email.Kind][]string{
		email.KindWelcome:               {"Welcome, Ana", "24,500.00", "6.99% a year", "120 months"},
		email.KindStipulation:           {"Hello, Ana", "confirm what your application"},
		email.KindTask:                  {"Hello, Ana", "* Upload a photo", "Rooftop"},
		email.KindSubscriptionFailing:   {console + "/subscriptions/" + subscription, "84"},
		email.KindSubscriptionRecovered: {console + "/subscriptions/" + subscription},
		email.KindAttemptsUsedUp:        {console + "/deliveries/" + delivery, "task.created"},
		email.KindDrawsOverdue:          {console + "/attention", "#1007"},
		email.KindUndecided:             {console + "/attention", "24 November 2026", "Regulation B"},
		email.KindDeliveriesFailed: {
			"task.created:              80", `"subscription_uid": "` + subscription,
			`"2026-11-22T00:00:00Z"}`, "21 November 2026, 09:12", "too old for that",
			"https://drawbridge.example/docs/catch-up",
		},
	}
	for _, kind := range email.Kinds() {
		h.schedule(t, email.Message{
			Kind: kind, ToName: "Ana López", ToAddress: "ana@example.com", Params: facts,
		})
	}
	received := make(map[string]emailtest.Parsed)
	for _, message := range server.Wait(t, len(email.Kinds())) {
		parsed := emailtest.Parse(t, message.Source)
		received[parsed.Subject(t)] = parsed
	}
	for _, kind := range email.Kinds() {
		parsed, ok := received[subjects[kind]]
		if !ok {
			t.Errorf("no mail says %q", subjects[kind])
			continue
		}
		for _, want := range texts[kind] {
			if !strings.Contains(parsed.Text, want) {
				t.Errorf("%s lacks %q:\n%s", kind, want, parsed.Text)
			}
		}
		if !strings.Contains(parsed.HTML, "<!doctype html>") {
			t.Errorf("%s has the HTML part %q", kind, parsed.HTML)
		}
		if to := parsed.Address(t, "To"); to.Name != "Ana López" {
			t.Errorf("%s is addressed to %v", kind, to)
		}
	}
	waittest.Until(t, "all mails are logged as sent", func() bool {
		return len(h.list(t, email.StateSent)) == len(email.Kinds())
	})
}

// TestOutage queues 1,000 mails while the mail server is down. All arrive once
// it is back, none twice.
func TestOutage(t *testing.T) {
	t.Parallel()
	const count = 1000
	server := emailtest.NewStopped(t, emailtest.Options{})
	var retry []time.Duration
	for range 50 {
		retry = append(retry, 100*time.Millisecond)
	}
	h := newMailHarness(t, server.URL(), retry...)
	messages := make([]email.Message, count)
	for i := range messages {
		messages[i] = task(i)
	}
	h.schedule(t, messages...)
	h.work(t)
	waittest.Until(t, "every mail was tried in vain", func() bool {
		var untried int
		err := h.db.GetContext(t.Context(), &untried,
			`SELECT count(*) FROM emails WHERE attempt_count = 0`)
		if err != nil {
			t.Fatal(err)
		}
		return untried == 0
	})
	if sent := h.sent(t); sent != 0 {
		t.Fatalf("%d mails were sent to nobody", sent)
	}
	server.Start(t)
	server.Wait(t, count)
	waittest.Until(t, "all mails are logged as sent", func() bool {
		return h.sent(t) == count
	})
	times := make(map[string]int)
	for _, message := range server.Messages() {
		times[emailtest.Parse(t, message.Source).Subject(t)]++
	}
	for i := range count {
		if got := times[fmt.Sprintf("A task for your application: Task %d", i)]; got != 1 {
			t.Errorf("mail %d arrived %d times", i, got)
		}
	}
}

// TestGreylisted: greylisted mails arrive through the queue's own retry.
func TestGreylisted(t *testing.T) {
	t.Parallel()
	var tries atomic.Int32
	server := emailtest.NewServer(t, emailtest.Options{Rcpt: func(string) error {
		if tries.Add(1) <= 2 {
			return &smtp.SMTPError{Code: 450, Message: "greylisted"}
		}
		return nil
	}})
	h := newMailHarness(t, server.URL(), time.Millisecond, time.Millisecond, time.Millisecond)
	h.work(t)
	h.schedule(t, task(1))
	server.Wait(t, 1)
	waittest.Until(t, "the mail is logged as sent", func() bool {
		mails := h.list(t, email.StateSent)
		return len(mails) == 1 && mails[0].AttemptCount == 3
	})
}

// TestNotSent: without a mail server the whole mail can still be viewed.
func TestNotSent(t *testing.T) {
	t.Parallel()
	h := newMailHarness(t, "")
	h.work(t)
	h.schedule(t, task(1))
	waittest.Until(t, "the mail is kept", func() bool {
		return len(h.list(t, email.StateNotSent)) == 1
	})
	mail, err := email.Get(t.Context(), h.db, h.list(t, "")[0].EmailUID)
	if err != nil {
		t.Fatal(err)
	}
	parsed := emailtest.Parse(t, mail.Source)
	// Lines end in CRLF on the wire.
	html := strings.ReplaceAll(parsed.HTML, "\r\n", "\n")
	if html != mail.HTML || !strings.Contains(html, "Task 1") {
		t.Errorf("kept %q", mail.HTML)
	}
}

// TestMailIsGone: a job whose mail does not exist ends, and is not retried for ever.
func TestMailIsGone(t *testing.T) {
	t.Parallel()
	h := newMailHarness(t, "")
	client := h.work(t)
	events, cancel := client.Subscribe(river.EventKindJobCancelled)
	defer cancel()
	args := email.SendArgs{EmailUID: uuid.New(), Attempt: 1}
	if _, err := client.Insert(t.Context(), args, nil); err != nil {
		t.Fatal(err)
	}
	event := waittest.Receive(t, "the end of the job", events)
	var got email.SendArgs
	if err := json.Unmarshal(event.Job.EncodedArgs, &got); err != nil || got != args {
		t.Errorf("cancelled %s: %v", event.Job.EncodedArgs, err)
	}
}

// TestUnknownKind: an unknown kind is a mistake that must not send an empty mail.
func TestUnknownKind(t *testing.T) {
	t.Parallel()
	_, err := jobs.RenderMail("", "USD")(t.Context(), email.Draft{Kind: "newsletter"})
	if err == nil || !strings.Contains(err.Error(), "newsletter") {
		t.Errorf("the error is %v", err)
	}
}
