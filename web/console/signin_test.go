package console_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"drawbridge/internal/operator"
	"drawbridge/internal/postgres"
	"drawbridge/views/paths"
	"drawbridge/web/api"
	"drawbridge/web/console"
)

func TestSignIn(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.stranger()
	page := b.get(paths.Home).wantStatus(t, http.StatusSeeOther)
	if page.Location != "/console/sign-in?next=%2Fconsole" {
		t.Errorf("a stranger is sent to %q", page.Location)
	}
	b.get(page.Location).wantStatus(t, http.StatusOK)
	back := b.post(paths.SignIn, url.Values{
		"email": {" SAM@lender.example "}, "password": {password},
		"next": {"/console/deliveries?state=failed"},
	}).wantStatus(t, http.StatusSeeOther)
	if back.Location != "/console/deliveries?state=failed" {
		t.Errorf("after signing in: %q", back.Location)
	}
	b.get(back.Location).wantStatus(t, http.StatusOK)
	if again := b.get(paths.SignIn); again.Location != paths.Home {
		t.Errorf("who is signed in is asked to sign in again: %d", again.Status)
	}
	if r.audits("user.sign_in") != 1 {
		t.Error("the sign-in is not in the audit log")
	}
}

// audits counts the entries of an action.
func (r *harness) audits(action string) int {
	r.Helper()
	return r.count(`SELECT count(*) FROM audit_log WHERE action = $1`, action)
}

func TestSignInRefusals(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.stranger()
	wrong := b.signIn(supportEmail, "wrong password").wantStatus(t, http.StatusUnauthorized)
	unknown := b.signIn("nobody@lender.example", "wrong password").wantStatus(t,
		http.StatusUnauthorized)
	if wrong.text("[role=alert]") != unknown.text("[role=alert]") || wrong.text("[role=alert]") == "" {
		t.Errorf("a known address answers %q, an unknown one %q",
			wrong.text("[role=alert]"), unknown.text("[role=alert]"))
	}
	if kept, _ := wrong.find("input[name=email]").Attr("value"); kept != supportEmail {
		t.Errorf("the address is to be typed again: %q", kept)
	}
	for _, form := range []url.Values{
		{},
		{"email": {strings.Repeat("a", 5000)}, "password": {strings.Repeat("b", 5000)}},
	} {
		if got := b.post(paths.SignIn, form).Status; got != http.StatusUnauthorized {
			t.Errorf("%.40q answers %d, want 401", form.Encode(), got)
		}
	}
	b.get(paths.Home).wantStatus(t, http.StatusSeeOther)
}

func TestSignInLimits(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.stranger()
	for range 5 {
		b.signIn(supportEmail, "wrong password").wantStatus(t, http.StatusUnauthorized)
	}
	// Even the correct password has to wait now, and waiting is enough.
	b.signIn(supportEmail, password).wantStatus(t, http.StatusTooManyRequests)
	r.ahead.Store(int64(16 * time.Minute))
	b.signIn(supportEmail, password).wantStatus(t, http.StatusSeeOther)
}

// Wrong attempts lock the account only for unknown browsers; a browser that signed in
// before, and a session that re-authenticates, are not affected.
func TestStrangersDoNotLockOutAKnownBrowser(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	session, owner, stranger := r.signedIn(), r.signedIn(), r.stranger()
	owner.post(paths.SignOut, nil).wantStatus(t, http.StatusSeeOther)
	for range 5 {
		stranger.signIn(supportEmail, "wrong password").wantStatus(t, http.StatusUnauthorized)
	}
	stranger.signIn(supportEmail, password).wantStatus(t, http.StatusTooManyRequests)
	owner.signIn(supportEmail, password).wantStatus(t, http.StatusSeeOther)
	owner.get(paths.Home).wantStatus(t, http.StatusOK)
	session.post(paths.Confirm, url.Values{"password": {password}}).
		wantStatus(t, http.StatusSeeOther)
	stranger.signIn(supportEmail, password).wantStatus(t, http.StatusTooManyRequests)
}

