package console_test

import (
	"maps"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/PuerkitoBio/goquery"

	"drawbridge/internal/operator"
	"drawbridge/views/paths"
	site "drawbridge/web/console/page"
)

func TestSettings(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.admin()
	page := b.get(paths.Settings).wantStatus(t, http.StatusOK)
	if months, _ := page.find("#metadata_months").Attr("value"); months != "13" {
		t.Errorf("the form begins with %q months", months)
	}
	row := page.text("tr[id='config-DRAWBRIDGE_WEBHOOK_RETRY']")
	if !strings.Contains(row, "1m,10m") || !strings.Contains(row, "default") {
		t.Errorf("the environment is shown as %q", row)
	}
	sam := r.signedIn()
	sam.get(paths.Settings).wantStatus(t, http.StatusForbidden)
	if sam.get(paths.Home).find(".rail a[href='"+paths.Settings+"']").Length() != 0 {
		t.Error("the rail offers the settings to support")
	}
}

func TestRetentionIsExplainedBeforeItIsSaved(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.admin()
	form := url.Values{
		"metadata_months": {"24"}, "body_days": {"30"}, "email_body_days": {"30"},
		"api_request_days": {"30"},
	}
	months := func() (count int) {
		r.must(r.DB.Get(&count, `SELECT metadata_months FROM retention_settings`))
		return count
	}
	plan := b.post(paths.SettingsRetention, form).wantStatus(t, http.StatusOK)
	for _, want := range []string{
		"within an hour", "0 events lose their bodies",
		"0 days go of the log of API requests, with 0 requests",
	} {
		if !strings.Contains(plan.text("main"), want) || months() != 13 {
			t.Errorf("before saving, with %d months stored, no %q: %q",
				months(), want, plan.text("main"))
		}
	}
	confirmed := url.Values{}
	plan.find("main form input").Each(func(_ int, input *goquery.Selection) {
		name, _ := input.Attr("name")
		value, _ := input.Attr("value")
		confirmed.Set(name, value)
	})
	b.post(paths.SettingsRetention, confirmed).wantStatus(t, http.StatusSeeOther)
	if months() != 24 || r.audits("settings.retention") != 1 {
		t.Errorf("%d months, %d audit entries", months(), r.audits("settings.retention"))
	}
	confirmed.Del("token") // the following are other forms
	for field, value := range map[string]string{
		"metadata_months": "1", "body_days": "x", "email_body_days": "9999", "api_request_days": "",
	} {
		wrong := maps.Clone(confirmed)
		wrong.Set(field, value)
		refused := b.post(paths.SettingsRetention, wrong).wantStatus(t, http.StatusBadRequest)
		if refused.text("#"+field+"-fault") == "" {
			t.Errorf("%s = %q has no fault", field, value)
		}
	}
	wrong := maps.Clone(confirmed)
	wrong.Set("metadata_months", "1")
	wrong.Set("body_days", "x")
	wrong.Set("email_body_days", "9999")
	refused := b.post(paths.SettingsRetention, wrong).wantStatus(t, http.StatusBadRequest)
	for field, want := range map[string]string{
		"metadata_months": "The months of events, deliveries and attempts must be from 2 to 120.",
		"body_days":       "The days of bodies must be a whole number.",
		"email_body_days": "The days of texts of e-mails must be from 7 to 3650.",
	} {
		if got := refused.text("#" + field + "-fault"); got != want {
			t.Errorf("%s: %q, want %q", field, got, want)
		}
	}
	if months() != 24 {
		t.Error("a refused form changed the settings")
	}
}

func TestSignInSettings(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.admin()
	b.post(paths.SettingsSignIn, url.Values{"roles": {"root"}}).
		wantStatus(t, http.StatusBadRequest)
	b.post(paths.SettingsSignIn, url.Values{"roles": {"support", "operator"}}).
		wantStatus(t, http.StatusSeeOther)
	if got := b.get(paths.Settings).find("input[name=roles][checked]").Length(); got != 2 {
		t.Errorf("%d roles are checked, want 2", got)
	}
	if led := r.signedIn().get(paths.Home); led.Location != paths.SecondFactor {
		t.Errorf("support is led to %q", led.Location)
	}
	overtaken := b.post(paths.SettingsSignIn, url.Values{"roles": {"admin"}, "seen": {"nobody"}})
	overtaken.wantStatus(t, http.StatusConflict)
	const now = "it was nobody and is Operator; Support now"
	if got := overtaken.text("main"); !strings.Contains(got, now) {
		t.Errorf("who chose among what was before is told %q", got)
	}
	b.post(paths.SettingsSignIn, nil).wantStatus(t, http.StatusSeeOther)
	r.signedIn().get(paths.Home).wantStatus(t, http.StatusOK)
}

// TestEveryRouteByRole calls every route as a guest and in each role: allowed users reach
// the handler, all others get the exact refusal, and changes from another origin are
// refused to everybody.
func TestEveryRouteByRole(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	people := map[operator.Role]*browser{"": r.stranger()}
	for _, role := range operator.Roles() {
		address := string(role) + "-route@lender.example"
		r.addUser(address, role)
		people[role] = r.stranger()
		people[role].signIn(address, password).wantStatus(t, http.StatusSeeOther)
	}
	for _, route := range r.Console.Routes() {
		if route.Path == paths.SignOut {
			continue // it would end the test's session
		}
		for role, b := range people {
			checkVerdict(t, route, role, b)
		}
	}
}

func checkVerdict(t *testing.T, route site.Route, role operator.Role, b *browser) {
	t.Helper()
	foreign := *b
	foreign.header = http.Header{"Sec-Fetch-Site": {"cross-site"}}
	path := fill(route.Path)
	if route.Method != http.MethodGet {
		if got := foreign.send(route.Method, path, url.Values{}).Status; got != http.StatusForbidden {
			t.Errorf("%s %s from another site answers %q %d", route.Method, route.Path, role, got)
		}
	}
	if role.Allows(route.Role) || route.Role == "" {
		if route.Method != http.MethodGet || strings.HasSuffix(path, "/live") {
			return // changes and streams are tested elsewhere
		}
		answer := b.fragment().send(route.Method, path, nil)
		if answer.Status == http.StatusUnauthorized || answer.Status == http.StatusForbidden {
			t.Errorf("%s answers %q %d: %s", route.Path, role, answer.Status, answer.text("[role=alert]"))
		}
		return
	}
	answer := b.fragment().send(route.Method, path, nil)
	want := http.StatusForbidden
	if role == "" {
		want = http.StatusUnauthorized
	}
	if answer.Status != want {
		t.Errorf("%s %s answers %q %d, want %d", route.Method, route.Path, role, answer.Status, want)
	}
}
