package console_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/oauth2-proxy/mockoidc"

	"drawbridge/internal/operator"
	"drawbridge/internal/postgres/pgtest"
	"drawbridge/internal/secret"
	"drawbridge/views/paths"
	"drawbridge/web/console"
)

// provided is a harness whose console also signs users in through a provider that runs
// alongside it.
type provided struct {
	*harness
	idp *mockoidc.MockOIDC
}

func newProvided(t *testing.T, domains ...string) *provided {
	t.Helper()
	r := newHarness(t)
	idp, err := mockoidc.Run()
	r.must(err)
	t.Cleanup(func() { r.must(idp.Shutdown()) })
	server := httptest.NewUnstartedServer(nil)
	r.URL = "http://" + server.Listener.Addr().String()
	config := idp.Config()
	options := r.options
	options.PublicURL = r.URL
	options.Provider = operator.NewProvider(operator.ProviderConfig{
		Issuer: idp.Issuer(), ClientID: config.ClientID, Secret: secret.New(config.ClientSecret),
		Name: "Lender ID", Domains: domains, ReturnURL: r.URL + paths.SignInReturn,
	})
	c, err := console.New(options)
	r.must(err)
	server.Config.Handler = serve(c)
	server.Start()
	t.Cleanup(server.Close)
	t.Cleanup(c.Close)
	return &provided{r, idp}
}

// leave goes from the sign-in to the provider and returns the callback address.
func (p *provided) leave(b *browser, user mockoidc.User) string {
	p.Helper()
	next, _ := b.get(paths.SignIn + "?next=/console/emails").
		find("form[action='" + paths.SignInProvider + "'] input[name=next]").Attr("value")
	return p.follow(b, user, next)
}

// follow sends the form that leads to the provider, goes there and returns the callback
// address.
func (p *provided) follow(b *browser, user mockoidc.User, next string) string {
	p.Helper()
	p.idp.QueueUser(user)
	away := b.post(paths.SignInProvider, url.Values{"next": {next}}).
		wantStatus(p.T, http.StatusOK)
	address, _ := away.find("main a.button").Attr("href")
	if away.Header.Get("Refresh") != "0;url="+address {
		p.Errorf("the page leads to %q and the header to %q", address, away.Header.Get("Refresh"))
	}
	request, err := http.NewRequestWithContext(p.Context(), http.MethodGet, address, http.NoBody)
	p.must(err)
	response, err := b.client.Do(request)
	p.must(err)
	p.must(response.Body.Close())
	return strings.TrimPrefix(response.Header.Get("Location"), p.URL)
}

func (p *provided) signIn(b *browser, user mockoidc.User) answer {
	p.Helper()
	return b.get(p.leave(b, user))
}

func person(subject, email string, verified bool) *mockoidc.MockUser {
	return &mockoidc.MockUser{
		Subject: subject, Email: email, EmailVerified: verified, PreferredUsername: "somebody",
	}
}

func TestSignInThroughTheProvider(t *testing.T) {
	t.Parallel()
	p := newProvided(t)
	b := p.stranger()
	in := p.signIn(b, person("sub-1", "SAM@lender.example", true)).
		wantStatus(t, http.StatusSeeOther)
	if in.Location != "/console/emails" {
		t.Errorf("after the provider: %q", in.Location)
	}
	b.get(paths.Account).wantStatus(t, http.StatusOK)
	// From now on the provider's account id counts, not its e-mail address.
	moved := p.stranger()
	p.signIn(moved, person("sub-1", "sam.ortega@lender.example", false)).
		wantStatus(t, http.StatusSeeOther)
	if got := moved.get(paths.Account).text(".menu-head"); !strings.Contains(got, supportEmail) {
		t.Errorf("signed in as %q", got)
	}
	thief := p.stranger()
	p.signIn(thief, person("sub-2", supportEmail, true)).wantStatus(t, http.StatusUnauthorized)
	thief.get(paths.Home).wantStatus(t, http.StatusSeeOther)
	if got := p.audits("user.sign_in"); got != 2 {
		t.Errorf("%d sign-ins are in the audit log", got)
	}
}

