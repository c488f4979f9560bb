package console_test

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/emersion/go-smtp"
	"github.com/google/uuid"

	"drawbridge/internal/email"
	"drawbridge/internal/email/emailtest"
	"drawbridge/views/paths"
)

// TestResendManyEmails ticks rows of the list, and then takes all that match.
func TestResendManyEmails(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.signedIn() // support
	var failed []uuid.UUID
	for range 3 {
		failed = append(failed, r.mail(email.KindTask, nil))
	}
	r.deliver(refusing(t, 550, "no such user"), "Look!")
	queued := r.mail(email.KindTask, nil)
	server := emailtest.NewServer(t, emailtest.Options{})

	none := b.post(paths.EmailsResend, url.Values{"filter": {"state=failed"}}).
		wantStatus(t, http.StatusSeeOther)
	if got := b.get(none.Location).text("main .notice"); !strings.Contains(got, "Tick the e-mails") {
		t.Errorf("nothing ticked: %q at %q", got, none.Location)
	}
	if none.Location != paths.Emails+"?state=failed" {
		t.Errorf("it leads back to %q", none.Location)
	}
	b.post(paths.EmailsResend, url.Values{"email": texts(queued)}).
		wantStatus(t, http.StatusConflict)
	if b.get(paths.Emails).find("#pick td > input[name=email]").Length() != 4 {
		t.Error("the list's rows cannot be ticked")
	}

	ask := b.post(paths.EmailsResend, url.Values{
		"filter": {"state=failed"}, "email": texts(failed[0], queued),
	}).wantStatus(t, http.StatusOK)
	if got := ask.text("main"); !strings.Contains(got, "Re-send 1 e-mail") ||
		!strings.Contains(got, "1 chosen e-mail is left out") {
		t.Errorf("the question is %q", got)
	}
	stale := fieldsOf(b.post(paths.EmailsResend, url.Values{"email": texts(failed[0])}))
	stale.Set("reason", "the mailbox is back")
	form := fieldsOf(ask)
	form.Set("reason", "the mailbox is back")
	for range 2 { // sent twice, it acts once
		b.post(paths.EmailsResend, form).wantStatus(t, http.StatusSeeOther)
	}
	if got := r.audits("email.resend"); len(r.mails()) != 5 || got != 1 {
		t.Fatalf("%d mails, %d entries in the audit log", len(r.mails()), got)
	}

	refused := b.post(paths.EmailsResend, stale).wantStatus(t, http.StatusConflict).text("main")
	if !strings.Contains(refused, "it was re-sent 0 times and is re-sent 1 time now") ||
		!strings.Contains(refused, "Re-sent 1 time already") {
		t.Errorf("who ticked it at the same time is told %q", refused)
	}

	all := b.post(paths.EmailsResend, url.Values{"filter": {"state=failed"}, "all": {"1"}}).
		wantStatus(t, http.StatusOK)
	if got := all.text("main"); !strings.Contains(got, "Re-send 2 e-mails") {
		t.Errorf("what was re-sent before is asked for again: %q", got)
	}
	another := b.post(paths.EmailsResend, url.Values{"filter": {"state=failed"}, "all": {"1"}})
	if got := all.text("main"); !containsAll(got, []string{
		"3 e-mails match", "“State Failed”", "re-sent already", "accepted none of them before",
	}) {
		t.Errorf("the question about all that match is %q", got)
	}
	unreasoned := b.post(paths.EmailsResend, fieldsOf(all)).wantStatus(t, http.StatusBadRequest)
	if got := unreasoned.text("main"); !strings.Contains(got, "why these e-mails are re-sent") {
		t.Errorf("without a reason it says %q", got)
	}
	reasoned := fieldsOf(all)
	reasoned.Set("reason", "the mailbox is back")
	done := b.post(paths.EmailsResend, reasoned).wantStatus(t, http.StatusSeeOther)
	if got := b.get(done.Location).text("main .notice"); !strings.Contains(got, "Re-sent: 2 e-mails") {
		t.Errorf("the list says %q", got)
	}
	late := fieldsOf(another)
	late.Set("reason", "the mailbox is back")
	if got := b.post(paths.EmailsResend, late).wantStatus(t, http.StatusConflict).
		text("main"); !strings.Contains(got, "were re-sent meanwhile") {
		t.Errorf("who asked at the same time is told %q", got)
	}
	r.deliver(server, "Look!")
	if got := len(server.Messages()); got != 4 || r.audits("email.resend") != 3 {
		t.Errorf("%d mails arrived, %d entries in the audit log", got, r.audits("email.resend"))
	}
	for query, want := range map[string]string{
		"state=failed": "3 re-sent already", "state=suppressed": "No e-mail matches",
	} {
		none := b.post(paths.EmailsResend, url.Values{"filter": {query}, "all": {"1"}})
		if got := b.get(none.Location).text("main .notice"); !strings.Contains(got, want) {
			t.Errorf("nothing of %s can be re-sent: %q", query, got)
		}
	}
	for query, want := range map[string]string{"state=failed": "Made good", "open=yes": ""} {
		page := b.get(paths.Emails+"?"+query).wantStatus(t, http.StatusOK)
		if got := page.text("#m-" + failed[0].String()); !strings.Contains(got, want) ||
			want == "" && len(page.mailIDs()) > 0 {
			t.Errorf("with %s the list says %q of what a re-send made good", query, got)
		}
	}
	if got := b.get(paths.To(paths.Email, failed[0].String())).text("main"); !strings.Contains(
		got, "It was accepted as a later re-send") {
		t.Errorf("its page says %q", got)
	}
	if got := b.get(paths.Home).tile("E-mails failed"); !strings.HasPrefix(got, "0 ") {
		t.Errorf("the overview counts %q", got)
	}
	var resent []uuid.UUID
	for _, mail := range r.mails() {
		if mail.ResendOf.Valid {
			resent = append(resent, mail.ResendOf.UUID)
		}
	}
	slices.Reverse(resent)
	if !slices.Equal(resent[:1], failed[:1]) || len(resent) != 3 {
		t.Errorf("re-sent %v of %v", resent, failed)
	}
}

