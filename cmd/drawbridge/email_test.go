package main

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/emersion/go-smtp"

	"drawbridge/internal/email/emailtest"
	"drawbridge/internal/postgres"
)

// TestEmailCommands lists, shows and re-sends by the flags and by name.
func TestEmailCommands(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.document(t, "demo")
	db, err := postgres.Open(t.Context(), d.url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	_, err = db.ExecContext(t.Context(), `
		INSERT INTO emails (email_uid, application_uid, kind, to_name, to_address, params, state, reason,
		                    subject, text_body, html_body, created_at, finished_at)
		SELECT gen_random_uuid(), CASE WHEN n < 3 THEN application_uid END, 'task', 'Ana',
		       'ana' || n || '@example.com', '{}', CASE WHEN n < 4 THEN 'failed' ELSE 'sent' END,
		       CASE WHEN n < 4 THEN '550 no' ELSE '' END, 'A task', 'Look!', '<p>Look!</p>', at, at
		  FROM generate_series(0, 5) AS n,
		       LATERAL (SELECT timestamptz '2026-01-01T00:00:00Z' + n * interval '1 day' AS at) AS day,
		       (SELECT application_uid FROM applications ORDER BY created_at LIMIT 1) AS application`)
	if err != nil {
		t.Fatal(err)
	}
	listed := func(flags ...string) []map[string]any {
		t.Helper()
		document := d.document(t, append([]string{"email", "list"}, flags...)...)
		wantKeys(t, document, "emails", "next_cursor")
		return list(t, document, "emails")
	}
	before := []string{"--until", "2026-01-31"}
	all := listed(before...)
	if len(all) != 6 || all[0]["to"] != "ana5@example.com" || all[0]["application_uid"] != nil {
		t.Fatalf("listed %v", all)
	}
	wantKeys(t, all[0], "email_uid", "application_uid", "to", "kind", "state", "attempt_count",
		"created_at")
	application := fmt.Sprint(all[5]["application_uid"])
	for want, flags := range map[int][]string{
		4: append(before, "--state", "failed"),
		2: append(before, "--state", "failed", "--since", "2026-01-03"),
		3: append(before, "--application", application, "--kind", "task"),
		1: append(before, "--limit", "1"),
		0: append(before, "--kind", "welcome"),
	} {
		if got := listed(flags...); len(got) != want {
			t.Errorf("email list %v printed %d", flags, len(got))
		}
	}
	page := d.document(t, append([]string{"email", "list", "--limit", "4"}, before...)...)
	rest := listed(append(before, "--cursor", fmt.Sprint(page["next_cursor"]))...)
	if len(rest) != 2 || rest[0]["email_uid"] != all[4]["email_uid"] {
		t.Errorf("the second page is %v", rest)
	}
	uid := fmt.Sprint(all[5]["email_uid"])
	shown := d.document(t, "email", "show", uid)
	if shown["reason"] != "550 no" || shown["text"] != "Look!" || shown["waits_for"] != nil {
		t.Errorf("shown %v", shown)
	}
	if text := d.text(t, "email", "show", uid); !strings.Contains(text, "550 no") {
		t.Errorf("shown %s", text)
	}

	resent := func(want int, args ...string) []any {
		t.Helper()
		document := d.document(t, append([]string{"email", "resend"}, args...)...)
		wantKeys(t, document, "resent")
		made, _ := document["resent"].([]any)
		if len(made) != want {
			t.Errorf("email resend %v made %v, want %d", args, made, want)
		}
		return made
	}
	chosen := slices.Concat(before,
		[]string{"--state", "failed", "--since", "2026-01-02", "--reason", "it is back"})
	made := resent(3, chosen...)
	resent(0, chosen...)
	resent(2, uid, fmt.Sprint(all[0]["email_uid"]), uid)
	again := d.document(t, "email", "show", fmt.Sprint(made[0]))
	if again["state"] != "queued" || again["resend_of"] != all[4]["email_uid"] {
		t.Errorf("the new e-mail is %v", again)
	}
	var audited int
	err = db.GetContext(t.Context(), &audited,
		`SELECT count(*) FROM audit_log WHERE action = 'email.resend' AND subject_kind = 'email'`)
	if err != nil || audited != 5 {
		t.Errorf("%d entries in the audit log, %v", audited, err)
	}
	for _, test := range []struct {
		args   []string
		status int
		names  string
	}{
		{[]string{"email", "list", "--state", "lost"}, 2, "--state"},
		{[]string{"email", "list", "--kind", "birthday"}, 2, "--kind"},
		{[]string{"email", "list", "--limit", "501"}, 2, "--limit"},
		{[]string{"email", "resend"}, 2, "--state"},
		{[]string{"email", "resend", uid, "--state", "failed"}, 2, "not both"},
		{[]string{"email", "resend", fmt.Sprint(made[0])}, 1, fmt.Sprint(made[0])},
		{[]string{"email", "show", application}, 1, application},
	} {
		if got := d.run(t, test.args...); got.status != test.status ||
			!strings.Contains(got.stderr, test.names) {
			t.Errorf("%v ended with %d: %s", test.args, got.status, got.stderr)
		}
	}
}

// TestMailServerRefusesThenTakes runs the service beside a relay that refuses its
// sender: nothing fails, and once the relay takes mail each e-mail arrives once.
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
	w := newWorld(t)
	w.vars["DRAWBRIDGE_SMTP_URL"] = relay.URL()
	l := w.newLoad(newRecordingReceiver(t, uint64(time.Now().UnixNano())))
	l.use(w.serve())
	db := w.open(t)
	l.createTasks(20)
	const alerts = `SELECT count(*) FROM attention_items WHERE kind = 'mail_refused' AND closed_at `
	until(t, mailPatience, "every mail waits, and there is one alert", func() bool {
		return countRows(t, db, `SELECT count(*) FROM emails
		                      WHERE state = 'queued' AND waits_for = ''`) == 0 &&
			countRows(t, db, alerts+`IS NULL`) == 1
	})
	if got := countRows(t, db, `SELECT count(*) FROM emails
		WHERE state NOT IN ('queued', 'suppressed') OR attempt_count > refusals`); got != 0 {
		t.Errorf("%d mails ended or used up a try", got)
	}
	waiting := countRows(t, db, `SELECT count(*) FROM emails WHERE state = 'queued'`)
	if got := int(asked.Load()); got >= waiting+10 {
		t.Errorf("%d mails waited, and the relay was asked %d times", waiting, got)
	}
	refuse.Store(false)
	// The pause may have grown to minutes by now on a slow machine.
	_, err := db.ExecContext(t.Context(), `UPDATE mail_stop SET next_probe_at = now()`)
	if err != nil {
		t.Fatal(err)
	}
	until(t, mailPatience, "every mail is sent, and the alert is closed", func() bool {
		return countRows(t, db, `SELECT count(*) FROM emails WHERE state = 'sent'`) == waiting &&
			countRows(t, db, alerts+`IS NULL`) == 0
	})
	if sent, failed := checkMails(t, db, relay); sent != waiting || failed != 0 {
		t.Errorf("%d were sent and %d failed, of %d", sent, failed, waiting)
	}
	if got := countRows(t, db, alerts+`IS NOT NULL`); got != 1 {
		t.Errorf("%d alerts", got)
	}
}

