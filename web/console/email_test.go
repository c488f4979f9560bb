package console_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/emersion/go-smtp"
	"github.com/google/uuid"

	"drawbridge/internal/email"
	"drawbridge/internal/email/emailtest"
	"drawbridge/internal/postgres"
	"drawbridge/views/paths"
)

// refusing is a mail server that gives every recipient this answer.
func refusing(t *testing.T, code int, text string) *emailtest.Server {
	t.Helper()
	return emailtest.NewServer(t, emailtest.Options{Rcpt: func(string) error {
		return &smtp.SMTPError{Code: code, EnhancedCode: smtp.NoEnhancedCode, Message: text}
	}})
}

func TestEmailExplainsItsState(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		prepare func(r *harness) uuid.UUID
		// want are pieces of what parts of the page say.
		want map[string]string
	}{
		{"waiting", func(r *harness) uuid.UUID { return r.mail(email.KindTask, nil) }, map[string]string{
			".headline": "Task Queued", "[aria-label=Diagnosis]": "It waits to be sent",
			"#message": "It is not written yet", "#attempts": "Attempt 1 is due",
		}},
		{"suppressed", func(r *harness) uuid.UUID {
			return r.mail(email.KindTask, paused)
		}, map[string]string{
			".headline": "Task Suppressed", "#message": "It was never written",
			"[aria-label=Diagnosis]": "It was held back and is never sent " +
				"Communications were paused.",
			"#attempts": "No mail server was asked",
		}},
		{"not sent", func(r *harness) uuid.UUID {
			defer r.deliver(nil, "Welcome!")
			return r.mail(email.KindWelcome, nil)
		}, map[string]string{
			".headline": "welcome for Ana Not sent", "#message [data-tab=Text] pre": "Welcome!",
			"[aria-label=Diagnosis]": "Not sent: no mail server configured",
		}},
		{"sent", func(r *harness) uuid.UUID {
			defer r.deliver(emailtest.NewServer(r.T, emailtest.Options{}), "Welcome!")
			return r.mail(email.KindWelcome, nil)
		}, map[string]string{
			".headline":                    "welcome for Ana Sent",
			"[aria-label=Diagnosis]":       "The mail server has accepted it It answered 250 to attempt 1",
			"#attempt-1 h3":                "Attempt 1: accepted",
			"#attempt-1":                   "Connection not encrypted",
			"#message [data-tab=Headers]":  "Subject: welcome for Ana",
			"#message [data-tab=Text] pre": "Welcome!",
		}},
		{"refused for now", func(r *harness) uuid.UUID {
			defer r.deliver(refusing(r.T, 451, "greylisted"), "Welcome!")
			return r.mail(email.KindWelcome, nil)
		}, map[string]string{
			".headline":              "welcome for Ana Queued",
			"[aria-label=Diagnosis]": "tried again by itself Attempt 1 was answered: 451",
			"#attempt-1 h3":          "Attempt 1: refused for now",
			"#attempt-1":             "Ended while naming the recipient",
			"#moment-next":           "Attempt 2 is due",
		}},
		{"refused for good", func(r *harness) uuid.UUID {
			defer r.deliver(refusing(r.T, 550, "no such user"), "Welcome!")
			return r.mail(email.KindWelcome, nil)
		}, map[string]string{
			".headline":              "welcome for Ana Failed",
			"[aria-label=Diagnosis]": "The mail server refused it for good Attempt 1 was answered: 550",
			"#attempt-1":             "no such user",
			"[aria-label=Diagnosis] p:last-child": "address of an application cannot be changed here, " +
				"and a re-send goes to the same one",
		}},
		{"unknown", func(r *harness) uuid.UUID {
			uid := r.mail(email.KindTask, nil)
			r.exec(`
				UPDATE emails SET state = 'failed', outcome_unknown = true, finished_at = created_at,
				                  next_attempt_at = NULL, reason = 'outcome unknown: it was cut'
				 WHERE email_uid = $1`, uid)
			return uid
		}, map[string]string{
			".headline": "Task Unknown", "[aria-label=Diagnosis]": "It may or may not have arrived",
			"#resend .risk": "it may have arrived already",
		}},
		{"restored", func(r *harness) uuid.UUID {
			uid := r.mail(email.KindTask, nil)
			r.must(r.DB.InTx(r.Context(), func(tx *postgres.Tx) error {
				_, err := r.Emails.GiveUpQueued(r.Context(), tx, tx.Now)
				return err
			}))
			return uid
		}, map[string]string{
			".headline": "Task Not sent", "#message": "It was not written here",
			"[aria-label=Diagnosis]": "It may or may not have arrived The database was restored",
			"#resend .risk":          "may have been sent before the database was restored",
		}},
		{"text removed", func(r *harness) uuid.UUID {
			uid := r.mail(email.KindWelcome, nil)
			r.deliver(nil, "Welcome!")
			_, err := r.DB.ExecContext(r.Context(), `
				UPDATE emails SET html_body = '', text_body = '', source = '', params = '{}',
				                  content_removed_at = now()`)
			r.must(err)
			return uid
		}, map[string]string{
			"#message": "Its text was removed",
			"[aria-label=Diagnosis]": "Not sent: no mail server configured It was written, and no server " +
				"was asked. Next: Its text was removed, so it cannot be re-sent",
		}},
		{"unknown, text removed", func(r *harness) uuid.UUID {
			uid := r.mail(email.KindTask, nil)
			r.exec(`
				UPDATE emails SET state = 'failed', outcome_unknown = true, finished_at = created_at,
				                  next_attempt_at = NULL, reason = 'it was cut', params = '{}',
				                  content_removed_at = now()
				 WHERE email_uid = $1`, uid)
			return uid
		}, map[string]string{
			"#message":                            "Its text was removed",
			"[aria-label=Diagnosis] p:last-child": "it cannot be re-sent: reach the recipient",
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			r := newHarness(t)
			uid := test.prepare(r).String()
			page := r.signedIn().get(paths.To(paths.Email, uid)).wantStatus(t, http.StatusOK)
			for selector, want := range test.want {
				if got := page.text(selector); !strings.Contains(got, want) {
					t.Errorf("%s says %q, want %q", selector, got, want)
				}
			}
			facts := page.text(".facts")
			if !containsAll(facts, []string{uid, r.application.String(), "ana@example.com"}) {
				t.Errorf("the facts are %q", facts)
			}
		})
	}
}

