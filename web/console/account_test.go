package console_test

import (
	"context"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/pquerna/otp/totp"

	"drawbridge/internal/operator"
	"drawbridge/internal/postgres"
	"drawbridge/views/paths"
)

// still stops the clock at the beginning of a step of one-time codes.
func (r *harness) still() {
	start := time.Now().Truncate(30 * time.Second)
	r.DB.Now = func() time.Time { return start.Add(time.Duration(r.ahead.Load())) }
}

func (r *harness) pass(d time.Duration) { r.ahead.Add(int64(d)) }

// appCode returns the code that an authenticator app with the secret shows now.
func (r *harness) appCode(secret string) string {
	r.Helper()
	code, err := totp.GenerateCode(strings.ReplaceAll(secret, " ", ""), r.DB.Now())
	r.must(err)
	return code
}

// enrol sets up the signed-in user's second factor, using only the pages.
func (b *browser) enrol() (secret string, recovery []string) {
	b.Helper()
	begun := b.post(paths.SecondBegin, nil).wantStatus(b.T, http.StatusSeeOther)
	page := b.get(begun.Location).wantStatus(b.T, http.StatusOK)
	secret = page.text(".shown-once code")
	codes := b.post(paths.SecondFactor, url.Values{"code": {b.appCode(secret)}}).
		wantStatus(b.T, http.StatusOK)
	return secret, strings.Fields(codes.text(".codes"))
}

func TestSecondFactorByThePages(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	r.still()
	b := r.signedIn()
	b.get(paths.SecondFactor).wantStatus(t, http.StatusOK)
	b.get(paths.SecondFactorQR).wantStatus(t, http.StatusNotFound)
	b.post(paths.SecondFactor, url.Values{"code": {"000000"}}).wantStatus(t, http.StatusConflict)
	if r.count(`SELECT count(*) FROM second_factors`) != 0 {
		t.Error("reading the page made a secret")
	}
	b.post(paths.SecondBegin, nil).wantStatus(t, http.StatusSeeOther)
	picture := b.get(paths.SecondFactorQR).wantStatus(t, http.StatusOK)
	if !strings.HasPrefix(picture.Raw, "\x89PNG") ||
		picture.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("the picture: %v", picture.Header)
	}
	wrong := b.post(paths.SecondFactor, url.Values{"code": {"000000"}}).
		wantStatus(t, http.StatusBadRequest)
	if !strings.Contains(wrong.text("#code-fault"), "clock is right") {
		t.Errorf("a wrong first code is told %q", wrong.text("#code-fault"))
	}
	secret, recovery := b.enrol()
	if len(recovery) != 10 || r.audits("user.second_factor_on") != 1 {
		t.Fatalf("%d recovery codes, %d audit entries", len(recovery), r.audits("user.second_factor_on"))
	}
	b.get(paths.Home).wantStatus(t, http.StatusOK)
	r.pass(time.Minute)

	other := r.stranger()
	asked := other.post(paths.SignIn, url.Values{
		"email": {supportEmail}, "password": {password}, "next": {"/console/emails"},
	}).wantStatus(t, http.StatusSeeOther)
	if !strings.HasPrefix(asked.Location, paths.SignInCode) {
		t.Fatalf("after the password: %q", asked.Location)
	}
	other.get(paths.Home).wantStatus(t, http.StatusSeeOther)
	form := other.get(asked.Location).wantStatus(t, http.StatusOK)
	next, _ := form.find("input[name=next]").Attr("value")
	refused := other.post(paths.SignInCode, url.Values{"code": {"000000"}, "next": {next}}).
		wantStatus(t, http.StatusUnauthorized)
	if !strings.Contains(refused.text("[role=alert]"), "wrong or was used before") {
		t.Errorf("a wrong code is told %q", refused.text("[role=alert]"))
	}
	code := r.appCode(secret)
	in := other.post(paths.SignInCode, url.Values{"code": {code}, "next": {next}}).
		wantStatus(t, http.StatusSeeOther)
	if in.Location != "/console/emails" {
		t.Errorf("after the code: %q", in.Location)
	}
	other.get(paths.Home).wantStatus(t, http.StatusOK)

	replay := r.stranger()
	replay.signIn(supportEmail, password)
	replay.post(paths.SignInCode, url.Values{"code": {code}}).
		wantStatus(t, http.StatusUnauthorized)
	replay.post(paths.SignInCode, url.Values{"code": {recovery[0]}}).
		wantStatus(t, http.StatusSeeOther)
	got := replay.get(paths.Account).text("main")
	if !strings.Contains(got, "9 recovery codes") ||
		!strings.Contains(got, "You used a recovery code") {
		t.Errorf("the account page says %q", got)
	}
}

