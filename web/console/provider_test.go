package console_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/oauth2-proxy/mockoidc"

	"drawbridge/internal/operator"
	"drawbridge/internal/secret"
	"drawbridge/views"
	"drawbridge/web/console"
)

// provided is a room whose console also signs people in through a provider that
// runs beside it.
type provided struct {
	*room
	idp *mockoidc.MockOIDC
}

func newProvided(t *testing.T, domains ...string) *provided {
	t.Helper()
	r := newRoom(t)
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
		Name: "Lender ID", Domains: domains, ReturnURL: r.URL + views.PathSignInReturn,
	})
	c, err := console.New(options)
	r.must(err)
	server.Config.Handler = serve(c)
	server.Start()
	t.Cleanup(server.Close)
	t.Cleanup(c.Close)
	return &provided{r, idp}
}

// leave goes from the sign-in to the provider and returns the way back.
func (p *provided) leave(b *browser, user *mockoidc.MockUser) string {
	p.Helper()
	p.idp.QueueUser(user)
	button, _ := b.get(views.PathSignIn + "?next=/console/emails").
		find("a[href^='" + views.PathSignInProvider + "']").Attr("href")
	if button == "" {
		button = views.PathSignInProvider
	}
	away := b.get(button).wantStatus(p.T, http.StatusSeeOther)
	request, err := http.NewRequestWithContext(p.Context(), http.MethodGet, away.Location, http.NoBody)
	p.must(err)
	response, err := b.client.Do(request)
	p.must(err)
	p.must(response.Body.Close())
	return strings.TrimPrefix(response.Header.Get("Location"), p.URL)
}

func (p *provided) signIn(b *browser, user *mockoidc.MockUser) answer {
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
	b.get(views.PathAccount).wantStatus(t, http.StatusOK)
	// From now on the account at the provider counts, not its address.
	moved := p.stranger()
	p.signIn(moved, person("sub-1", "sam.ortega@lender.example", false)).
		wantStatus(t, http.StatusSeeOther)
	if got := moved.get(views.PathAccount).text(".menu-head"); !strings.Contains(got, supportEmail) {
		t.Errorf("signed in as %q", got)
	}
	thief := p.stranger()
	p.signIn(thief, person("sub-2", supportEmail, true)).wantStatus(t, http.StatusUnauthorized)
	thief.get(views.PathHome).wantStatus(t, http.StatusSeeOther)
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
		b.get(views.PathHome).wantStatus(t, http.StatusSeeOther)
	}
	b := p.stranger()
	p.signIn(b, person("f", "new@Welcome.example", true)).wantStatus(t, http.StatusSeeOther)
	b.get(views.PathHome).wantStatus(t, http.StatusOK)
	b.get(views.PathPeople).wantStatus(t, http.StatusForbidden)
	if p.audits("user.create") != 1 {
		t.Error("the new user is not in the audit log")
	}
	_, err := p.DB.ExecContext(t.Context(), `UPDATE users SET disabled_at = now()`)
	p.must(err)
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
	p.stranger().get(views.PathSignInReturn+"?"+query.Encode()).
		wantStatus(t, http.StatusUnauthorized)
	b.get(back).wantStatus(t, http.StatusSeeOther)
	b.get(views.PathHome).wantStatus(t, http.StatusOK)
	other := p.stranger()
	p.leave(other, user)
	other.get(back).wantStatus(t, http.StatusUnauthorized)
	other.get(views.PathHome).wantStatus(t, http.StatusSeeOther)
}

func TestTheSecondFactorIsAskedForAfterTheProvider(t *testing.T) {
	t.Parallel()
	p := newProvided(t)
	p.signedIn().enrol()
	b := p.stranger()
	in := p.signIn(b, person("sub-1", supportEmail, true)).wantStatus(t, http.StatusSeeOther)
	if !strings.HasPrefix(in.Location, views.PathSignInCode) {
		t.Errorf("the provider leads to %q", in.Location)
	}
	b.get(views.PathHome).wantStatus(t, http.StatusSeeOther)
}

func TestAProviderThatIsDown(t *testing.T) {
	t.Parallel()
	p := newProvided(t)
	b := p.stranger()
	p.idp.QueueError(&mockoidc.ServerError{Code: http.StatusInternalServerError, Error: "down"})
	down := b.get(views.PathSignInProvider).wantStatus(t, http.StatusConflict)
	if !strings.Contains(down.text("[role=alert]"), "password") {
		t.Errorf("the page says %q", down.text("[role=alert]"))
	}
	b.signIn(supportEmail, password).wantStatus(t, http.StatusSeeOther)
}