// fieldsOf returns the fields of the page's form.
func fieldsOf(a answer) url.Values {
	fields := url.Values{}
	for _, field := range a.find("main form[method=post] input").EachIter() {
		fields.Add(field.AttrOr("name", ""), field.AttrOr("value", ""))
	}
	return fields
}

// TestEmailSaysWhatItWaitsFor: in the list and on its page.
func TestEmailSaysWhatItWaitsFor(t *testing.T) {
	t.Parallel()
	var refuse atomic.Bool
	refuse.Store(true)
	server := emailtest.NewServer(t, emailtest.Options{Mail: func(string) error {
		if refuse.Load() {
			return &smtp.SMTPError{
				Code: 530, EnhancedCode: smtp.EnhancedCode{5, 7, 0}, Message: "sign in first",
			}
		}
		return nil
	}})
	r := newHarness(t)
	b := r.signedIn()
	asked := r.mail(email.KindWelcome, nil)
	r.deliver(server, "Welcome!")
	waiting := r.mail(email.KindTask, func(m *email.Message) { m.ApplicationUID = uuid.Nil })
	r.deliver(server, "Look!")
	third := r.mail(email.KindTask, nil)
	r.deliver(server, "Look!")
	for uid, want := range map[uuid.UUID][2]string{
		asked:   {"Waits: the mail server refuses us", "Attempt 1 was answered: 530"},
		waiting: {"Waits: the mail server refuses us", "refused other e-mails in the same way"},
		third:   {"Waits for the welcome e-mail", "once its welcome e-mail has ended"},
	} {
		row := b.get(paths.Emails).text("#m-" + uid.String())
		page := b.get(paths.To(paths.Email, uid.String())).text("[aria-label=Diagnosis]")
		if !strings.Contains(row, want[0]) || !strings.Contains(page, want[1]) {
			t.Errorf("the row says %q, the page %q; want %q", row, page, want)
		}
	}
}