// An enrolment belongs to its session, ends with the password, and begins and ends with a
// re-authentication.
func TestAnEnrolmentIsItsSessionsOwn(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	r.still()
	here, there := r.signedIn(), r.signedIn()
	here.post(paths.SecondBegin, nil).wantStatus(t, http.StatusSeeOther)
	secret := func(b *browser) string { return b.get(paths.SecondFactor).text(".shown-once code") }
	begun := secret(here)
	if begun == "" || secret(there) != "" {
		t.Errorf("begun here: %t, shown there: %t", begun != "", secret(there) != "")
	}
	code := url.Values{"code": {r.appCode(begun)}}
	there.get(paths.SecondFactorQR).wantStatus(t, http.StatusNotFound)
	there.post(paths.SecondFactor, code).wantStatus(t, http.StatusConflict)
	here.post(paths.Password, url.Values{
		"current": {password}, "password": {"a phrase of my own"}, "again": {"a phrase of my own"},
	}).wantStatus(t, http.StatusSeeOther)
	if secret(here) != "" {
		t.Error("the enrolment outlives the password")
	}
	here.post(paths.SecondFactor, code).wantStatus(t, http.StatusConflict)

	r.pass(operator.ProofLife + time.Minute)
	asked := here.post(paths.SecondBegin, nil).wantStatus(t, http.StatusSeeOther)
	if !strings.HasPrefix(asked.Location, paths.Confirm) || secret(here) != "" {
		t.Errorf("without a fresh proof it leads to %q", asked.Location)
	}
	here.post(paths.Confirm, url.Values{"password": {"a phrase of my own"}}).
		wantStatus(t, http.StatusSeeOther)
	here.post(paths.SecondBegin, nil).wantStatus(t, http.StatusSeeOther)
	begun = secret(here)
	again := here.post(paths.SecondBegin, nil).wantStatus(t, http.StatusSeeOther)
	if begun == "" || again.Location != paths.SecondFactor || secret(here) != begun {
		t.Error("begun again it is another one")
	}
	r.pass(operator.ProofLife + time.Minute)
	asked = here.post(paths.SecondFactor, url.Values{"code": {r.appCode(begun)}}).
		wantStatus(t, http.StatusSeeOther)
	if !strings.HasPrefix(asked.Location, paths.Confirm) || secret(here) != "" {
		t.Errorf("after a quarter of an hour it leads to %q", asked.Location)
	}
	if r.count(`SELECT count(*) FROM second_factors`) != 0 {
		t.Error("there is a second factor")
	}
}

func TestACodeDoesNotWaitForEver(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	r.still()
	secret, _ := r.signedIn().enrol()
	r.pass(time.Minute)
	b := r.stranger()
	b.signIn(supportEmail, password)
	r.pass(11 * time.Minute)
	late := b.post(paths.SignInCode, url.Values{"code": {r.appCode(secret)}}).
		wantStatus(t, http.StatusSeeOther)
	if late.Location != paths.SignIn+"?why=code" {
		t.Errorf("a late code leads to %q", late.Location)
	}
	if nobody := r.stranger().get(paths.SignInCode); nobody.Status != http.StatusSeeOther {
		t.Errorf("without a password the code page answers %d", nobody.Status)
	}
	b = r.stranger()
	b.signIn(supportEmail, password)
	r.do(func(ctx context.Context, tx *postgres.Tx) error {
		_, err := r.Operators.SetPassword(ctx, tx, supportEmail, "another long phrase", false)
		return err
	})
	b.post(paths.SignInCode, url.Values{"code": {r.appCode(secret)}}).
		wantStatus(t, http.StatusSeeOther)
	b.get(paths.Home).wantStatus(t, http.StatusSeeOther)
}

func TestARoleThatNeedsASecondFactor(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	r.still()
	b := r.signedIn()
	r.do(func(ctx context.Context, tx *postgres.Tx) error {
		_, err := r.Operators.SecondFactors().Require(ctx, tx, []operator.Role{operator.RoleSupport})
		return err
	})
	for _, path := range []string{paths.Home, paths.Deliveries, paths.Account} {
		if led := b.get(path); led.Location != paths.SecondFactor {
			t.Errorf("%s leads to %q before the factor is set up", path, led.Location)
		}
	}
	b.fragment().get(paths.Deliveries).wantStatus(t, http.StatusForbidden)
	r.pass(operator.ProofLife + time.Minute)
	asked := b.post(paths.SecondBegin, nil).wantStatus(t, http.StatusSeeOther)
	b.get(asked.Location).wantStatus(t, http.StatusOK)
	b.post(paths.Confirm, url.Values{"password": {password}}).wantStatus(t, http.StatusSeeOther)
	b.post(paths.Preferences, url.Values{"theme": {"dark"}}).wantStatus(t, http.StatusSeeOther)
	b.enrol()
	b.get(paths.Home).wantStatus(t, http.StatusOK)
	b.post(paths.SecondOff, nil).wantStatus(t, http.StatusConflict)
}