func TestTheProviderAloneLetsNobodyIn(t *testing.T) {
	t.Parallel()
	p := newProvided(t, "welcome.example")
	for name, user := range map[string]*mockoidc.MockUser{
		"not invited":                  person("a", "eve@elsewhere.example", true),
		"invited, address unverified":  person("b", supportEmail, false),
		"welcome, address unverified":  person("c", "eve@welcome.example", false),
		"a domain that looks welcome":  person("d", "eve@not-welcome.example", true),
		"a welcome domain as the name": person("e", "welcome.example@elsewhere.example", true),
	} {
		b := p.stranger()
		refused := p.signIn(b, user).wantStatus(t, http.StatusUnauthorized)
		if !strings.Contains(refused.text("[role=alert]"), "Ask an admin") {
			t.Errorf("%s is told %q", name, refused.text("[role=alert]"))
		}
		b.get(paths.Home).wantStatus(t, http.StatusSeeOther)
	}
	long := person("g", strings.Repeat("x", 250)+"@welcome.example", true)
	refused := p.signIn(p.stranger(), long).wantStatus(t, http.StatusUnauthorized)
	if said := refused.text("[role=alert]"); !strings.Contains(said, "cannot be used here") {
		t.Errorf("with an address that is too long: %q", said)
	}
	b := p.stranger()
	p.signIn(b, person("f", "new@Welcome.example", true)).wantStatus(t, http.StatusSeeOther)
	b.get(paths.Home).wantStatus(t, http.StatusOK)
	b.get(paths.People).wantStatus(t, http.StatusForbidden)
	if p.audits("user.create") != 1 {
		t.Error("the new user is not in the audit log")
	}
	p.exec(`UPDATE users SET disabled_at = now()`)
	p.signIn(p.stranger(), person("f", "new@welcome.example", true)).
		wantStatus(t, http.StatusUnauthorized)
}

func TestTheWayBackBelongsToItsBrowser(t *testing.T) {
	t.Parallel()
	p := newProvided(t)
	user := person("sub-1", supportEmail, true)
	b := p.stranger()
	back := p.leave(b, user)
	p.stranger().get(back).wantStatus(t, http.StatusUnauthorized)
	planted, err := url.Parse(back)
	p.must(err)
	query := planted.Query()
	query.Set("state", "planted")
	p.stranger().get(paths.SignInReturn+"?"+query.Encode()).
		wantStatus(t, http.StatusUnauthorized)
	b.get(back).wantStatus(t, http.StatusSeeOther)
	b.get(paths.Home).wantStatus(t, http.StatusOK)
	other := p.stranger()
	p.leave(other, user)
	other.get(back).wantStatus(t, http.StatusUnauthorized)
	other.get(paths.Home).wantStatus(t, http.StatusSeeOther)
}

func TestTheSecondFactorIsAskedForAfterTheProvider(t *testing.T) {
	t.Parallel()
	p := newProvided(t)
	p.signedIn().enrol()
	b := p.stranger()
	in := p.signIn(b, person("sub-1", supportEmail, true)).wantStatus(t, http.StatusSeeOther)
	if !strings.HasPrefix(in.Location, paths.SignInCode) {
		t.Errorf("the provider leads to %q", in.Location)
	}
	b.get(paths.Home).wantStatus(t, http.StatusSeeOther)
}

func TestAProviderThatIsDown(t *testing.T) {
	t.Parallel()
	p := newProvided(t)
	b := p.stranger()
	p.idp.QueueError(&mockoidc.ServerError{Code: http.StatusInternalServerError, Error: "down"})
	down := b.post(paths.SignInProvider, nil).wantStatus(t, http.StatusConflict)
	if !strings.Contains(down.text("[role=alert]"), "password") {
		t.Errorf("the page says %q", down.text("[role=alert]"))
	}
	b.signIn(supportEmail, password).wantStatus(t, http.StatusSeeOther)
}

// asked is a user whose provider states when it authenticated them.
type asked struct {
	*mockoidc.MockUser
	at time.Time
}

// Claims implements mockoidc.User.
func (a asked) Claims(scope []string, claims *mockoidc.IDTokenClaims) (jwt.Claims, error) {
	of, err := a.MockUser.Claims(scope, claims)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(of)
	if err != nil {
		return nil, err
	}
	all := jwt.MapClaims{}
	if err := json.Unmarshal(text, &all); err != nil {
		return nil, err
	}
	all["auth_time"] = a.at.Unix()
	return all, nil
}

