package email_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/app/apptest"
	"drawbridge/internal/email"
	"drawbridge/internal/email/emailtest"
	"drawbridge/internal/postgres"
	"drawbridge/internal/postgres/pgtest"
)

// bench is a database with the services of the package.
type bench struct {
	db      *postgres.DB
	jobs    email.Inserter
	service *email.Service
	// application is an application that mails may be about.
	application uuid.UUID
}

func newBench(t testing.TB) *bench {
	t.Helper()
	h := apptest.On(t, pgtest.New(t))
	b := &bench{db: h.DB, jobs: h.Jobs, service: h.Emails}
	b.application = b.newApplication(t)
	return b
}

func (b *bench) newApplication(t testing.TB) uuid.UUID {
	t.Helper()
	partner, merchant, application := uuid.New(), uuid.New(), uuid.New()
	b.exec(t, `INSERT INTO partners (partner_uid, name, created_at) VALUES ($1, 'Sunfield', now())`,
		partner)
	b.exec(t, `INSERT INTO merchants (merchant_uid, partner_uid, name, created_at)
	           VALUES ($1, $2, 'Sunfield Energy', now())`, merchant, partner)
	b.exec(t, `
		INSERT INTO applications (application_uid, merchant_uid, partner_uid, source, status,
		                          communications, requested_amount, borrower_first_name,
		                          borrower_last_name, borrower_email, project_name, created_at,
		                          updated_at)
		VALUES ($1, $2, $3, 'partner', 'Pending Review', 'paused', 1000, 'Ana', 'López',
		        'ana@example.com', 'Roof', now(), now())`, application, merchant, partner)
	return application
}

func (b *bench) exec(t testing.TB, statement string, args ...any) {
	t.Helper()
	pgtest.Exec(t, b.db, statement, args...)
}

func (b *bench) inTx(t testing.TB, use func(tx *postgres.Tx) error) {
	t.Helper()
	if err := b.db.InTx(t.Context(), use); err != nil {
		t.Fatal(err)
	}
}

// welcome is a welcome mail to the application's borrower.
func (b *bench) welcome() email.Message {
	return email.Message{
		Kind:           email.KindWelcome,
		ApplicationUID: b.application,
		ToName:         "Ana López",
		ToAddress:      "ana@example.com",
		Params:         map[string]string{email.ParamFirstName: "Ana"},
	}
}

// task is a mail of a kind that an application may get many of.
func (b *bench) task(title string) email.Message {
	message := b.welcome()
	message.Kind = email.KindTask
	message.Params = map[string]string{email.ParamTaskTitle: title}
	return message
}

func (b *bench) schedule(t testing.TB, messages ...email.Message) {
	t.Helper()
	b.inTx(t, func(tx *postgres.Tx) error {
		for _, message := range messages {
			if err := b.service.Schedule(t.Context(), tx, message); err != nil {
				return err
			}
		}
		return nil
	})
}

// all lists every mail, newest first.
func (b *bench) all(t testing.TB) []email.Email {
	t.Helper()
	page := postgres.Paging{Limit: postgres.MaxPage}
	rows, _, err := email.List(t.Context(), b.db, email.Filter{}, page)
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// only returns the single mail of the log with all its data.
func (b *bench) only(t testing.TB) email.Detail {
	t.Helper()
	rows := b.all(t)
	if len(rows) != 1 {
		t.Fatalf("the log holds %d mails: %+v", len(rows), rows)
	}
	return b.get(t, rows[0].EmailUID)
}

func (b *bench) get(t testing.TB, uid uuid.UUID) email.Detail {
	t.Helper()
	detail, err := email.Get(t.Context(), b.db, uid)
	if err != nil {
		t.Fatal(err)
	}
	return detail
}

// queued is a waiting job.
type queued struct {
	email.SendArgs
	At time.Time
}

// queue returns the jobs of the mail queue, oldest first.
func (b *bench) queue(t testing.TB) []queued {
	t.Helper()
	var rows []struct {
		Args        []byte    `db:"args"`
		ScheduledAt time.Time `db:"scheduled_at"`
	}
	err := b.db.SelectContext(t.Context(), &rows, `
		SELECT args, scheduled_at FROM river_job WHERE queue = 'email' AND kind = 'send_email'
		 ORDER BY id`)
	if err != nil {
		t.Fatal(err)
	}
	jobs := make([]queued, len(rows))
	for i, row := range rows {
		jobs[i].At = row.ScheduledAt
		if err := json.Unmarshal(row.Args, &jobs[i].SendArgs); err != nil {
			t.Fatal(err)
		}
	}
	return jobs
}

// last returns the newest job.
func (b *bench) last(t testing.TB) email.SendArgs {
	t.Helper()
	jobs := b.queue(t)
	if len(jobs) == 0 {
		t.Fatal("no job is queued")
	}
	return jobs[len(jobs)-1].SendArgs
}

// mailSender returns a sender to the server at rawURL, or without a server if that is empty.
func (b *bench) mailSender(t testing.TB, rawURL string) *email.MailSender {
	t.Helper()
	from, err := email.ParseSender("Meadow <mail@meadow.example>")
	if err != nil {
		t.Fatal(err)
	}
	sender := &email.MailSender{DB: b.db, Jobs: b.jobs, From: from, Render: plain}
	if rawURL != "" {
		server, err := email.ParseServer(rawURL)
		if err != nil {
			t.Fatal(err)
		}
		sender.SMTP = email.NewSMTPClient(server, quick())
		t.Cleanup(sender.SMTP.Close)
	}
	return sender
}

func (b *bench) deliver(t testing.TB, sender *email.MailSender, job email.SendArgs) email.Report {
	t.Helper()
	report, err := sender.Deliver(t.Context(), job)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// plain renders every fact of a draft.
func plain(_ context.Context, draft email.Draft) (email.Content, error) {
	facts, err := json.Marshal(draft.Params)
	if err != nil {
		return email.Content{}, err
	}
	return email.Content{
		Subject: draft.Settings.LenderName + ": " + string(draft.Kind),
		Text:    "Hello\n" + string(facts) + "\n",
		HTML:    "<p>" + string(facts) + "</p>",
	}, nil
}

// arrived parses the mails that a server accepted.
func arrived(t testing.TB, server *emailtest.Server) []emailtest.Parsed {
	t.Helper()
	var all []emailtest.Parsed
	for _, message := range server.Messages() {
		all = append(all, emailtest.Parse(t, message.Source))
	}
	return all
}

func contains(t testing.TB, text string, wanted ...string) {
	t.Helper()
	for _, want := range wanted {
		if !strings.Contains(text, want) {
			t.Errorf("%q lacks %q", text, want)
		}
	}
}