func TestChangePassword(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	r.DB.SetMaxOpenConns(1) // requests that wait for a second connection would block each other
	b, other := r.signedIn(), r.signedIn()
	const chosen = "a phrase of my own"
	form := func(current, next, again string) url.Values {
		return url.Values{"current": {current}, "password": {next}, "again": {again}}
	}
	for name, test := range map[string]struct {
		form    url.Values
		problem string
	}{
		"wrong":         {form("wrong password", chosen, chosen), "#current-fault"},
		"short":         {form(password, "short", "short"), "#password-fault"},
		"common":        {form(password, "Password1234!", "Password1234!"), "#password-fault"},
		"the same":      {form(password, password, password), "#password-fault"},
		"not repeated":  {form(password, chosen, chosen+"x"), "#again-fault"},
		"the own name":  {form(password, "Sam Ortega 2026", "Sam Ortega 2026"), "#password-fault"},
		"nothing typed": {url.Values{}, "#current-fault"},
	} {
		page := b.post(paths.Password, test.form).wantStatus(t, http.StatusBadRequest)
		if page.text(test.problem) == "" {
			t.Errorf("%s: no fault at %s", name, test.problem)
		}
		if strings.Contains(page.Raw, chosen) || strings.Contains(page.Raw, password) {
			t.Errorf("%s: the page holds a password", name)
		}
	}
	b.post(paths.Password, form(password, chosen, chosen)).wantStatus(t, http.StatusSeeOther)
	b.get(paths.Home).wantStatus(t, http.StatusOK)
	other.get(paths.Home).wantStatus(t, http.StatusSeeOther)
	if r.audits("user.password_change") != 1 {
		t.Error("the change is not in the audit log")
	}
	r.stranger().signIn(supportEmail, chosen).wantStatus(t, http.StatusSeeOther)
}

func TestSessionList(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b, phone, desk := r.signedIn(), r.stranger(), r.signedIn()
	phone.header.Set("User-Agent", "Mozilla/5.0 (iPhone; CPU) Version/17.0 Safari/604.1")
	phone.signIn(supportEmail, password)
	page := b.get(paths.Account).wantStatus(t, http.StatusOK)
	if got := page.find("tr[id^=session-]").Length(); got != 3 {
		t.Fatalf("%d sessions are listed, want 3", got)
	}
	row := page.find("tr:contains('Safari on iPhone')")
	if row.Length() != 1 || page.find(".tag:contains('this one')").Length() != 1 {
		t.Error("the phone or the present session cannot be told apart")
	}
	end, _ := row.Find("form").Attr("action")
	b.post(end, nil).wantStatus(t, http.StatusSeeOther)
	phone.get(paths.Home).wantStatus(t, http.StatusSeeOther)
	desk.get(paths.Home).wantStatus(t, http.StatusOK)
	b.post(end, nil).wantStatus(t, http.StatusNotFound)
	b.post(paths.SessionsEnd, nil).wantStatus(t, http.StatusSeeOther)
	desk.get(paths.Home).wantStatus(t, http.StatusSeeOther)
	here := b.get(paths.Account).wantStatus(t, http.StatusOK).find("tr[id^=session-]")
	uid := strings.TrimPrefix(here.AttrOr("id", ""), "session-")
	b.post(paths.To(paths.SessionEnd, uid), nil).wantStatus(t, http.StatusSeeOther)
	b.get(paths.Home).wantStatus(t, http.StatusSeeOther)
}

func TestSessionsIdleAndGrowOld(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.signedIn()
	r.pass(operator.SessionIdle + time.Minute)
	b.get(paths.Home).wantStatus(t, http.StatusSeeOther)
	b = r.signedIn()
	for range 12 {
		r.pass(59 * time.Minute)
		b.get(paths.Home).wantStatus(t, http.StatusOK)
	}
	r.pass(59 * time.Minute)
	b.get(paths.Home).wantStatus(t, http.StatusSeeOther)
}

// TestPollsLetASessionIdle leaves a page polling because its stream fails: polls are answered
// only until the session expires as idle, which a user's request would have prevented.
func TestPollsLetASessionIdle(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.signedIn()
	page := b.fragment()
	page.header.Set("X-Poll", "true")
	for range 2 {
		r.pass(59 * time.Minute)
		page.get(paths.Deliveries).wantStatus(t, http.StatusOK)
	}
	r.pass(3 * time.Minute)
	page.get(paths.Deliveries).wantStatus(t, http.StatusUnauthorized)
}

