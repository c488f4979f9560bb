package faults

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/emersion/go-smtp"

	"drawbridge/cmd/e2e/e2etest"
	"drawbridge/internal/email/emailtest"
	"drawbridge/internal/postgres/pgtest"
	"drawbridge/internal/waittest"
)

// TestMailServerRefusesThenTakes runs the service with a relay that refuses its sender:
// nothing fails, and once the relay accepts mail each e-mail arrives once.
func TestMailServerRefusesThenTakes(t *testing.T) {
	t.Parallel()
	var refuse atomic.Bool
	refuse.Store(true)
	var asked atomic.Int32
	relay := emailtest.NewServer(t, emailtest.Options{Mail: func(string) error {
		asked.Add(1)
		if !refuse.Load() {
			return nil
		}
		return &smtp.SMTPError{
			Code: 530, EnhancedCode: smtp.EnhancedCode{5, 7, 0}, Message: "sign in first",
		}
	}})
	w := e2etest.New(t)
	w.Env["DRAWBRIDGE_SMTP_URL"] = relay.URL()
	r := newRecordingReceiver(t, 1)
	r.linger(0) // no alert about failed deliveries adds an e-mail
	l := newLoad(w, r)
	l.use(w.Serve())
	db := w.Open(t)
	l.createTasks(20)
	const alerts = `SELECT count(*) FROM attention_items WHERE kind = 'mail_refused' AND closed_at `
	waittest.Within(t, e2etest.MailPatience, "every mail waits, and there is one alert", func() bool {
		return pgtest.Count(t, db, `SELECT count(*) FROM emails
		                      WHERE state = 'queued' AND waits_for = ''`) == 0 &&
			pgtest.Count(t, db, alerts+`IS NULL`) == 1
	})
	if got := pgtest.Count(t, db, `SELECT count(*) FROM emails
		WHERE state NOT IN ('queued', 'suppressed') OR attempt_count > refusals`); got != 0 {
		t.Errorf("%d mails ended or used up a try", got)
	}
	waiting := pgtest.Count(t, db, `SELECT count(*) FROM emails WHERE state = 'queued'`)
	if got := int(asked.Load()); got >= waiting+10 {
		t.Errorf("%d mails waited, and the relay was asked %d times", waiting, got)
	}
	refuse.Store(false)
	// The pause may have grown to minutes by now on a slow machine.
	_, err := db.ExecContext(t.Context(), `UPDATE mail_stop SET next_probe_at = now()`)
	if err != nil {
		t.Fatal(err)
	}
	waittest.Within(t, e2etest.MailPatience, "every mail is sent, the alert closed", func() bool {
		return pgtest.Count(t, db, `SELECT count(*) FROM emails WHERE state = 'sent'`) == waiting &&
			pgtest.Count(t, db, alerts+`IS NULL`) == 0
	})
	if sent, failed := checkMails(t, db, relay); sent != waiting || failed != 0 {
		t.Errorf("%d were sent and %d failed, of %d", sent, failed, waiting)
	}
	if got := pgtest.Count(t, db, alerts+`IS NOT NULL`); got != 1 {
		t.Errorf("%d alerts", got)
	}
}

// TestWelcomeComesFirst gives each of 20 borrowers a task in the moment in which the
// offer is accepted. Their welcome mails come first.
func TestWelcomeComesFirst(t *testing.T) {
	t.Parallel()
	const borrowers = 20
	relay := emailtest.NewServer(t, emailtest.Options{})
	w := e2etest.New(t)
	w.Env["DRAWBRIDGE_SMTP_URL"] = relay.URL()
	data := w.DemoData()
	base := w.Serve("--roles", "api").URL + "/api/v2"
	var addresses []string
	for i := range borrowers {
		address := fmt.Sprintf("borrower%d@example.com", i)
		addresses = append(addresses, address)
		made := e2etest.Send(t, data, http.MethodPost, base+"/application", map[string]any{
			"requested_amount": "25000.00",
			"borrower":         map[string]any{"first_name": "Nora", "last_name": "N", "email": address},
			"project":          map[string]any{"name": "Roof"},
		})
		uid := fmt.Sprint(made["thrive_application_uid"])
		e2etest.Send(t, data, http.MethodPost, base+"/application/create-run-decision",
			map[string]any{"thrive_application_uid": uid})
		e2etest.Send(t, data, http.MethodPut, base+"/application/accept-offer", map[string]any{
			"thrive_application_uid": uid, "selected_product_uid": data.Products[0].UID,
		})
		e2etest.Send(t, data, http.MethodPost, base+"/sandbox/application/"+uid+"/task",
			map[string]any{"title": "Proof of income"})
	}
	// Everything exists before the workers start, which take ten at a time. The reversed order
	// makes them find the last e-mail first.
	db := w.Open(t)
	if _, err := db.ExecContext(t.Context(), `
		UPDATE river_job SET priority = CASE WHEN args ->> 'email_uid' IN (
		       SELECT email_uid::text FROM emails WHERE kind = 'welcome') THEN 4 ELSE 1 END
		 WHERE kind = 'send_email'`); err != nil {
		t.Fatal(err)
	}
	w.Serve("--roles", "worker")
	subjects := map[string][]string{}
	const queued = `SELECT count(*) FROM emails WHERE state = 'queued'`
	waittest.Within(t, e2etest.MailPatience, "every mail is sent", func() bool {
		return pgtest.Count(t, db, queued) == 0
	})
	for _, message := range relay.Messages() {
		subjects[message.To] = append(subjects[message.To],
			emailtest.Parse(t, message.Source).Subject(t))
	}
	for _, address := range addresses {
		got := subjects[address]
		if len(got) != 2 || !strings.HasPrefix(got[0], "Welcome") || slices.Contains(got[1:], got[0]) {
			t.Errorf("%s got %q", address, got)
		}
	}
}
