package console_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"drawbridge/internal/email"
	"drawbridge/internal/operator"
	"drawbridge/views/mail"
	"drawbridge/views/paths"
)

const adminEmail = "ada@lender.example"

// admin is a browser of an admin.
func (r *harness) admin() *browser {
	r.Helper()
	r.addUser(adminEmail, operator.RoleAdmin)
	b := r.stranger()
	b.signIn(adminEmail, password).wantStatus(r.T, http.StatusSeeOther)
	return b
}

func (r *harness) settings() email.Settings {
	r.Helper()
	settings, err := email.LoadSettings(r.Context(), r.DB)
	r.must(err)
	return settings
}

// meadow is a form without errors.
func meadow() url.Values {
	return url.Values{
		"lender_name": {"Meadow Lending"}, "primary_color": {"#0A5C36"}, "accent_color": {"#b84f14"},
		"reply_to": {"help@meadow.example"}, "alert_to": {"a@meadow.example,\r\nb@meadow.example\r\n"},
	}
}

func TestMailSettings(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.admin()
	href, _ := b.get(paths.Emails).find(".page-acts a[href^='/console/settings']").Attr("href")
	form := b.get(href).wantStatus(t, http.StatusOK).find("main form")
	if name, _ := form.Find("#ask-lender_name").Attr("value"); name != "Drawbridge" {
		t.Errorf("the form begins with the lender %q", name)
	}
	action, _ := form.Attr("action")
	back := b.post(action, meadow()).wantStatus(t, http.StatusSeeOther)
	want := email.Settings{
		LenderName: "Meadow Lending", PrimaryColor: "#0a5c36", AccentColor: "#b84f14",
		ReplyTo: "help@meadow.example", AlertTo: []string{"a@meadow.example", "b@meadow.example"},
	}
	if diff := cmp.Diff(want, r.settings()); diff != "" {
		t.Errorf("stored:\n%s", diff)
	}
	page := b.get(back.Location)
	if got := page.text("main > .notice"); !strings.HasPrefix(got, "Saved.") {
		t.Errorf("notice %q", got)
	}
	if got := page.find("#ask-alert_to").Text(); got != "a@meadow.example\nb@meadow.example" {
		t.Errorf("the alert addresses are shown as %q", got)
	}
	source, _ := page.find("iframe").Attr("src")
	sample := b.get(source).wantStatus(t, http.StatusOK)
	if !containsAll(sample.Raw, []string{"#0a5c36", "Meadow Lending"}) {
		t.Error("the sample does not have the stored looks")
	}
	var entry struct{ Actor, Before, After string }
	r.must(r.DB.Get(&entry, `SELECT actor, before, after FROM audit_log
		WHERE action = 'mail_settings.update'`))
	if entry.Actor != adminEmail || !strings.Contains(entry.Before, `"Drawbridge"`) ||
		!containsAll(entry.After, []string{`"Meadow Lending"`, `"#0a5c36"`, `"b@meadow.example"`}) {
		t.Errorf("audit log %+v", entry)
	}
	b.post(action, meadow()).wantStatus(t, http.StatusSeeOther)
	if got := b.get(action).text("main > .notice"); got != "Nothing was changed." {
		t.Errorf("saving the same again says %q", got)
	}
	if got := r.audits("mail_settings.update"); got != 1 {
		t.Errorf("%d audit entries of one change", got)
	}
}

func TestMailSettingsErrors(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.admin()
	before := r.settings()
	const planted = `"><script>planted()</script>`
	form := url.Values{
		"lender_name": {""}, "primary_color": {"red"}, "accent_color": {planted},
		"reply_to": {planted}, "alert_to": {"ops@lender.example\nnobody"},
	}
	page := b.post(paths.MailSettings, form).wantStatus(t, http.StatusBadRequest)
	for field, want := range map[string]string{
		"lender_name":   "The lender's name must have 1 to 100 characters on one line.",
		"primary_color": "The colour of the head must be a colour such as #1d3f72.",
		"accent_color":  "The colour of what matters must be a colour such as #1d3f72.",
		"reply_to":      "The address for answers must be an e-mail address or empty.",
		"alert_to": `The list of addresses for alerts contains "nobody", ` +
			`which is not an e-mail address.`,
	} {
		if got := page.text("#ask-" + field + "-fault"); got != want {
			t.Errorf("%s: %q, want %q", field, got, want)
		}
		if got := page.text("[role=alert] a[href='#ask-" + field + "']"); got != want {
			t.Errorf("the summary says of %s %q", field, got)
		}
	}
	if kept, _ := page.find("#ask-reply_to").Attr("value"); kept != planted {
		t.Errorf("what was typed is kept as %q", kept)
	}
	if page.find("script:not([src])").Length() != 0 {
		t.Error("the planted script is part of the page")
	}
	if diff := cmp.Diff(before, r.settings()); diff != "" || r.audits("mail_settings.update") != 0 {
		t.Errorf("a refused form changed:\n%s", diff)
	}
}

func TestMailSettingsAreForAdmins(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	before := r.settings()
	r.addUser("olga@lender.example", operator.RoleOperator)
	for _, address := range []string{supportEmail, "olga@lender.example"} {
		b := r.stranger()
		b.signIn(address, password).wantStatus(t, http.StatusSeeOther)
		b.get(paths.MailSettings).wantStatus(t, http.StatusForbidden)
		b.post(paths.MailSettings, meadow()).wantStatus(t, http.StatusForbidden)
		for _, path := range []string{paths.Emails, paths.EmailSamples} {
			if b.get(path).find("a[href='"+paths.MailSettings+"']").Length() != 0 {
				t.Errorf("%s offers the settings to %s", path, address)
			}
		}
	}
	if diff := cmp.Diff(before, r.settings()); diff != "" {
		t.Errorf("somebody who may not changed:\n%s", diff)
	}
}

func TestEmailSamples(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.signedIn()
	page := b.get(paths.EmailSamples).wantStatus(t, http.StatusOK)
	if got := page.find("main .segment").Length(); got != len(mail.Samples()) {
		t.Errorf("%d samples to choose from, want %d", got, len(mail.Samples()))
	}
	for _, sample := range mail.Samples() {
		page := b.get(paths.Where(paths.EmailSamples, "mail", sample.Name)).wantStatus(t, http.StatusOK)
		if got := page.text("main .segment[aria-current]"); got != sample.Title {
			t.Errorf("%s is shown as %q", sample.Name, got)
		}
		subject := sample.Message.Subject(mail.Lender{Settings: email.Settings{LenderName: "Drawbridge"}})
		if got := page.text(".mail-subject"); got != "Subject "+subject {
			t.Errorf("%s: %q, want the subject %q", sample.Name, got, subject)
		}
		frames := page.find("iframe[sandbox='']")
		if frames.Length() != 2 {
			t.Fatalf("%s: %d frames, want light and dark", sample.Name, frames.Length())
		}
		source, _ := frames.First().Attr("src")
		body := b.get(source).wantStatus(t, http.StatusOK)
		if !strings.HasPrefix(body.Header.Get("Content-Security-Policy"), "sandbox;") ||
			!strings.Contains(body.text("body"), "Drawbridge") {
			t.Errorf("%s: %.200q", source, body.Raw)
		}
	}
	for _, path := range []string{
		paths.Where(paths.EmailSamples, "mail", "planted"), paths.To(paths.EmailSample, "planted"),
	} {
		b.get(path).wantStatus(t, http.StatusNotFound)
	}
}