func TestRiskyActionsWantAFreshProof(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.admin()
	r.pass(operator.ProofLife + time.Minute)
	invitation := url.Values{"email": {"bo@lender.example"}, "name": {"Bo"}, "role": {"support"}}
	if got := b.get(paths.PersonNew).wantStatus(t, http.StatusSeeOther).Location; got !=
		paths.Confirm+"?next=%2Fconsole%2Fpeople%2Fnew" {
		t.Errorf("the form leads to %q before anything is typed", got)
	}
	const ask = paths.Here + "?proof=needed" // which scripts do before they send a form
	b.get(ask).wantStatus(t, http.StatusForbidden)
	b.get(paths.Here).wantStatus(t, http.StatusNoContent)
	b.header.Set("Referer", r.URL+paths.PersonNew)
	asked := b.post(paths.PersonNew, invitation).wantStatus(t, http.StatusSeeOther)
	if want := paths.Confirm + "?next=%2Fconsole%2Fpeople%2Fnew"; asked.Location != want {
		t.Fatalf("an old proof leads to %q, want %q", asked.Location, want)
	}
	if r.audits("user.create") != 0 {
		t.Fatal("somebody was invited without a fresh proof")
	}
	page := b.get(asked.Location).wantStatus(t, http.StatusOK)
	next, _ := page.find("input[name=next]").Attr("value")
	b.post(paths.Confirm, url.Values{"password": {"wrong password"}, "next": {next}}).
		wantStatus(t, http.StatusUnauthorized)
	back := b.post(paths.Confirm, url.Values{"password": {password}, "next": {next}}).
		wantStatus(t, http.StatusSeeOther)
	if back.Location != paths.PersonNew {
		t.Errorf("back to %q", back.Location)
	}
	b.get(ask).wantStatus(t, http.StatusNoContent)
	for _, path := range []string{
		paths.PersonNew, paths.To(paths.Person, r.uidOf(supportEmail)), paths.Settings,
	} {
		if b.get(path).wantStatus(t, http.StatusOK).find("form[data-proof]").Length() != 1 {
			t.Errorf("%s does not say which form needs a fresh proof", path)
		}
	}
	b.post(paths.PersonNew, invitation).wantStatus(t, http.StatusOK)
}

var oncePattern = regexp.MustCompile(`^[a-z0-9]{6}(-[a-z0-9]{6}){3}$`)

func TestInvitation(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.admin()
	wrong := b.post(paths.PersonNew, url.Values{"email": {supportEmail}, "role": {"root"}}).
		wantStatus(t, http.StatusBadRequest)
	for _, field := range []string{"#ask-name-fault", "#ask-role-fault"} {
		if wrong.text(field) == "" {
			t.Errorf("no fault at %s", field)
		}
	}
	if kept, _ := wrong.find("#ask-email").Attr("value"); kept != supportEmail {
		t.Errorf("the address is kept as %q", kept)
	}
	shown := b.post(paths.PersonNew, url.Values{
		"email": {"bo@lender.example"}, "name": {"Bo <b>"}, "role": {"operator"},
	}).wantStatus(t, http.StatusOK)
	once := shown.text(".shown-once code")
	if !oncePattern.MatchString(once) {
		t.Fatalf("the one-time password is %q", once)
	}
	var leaks int
	r.must(r.DB.Get(&leaks, `SELECT count(*) FROM audit_log WHERE after::text LIKE $1`, "%"+once+"%"))
	if leaks != 0 || r.audits("user.create") != 1 {
		t.Errorf("%d entries hold the password, %d tell of the invitation",
			leaks, r.audits("user.create"))
	}
	bo := r.stranger()
	bo.signIn("bo@lender.example", once).wantStatus(t, http.StatusSeeOther)
	if led := bo.get(paths.Deliveries); led.Location != paths.Password {
		t.Errorf("with a one-time password deliveries lead to %q", led.Location)
	}
	page := bo.get(paths.Password).wantStatus(t, http.StatusOK)
	if !strings.Contains(page.text("main [role=status]"), "Choose a password of your own") {
		t.Errorf("the page says %q", page.text("main"))
	}
	bo.post(paths.Password, url.Values{
		"current": {once}, "password": {"a phrase of my own"}, "again": {"a phrase of my own"},
	}).wantStatus(t, http.StatusSeeOther)
	bo.get(paths.Deliveries).wantStatus(t, http.StatusOK)
	r.stranger().signIn("bo@lender.example", once).wantStatus(t, http.StatusUnauthorized)
}