func countRows(t *testing.T, db *postgres.DB, query string) int {
	t.Helper()
	var found int
	if err := db.GetContext(t.Context(), &found, query); err != nil {
		t.Fatal(err)
	}
	return found
}

// TestWelcomeComesFirst gives each of 20 borrowers a task in the moment in which the
// offer is accepted. Their welcome mails come first.
func TestWelcomeComesFirst(t *testing.T) {
	t.Parallel()
	const borrowers = 20
	relay := emailtest.NewServer(t, emailtest.Options{})
	w := newWorld(t)
	w.vars["DRAWBRIDGE_SMTP_URL"] = relay.URL()
	data := w.demoData()
	base := w.serve("--roles", "api").url + "/api/v2"
	var addresses []string
	for i := range borrowers {
		address := fmt.Sprintf("borrower%d@example.com", i)
		addresses = append(addresses, address)
		made := send(t, data, http.MethodPost, base+"/application", map[string]any{
			"requested_amount": "25000.00",
			"borrower":         map[string]any{"first_name": "Nora", "last_name": "N", "email": address},
			"project":          map[string]any{"name": "Roof"},
		})
		uid := fmt.Sprint(made["thrive_application_uid"])
		send(t, data, http.MethodPost, base+"/application/create-run-decision",
			map[string]any{"thrive_application_uid": uid})
		send(t, data, http.MethodPut, base+"/application/accept-offer", map[string]any{
			"thrive_application_uid": uid, "selected_product_uid": data.Products[0].UID,
		})
		send(t, data, http.MethodPost, base+"/sandbox/application/"+uid+"/task",
			map[string]any{"title": "Proof of income"})
	}
	// All is there when the workers come, which take ten at a time; in the order in which
	// they find it, the last comes first.
	db := w.open(t)
	if _, err := db.ExecContext(t.Context(), `
		UPDATE river_job SET priority = CASE WHEN args ->> 'email_uid' IN (
		       SELECT email_uid::text FROM emails WHERE kind = 'welcome') THEN 4 ELSE 1 END
		 WHERE kind = 'send_email'`); err != nil {
		t.Fatal(err)
	}
	w.serve("--roles", "worker")
	subjects := map[string][]string{}
	const queued = `SELECT count(*) FROM emails WHERE state = 'queued'`
	until(t, mailPatience, "every mail is sent", func() bool { return countRows(t, db, queued) == 0 })
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