// TestEmailIsFramed puts hostile content of a borrower into a mail, and checks that neither
// the page nor the frame executes it.
func TestEmailIsFramed(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.signedIn()
	const planted = `</pre><script>planted()</script><img src=x onerror="planted()">`
	uid := r.mail(email.KindWelcome, func(message *email.Message) {
		message.ToName, message.Params[email.ParamFirstName] = planted, planted
	}).String()
	r.deliver(nil, planted)
	page := b.get(paths.To(paths.Email, uid)).wantStatus(t, http.StatusOK)
	if page.find("[onerror], script:not([src])").Length() != 0 {
		t.Error("the planted mark-up is part of the page")
	}
	if got := page.text("#message [data-tab=Text] pre"); !strings.Contains(got, "</pre><script>") {
		t.Errorf("the text part is shown as %q", got)
	}
	frame := page.find("iframe")
	sandbox, set := frame.Attr("sandbox")
	source, _ := frame.Attr("src")
	if frame.Length() != 1 || !set || sandbox != "" || source != paths.To(paths.EmailBody, uid) {
		t.Errorf("%d frames of %q with the sandbox %q", frame.Length(), source, sandbox)
	}
	policy := page.Header.Get("Content-Security-Policy")
	if !strings.Contains(policy, "frame-src 'self'") || strings.Contains(policy, "unsafe") {
		t.Errorf("the page's policy is %q", policy)
	}
	if got := b.get(paths.Emails).Header.Get("Content-Security-Policy"); strings.Contains(
		got, "frame-src") {
		t.Errorf("a page without a frame allows frames: %q", got)
	}
	body := b.get(source).wantStatus(t, http.StatusOK)
	if body.Raw != planted+"<style>a{pointer-events:none}</style>" {
		t.Errorf("the frame holds %q", body.Raw)
	}
	for name, want := range map[string]string{
		"Content-Security-Policy": "sandbox; default-src 'none'; style-src 'unsafe-inline'; " +
			"img-src data:; form-action 'none'; base-uri 'none'; frame-ancestors 'self'",
		"X-Frame-Options": "SAMEORIGIN", "X-Content-Type-Options": "nosniff",
		"Referrer-Policy": "no-referrer", "Cache-Control": "no-store",
		"Cross-Origin-Opener-Policy": "",
	} {
		if got := body.Header.Get(name); got != want {
			t.Errorf("the frame's %s is %q, want %q", name, got, want)
		}
	}
}

func TestEmailSource(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.signedIn()
	server := emailtest.NewServer(t, emailtest.Options{})
	uid := r.mail(email.KindWelcome, nil).String()
	b.get(paths.To(paths.EmailSource, uid)).wantStatus(t, http.StatusNotFound)
	b.get(paths.To(paths.EmailBody, uid)).wantStatus(t, http.StatusNotFound)
	r.deliver(server, "Welcome!")
	href, _ := b.get(paths.To(paths.Email, uid)).find("a[download]").Attr("href")
	file := b.get(href).wantStatus(t, http.StatusOK)
	if got := file.Header.Get("Content-Type"); got != "message/rfc822" {
		t.Errorf("content type %q", got)
	}
	if got := file.Header.Get("Content-Disposition"); got !=
		`attachment; filename="email-`+uid+`.eml"` {
		t.Errorf("disposition %q", got)
	}
	arrived := server.Wait(t, 1)[0]
	if strings.TrimSpace(file.Raw) != strings.TrimSpace(arrived.Source) {
		t.Errorf("the file is not what was sent:\n%s\n%s", file.Raw, arrived.Source)
	}
	if parsed := emailtest.Parse(t, file.Raw); parsed.Subject(t) != "welcome for Ana" {
		t.Errorf("its subject is %q", parsed.Subject(t))
	}
}