// Someone who has the password but no code cannot keep the owner from entering one.
func TestStrangersDoNotUseUpTheOwnersCodes(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	r.still()
	owner, thief := r.signedIn(), r.stranger()
	secret, _ := owner.enrol()
	r.pass(time.Minute)
	for range 5 {
		thief.signIn(supportEmail, password).wantStatus(t, http.StatusSeeOther)
		thief.post(paths.SignInCode, url.Values{"code": {"000000"}}).
			wantStatus(t, http.StatusUnauthorized)
	}
	code := url.Values{"code": {r.appCode(secret)}}
	thief.post(paths.SignInCode, code).wantStatus(t, http.StatusTooManyRequests)
	owner.post(paths.SignOut, nil).wantStatus(t, http.StatusSeeOther)
	owner.signIn(supportEmail, password).wantStatus(t, http.StatusSeeOther)
	owner.post(paths.SignInCode, code).wantStatus(t, http.StatusSeeOther)
	owner.get(paths.Home).wantStatus(t, http.StatusOK)
}

func TestSessionCookie(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	for _, test := range []struct {
		origin, name string
		secure       bool
	}{
		{r.URL, "drawbridge-session", false},
		{"https://bridge.example", "__Host-drawbridge-session", true},
	} {
		c, err := console.New(console.Options{
			DB: r.DB, Operators: r.Operators, Webhooks: r.Webhooks, PublicURL: test.origin,
			Status: api.Status,
		})
		if err != nil {
			t.Fatal(err)
		}
		form := url.Values{"email": {supportEmail}, "password": {password}}.Encode()
		request := httptest.NewRequest(http.MethodPost, paths.SignIn, strings.NewReader(form))
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		recorder := httptest.NewRecorder()
		serve(c).ServeHTTP(recorder, request)
		cookies := recorder.Result().Cookies()
		if len(cookies) != 2 {
			t.Fatalf("%s: %d cookies, want those of the device and the session", test.origin, len(cookies))
		}
		device, cookie := cookies[0], cookies[1]
		if !strings.HasPrefix(device.Name, strings.TrimSuffix(test.name, "session")+"device-") ||
			device.Secure != test.secure || !device.HttpOnly || device.MaxAge < 1 ||
			device.SameSite != http.SameSiteStrictMode || device.Path != "/" || device.Domain != "" {
			t.Errorf("%s: cookie %s", test.origin, device)
		}
		if cookie.Name != test.name || cookie.Secure != test.secure || !cookie.HttpOnly ||
			cookie.SameSite != http.SameSiteLaxMode || cookie.Path != "/" || cookie.Domain != "" {
			t.Errorf("%s: cookie %s", test.origin, cookie)
		}
		hsts := recorder.Header().Get("Strict-Transport-Security") != ""
		if hsts != test.secure {
			t.Errorf("%s: strict transport = %v", test.origin, hsts)
		}
		var tokens []string
		if err := r.DB.Select(&tokens, `SELECT token FROM sessions`); err != nil {
			t.Fatal(err)
		}
		for _, token := range tokens {
			if token == cookie.Value {
				t.Error("the token stands in the table as it is")
			}
		}
	}
}

func TestSignInRenewsTheSession(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.signedIn()
	origin, _ := url.Parse(r.URL)
	before := b.cookie("drawbridge-session")
	b.post(paths.SignOut, nil).wantStatus(t, http.StatusSeeOther)
	b.signIn(supportEmail, password)
	if after := b.cookie("drawbridge-session"); after == before {
		t.Error("a new sign-in goes on with the old token")
	}
	stale := r.stranger()
	stale.client.Jar.SetCookies(origin, []*http.Cookie{{Name: "drawbridge-session", Value: before}})
	stale.get(paths.Home).wantStatus(t, http.StatusSeeOther)
}