// A sign-in cannot be started by a link or by another site's form, and starting one writes
// nothing.
func TestASignInByTheProviderBeginsByOurForm(t *testing.T) {
	t.Parallel()
	p := newProvided(t)
	before := pgtest.Dump(t, p.DB)
	b := p.stranger()
	if got := b.get(paths.SignInProvider); got.Status < http.StatusBadRequest ||
		got.Location != "" || len(got.Header.Values("Set-Cookie")) > 0 {
		t.Errorf("a link is answered %d to %q", got.Status, got.Location)
	}
	b.header.Set("Sec-Fetch-Site", "cross-site")
	b.post(paths.SignInProvider, nil).wantStatus(t, http.StatusForbidden)
	b.header.Set("Sec-Fetch-Site", "same-origin")
	b.post(paths.SignInProvider, nil).wantStatus(t, http.StatusOK)
	b.get(paths.SignInReturn+"?state=x&code=y").wantStatus(t, http.StatusUnauthorized)
	if changed := pgtest.Dump(t, p.DB).Differs(before); len(changed) > 0 {
		t.Errorf("strangers wrote %v", changed)
	}
	p.pass(operator.TicketLife + time.Minute)
	b.header.Del("Sec-Fetch-Site")
	back := p.leave(b, person("sub-1", supportEmail, true))
	p.pass(operator.TicketLife + time.Minute)
	b.get(back).wantStatus(t, http.StatusUnauthorized)
}

// The provider's answer counts as re-authentication only if it is newer than the console's request.
func TestAFreshProofByTheProvider(t *testing.T) {
	t.Parallel()
	p := newProvided(t)
	user := person("sub-1", supportEmail, true)
	b := p.stranger()
	p.signIn(b, user).wantStatus(t, http.StatusSeeOther)
	begin := func() string {
		t.Helper()
		return b.post(paths.SecondBegin, nil).wantStatus(t, http.StatusSeeOther).Location
	}
	if got := begin(); !strings.HasPrefix(got, paths.Confirm) {
		t.Fatalf("a provider that does not say when it asked is a fresh proof: %q", got)
	}
	confirm := b.get(paths.Confirm).wantStatus(t, http.StatusOK)
	if confirm.find("form[action='"+paths.SignInProvider+"']").Length() != 1 {
		t.Fatal("the page offers no provider")
	}
	now := p.DB.Now
	for name, there := range map[string]mockoidc.User{
		"it does not say": user,
		"long ago":        asked{user, now().Add(-time.Hour)},
		"in the future":   asked{user, now().Add(time.Hour)},
	} {
		refused := b.get(p.follow(b, there, paths.Account)).wantStatus(t, http.StatusUnauthorized)
		if !strings.Contains(refused.text("[role=alert]"), "auth_time") {
			t.Errorf("%s: the page says %q", name, refused.text("[role=alert]"))
		}
		if got := begin(); !strings.HasPrefix(got, paths.Confirm) {
			t.Errorf("%s: it is a fresh proof", name)
		}
	}
	back := p.follow(b, asked{user, now()}, paths.Account)
	proved := b.get(back).wantStatus(t, http.StatusSeeOther)
	if got := begin(); proved.Location != paths.Account || got != paths.SecondFactor {
		t.Errorf("a fresh proof leads to %q, and on to %q", proved.Location, got)
	}
	other := b.get(p.follow(b, asked{person("sub-2", "eve@lender.example", true), now()}, ""))
	if other.Status != http.StatusUnauthorized {
		t.Errorf("somebody else's proof answers %d", other.Status)
	}
}

// A flow that began as a sign-in does not re-authenticate a user who signed in meanwhile.
func TestASignInByTheProviderIsNoProof(t *testing.T) {
	t.Parallel()
	p := newProvided(t)
	user := asked{person("sub-1", supportEmail, true), p.DB.Now()}
	b := p.stranger()
	back := p.leave(b, user)
	b.signIn(supportEmail, password).wantStatus(t, http.StatusSeeOther)
	p.pass(operator.ProofLife - operator.TicketLife + time.Minute)
	if got := b.get(back).wantStatus(t, http.StatusSeeOther); got.Location != "/console/emails" {
		t.Errorf("it leads to %q", got.Location)
	}
	p.pass(operator.TicketLife)
	asks := b.post(paths.SecondBegin, nil).wantStatus(t, http.StatusSeeOther)
	if !strings.HasPrefix(asks.Location, paths.Confirm) {
		t.Errorf("the old proof still counts: %q", asks.Location)
	}
}