// TestResendEmail goes from the mail over the form to the new mail, which reaches the
// recipient.
func TestResendEmail(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.signedIn()
	server := emailtest.NewServer(t, emailtest.Options{})
	uid := r.mail(email.KindWelcome, nil)
	r.deliver(server, "Welcome!")
	page := b.get(paths.To(paths.Email, uid.String()))
	href, _ := page.find("a[data-open=resend]").Attr("href")
	form := b.get(href).wantStatus(t, http.StatusOK)
	if got := form.text(".risk"); !strings.Contains(got, "the recipient gets it twice") {
		t.Errorf("the risk is %q", got)
	}
	action, stale := form.formValues(t)
	back := b.post(action, url.Values{"reason": {"Lost in their spam"}}).wantStatus(t,
		http.StatusSeeOther)
	made := r.mails()[0]
	if back.Location != paths.To(paths.Email, made.EmailUID.String()) || made.EmailUID == uid {
		t.Fatalf("after the re-send: %q", back.Location)
	}
	r.deliver(server, "never rendered again")
	if texts := server.Wait(t, 2); !strings.Contains(texts[1].Source, "Welcome!") {
		t.Errorf("the re-send says %q", texts[1].Source)
	}
	fresh := b.get(back.Location).wantStatus(t, http.StatusOK)
	if got := fresh.text("main > .notice[role=status]"); got != "Re-sent. This is the new e-mail." {
		t.Errorf("notice %q", got)
	}
	if got := fresh.text(".facts"); !containsAll(got, []string{
		uid.String(), supportEmail, "Lost in their spam",
	}) {
		t.Errorf("the new mail's facts are %q", got)
	}
	old := b.get(paths.To(paths.Email, uid.String())).text("#resend-" + made.EmailUID.String())
	if !strings.Contains(old, "Sent") || !strings.Contains(old, supportEmail) {
		t.Errorf("the old mail says of its re-send %q", old)
	}
	// A form that was open meanwhile is refused instead of sending the mail a third time.
	refused := b.post(action, stale).wantStatus(t, http.StatusConflict)
	if got := refused.text(".notice-bad"); !strings.Contains(got,
		"it was re-sent 0 times and is re-sent 1 time now") {
		t.Errorf("the refusal says %q", got)
	}
	if got := refused.text(".risk"); !strings.Contains(got, "Re-sent 1 time already, last by "+
		supportEmail) {
		t.Errorf("the risks are %q", got)
	}
	if got := len(r.mails()); got != 2 {
		t.Errorf("%d mails are in the log", got)
	}
	var entry struct{ Actor, Subject, Reason, After string }
	r.must(r.DB.Get(&entry, `SELECT actor, subject, reason, after FROM audit_log
		WHERE action = 'email.resend'`))
	if entry.Actor != supportEmail || entry.Subject != uid.String() ||
		entry.Reason != "Lost in their spam" ||
		!strings.Contains(entry.After, made.EmailUID.String()) {
		t.Errorf("audit log %+v", entry)
	}
}

func TestResendEmailRefusals(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.signedIn()
	written := r.mail(email.KindWelcome, nil)
	r.deliver(nil, "Welcome!")
	for name, uid := range map[string]uuid.UUID{
		"queued": r.mail(email.KindTask, nil), "suppressed": r.mail(email.KindTask, paused),
	} {
		path := paths.To(paths.EmailResend, uid.String())
		b.get(path).wantStatus(t, http.StatusConflict)
		b.post(path, url.Values{}).wantStatus(t, http.StatusConflict)
		if b.get(paths.To(paths.Email, uid.String())).find("[data-open=resend], #resend").Length() != 0 {
			t.Errorf("a %s mail offers a re-send", name)
		}
	}
	path := paths.To(paths.EmailResend, written.String())
	long := b.post(path, url.Values{"reason": {strings.Repeat("x", 501)}})
	long.wantStatus(t, http.StatusBadRequest)
	kept, _ := long.find("input[name=reason]").Attr("value")
	if !strings.Contains(long.text("[role=alert]"), "500") || len(kept) != 501 {
		t.Errorf("a long reason: %q, kept %d characters", long.text("[role=alert]"), len(kept))
	}
	b.post(paths.To(paths.EmailResend, uuid.NewString()), url.Values{}).
		wantStatus(t, http.StatusNotFound)
	b.get(paths.To(paths.Email, "17")).wantStatus(t, http.StatusNotFound)
	if got := len(r.mails()); got != 3 || r.audits("email.resend") != 0 {
		t.Errorf("refused re-sends left %d mails and %d audit entries", got, r.audits("email.resend"))
	}
}