// cookie returns the value of a cookie in the browser.
func (b *browser) cookie(name string) string {
	b.Helper()
	origin, err := url.Parse(b.URL)
	b.must(err)
	for _, cookie := range b.client.Jar.Cookies(origin) {
		if cookie.Name == name {
			return cookie.Value
		}
	}
	return ""
}

func TestSessionEnds(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		end  func(r *harness)
	}{
		{"when the user is disabled", func(r *harness) {
			r.do(func(ctx context.Context, tx *postgres.Tx) error {
				_, err := r.Operators.Disable(ctx, tx, supportEmail)
				return err
			})
		}},
		{"when the password is changed", func(r *harness) {
			r.do(func(ctx context.Context, tx *postgres.Tx) error {
				_, err := r.Operators.SetPassword(ctx, tx, supportEmail, "another long password", false)
				return err
			})
		}},
		{"when the table is cleared", func(r *harness) {
			r.exec(`DELETE FROM sessions`)
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			r := newHarness(t)
			b := r.signedIn()
			b.get(paths.Home).wantStatus(t, http.StatusOK)
			test.end(r)
			b.get(paths.Home).wantStatus(t, http.StatusSeeOther)
		})
	}
}

func TestSignOut(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.signedIn()
	left := b.post(paths.SignOut, nil).wantStatus(t, http.StatusSeeOther)
	if got := b.get(left.Location).text("[role=status]"); got != "You are signed out." {
		t.Errorf("after signing out: %q", got)
	}
	b.get(paths.Home).wantStatus(t, http.StatusSeeOther)
	if r.audits("user.sign_out") != 1 {
		t.Error("the sign-out is not in the audit log")
	}
}

func TestNextStaysInside(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	for next, want := range map[string]string{
		"/console/deliveries":      "/console/deliveries",
		"/console?x=1":             "/console?x=1",
		"":                         "/console",
		"https://planted.example/": "/console",
		"//planted.example":        "/console",
		"/\\planted.example":       "/console",
		"/console/../docs":         "/console",
		"/consoleplanted.example":  "/console",
		"/console/\r\nSet-Cookie:": "/console",
		"javascript:planted()":     "/console",
		"/console/\\..\\planted":   "/console",
	} {
		b := r.stranger()
		got := b.post(paths.SignIn, url.Values{
			"email": {supportEmail}, "password": {password}, "next": {next},
		}).Location
		if got != want {
			t.Errorf("next %q leads to %q, want %q", next, got, want)
		}
	}
}

func TestRolesNest(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	for _, role := range []operator.Role{operator.RoleOperator, operator.RoleAdmin} {
		email := string(role) + "@lender.example"
		r.addUser(email, role)
		b := r.stranger()
		b.signIn(email, password)
		b.get(paths.Deliveries).wantStatus(t, http.StatusOK)
	}
}

// Who has just installed the service is told what comes first, on each page that needs it.
func TestAFreshInstallationTellsWhatComesFirst(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.asOperator()
	made, _ := r.subscribe(r.receiver().URL)
	versions := b.get(paths.SubscriptionTab(made.UID.String(), "versions"))
	if versions.find("#diff").Length() > 0 {
		t.Error("a subscription's one version is compared with itself")
	}
	r.Exec(t, `SET LOCAL session_replication_role = replica; -- no trigger keeps what is for good
		TRUNCATE partners, users CASCADE`)
	if got := r.stranger().get(paths.SignIn).text(".notice"); !strings.Contains(got, "user create") {
		t.Errorf("without people, the sign-in says %q", got)
	}
	b = r.asOperator()
	for path, want := range map[string]string{
		paths.SubscriptionNew: paths.PartnerNew, paths.BulkNew: paths.Subscriptions,
	} {
		page := b.get(path)
		if got := page.find(".notice a").AttrOr("href", ""); got != want {
			t.Errorf("%s leads to %q", path, got)
		}
	}
	if got := b.get(paths.ApplicationNew).text("main"); !strings.Contains(got, "no merchant yet") {
		t.Errorf("without a merchant, the form of an application says %q", got)
	}
}
