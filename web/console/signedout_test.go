package console_test

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/PuerkitoBio/goquery"
	"github.com/google/uuid"

	"drawbridge/internal/lending"
	"drawbridge/internal/operator"
	"drawbridge/internal/postgres"
	"drawbridge/internal/postgres/pgtest"
	"drawbridge/views/paths"
)

// A form that is sent after the session has ended is kept by the page that says so, and
// sent from there after signing in: it is the same form, which acts once.
func TestAFormOutlivesItsSession(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.asOperator()
	path := paths.PartnerNew
	form := url.Values{"name": {`Sunvolt "Energy"`}, "token": {uuid.NewString()}}
	r.Exec(t, `DELETE FROM user_sessions`)
	kept := b.post(path, form).wantStatus(t, http.StatusUnauthorized)
	again := kept.find("form[data-again]")
	if action, _ := again.Attr("action"); action != path {
		t.Errorf("the kept form is sent to %q, want %q", action, path)
	}
	sent := url.Values{}
	for _, input := range again.Find("input").EachIter() {
		sent.Add(input.AttrOr("name", ""), input.AttrOr("value", ""))
	}
	if sent.Encode() != form.Encode() {
		t.Errorf("the page keeps %v, want %v", sent, form)
	}
	if kept.find(`a[target=_blank][href="`+paths.SignIn+`"]`).Length() != 1 {
		t.Error("the page does not lead to the sign-in")
	}
	b.signIn("olga@lender.example", password)
	b.post(path, sent).wantStatus(t, http.StatusSeeOther)
	b.post(path, sent).wantStatus(t, http.StatusSeeOther)
	var made int
	r.must(r.DB.Get(&made, `SELECT count(*) FROM partners WHERE name = $1`, form.Get("name")))
	if made != 1 {
		t.Errorf("%d partners were made, want 1", made)
	}
	// Passwords are not repeated on the page.
	secret := r.stranger().post(paths.Password, url.Values{"new": {"correct horse"}})
	if secret.find("[data-again]").Length() != 0 {
		t.Error("a password is repeated by the page of an error")
	}
}

// TestAFormActsForItsUserOnly sends a form of one user after another one has signed in by the same
// browser, as in a second tab.
func TestAFormActsForItsUserOnly(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.asOperator()
	action, form := b.get(paths.PartnerNew).wantStatus(t, http.StatusOK).formValues(t)
	form.Set("name", "Sunvolt South")
	const other = "otto@lender.example"
	r.addUser(other, operator.RoleOperator)
	b.signIn(other, password).wantStatus(t, http.StatusSeeOther)
	refused := b.post(action, form).wantStatus(t, http.StatusConflict).text("main")
	if !strings.Contains(refused, "made for another user") || !strings.Contains(refused, other) {
		t.Errorf("the page says %q", refused)
	}
	if made := r.count(`SELECT count(*) FROM partners WHERE name = $1`, form.Get("name")); made != 0 {
		t.Errorf("%d partners were made, want 0", made)
	}
	b.fillIn(paths.PartnerNew, map[string]string{"name": "Sunvolt South"})
	if made := r.count(`SELECT count(*) FROM partners WHERE name = $1`, form.Get("name")); made != 1 {
		t.Errorf("%d partners were made by the other's own form, want 1", made)
	}
}

// TestSecretsOfAFormAreGivenAgain sends a form with secrets after the session has ended:
// the page keeps everything else, and asks for the secrets.
func TestSecretsOfAFormAreGivenAgain(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.asOperator()
	const typed = "typed-by-the-operator-1"
	form := url.Values{
		"url": {"https://hooks.example.com/x"}, "secret_mode": {"paste"}, "secret": {typed},
		"header_name":  {"x-api-key", "x-region", "x-empty"},
		"header_value": {typed + "2", "north", ""}, "header_kind": {"secret", "plain", "secret"},
	}
	r.Exec(t, `DELETE FROM user_sessions`)
	kept := b.post(paths.SubscriptionNew, form).wantStatus(t, http.StatusUnauthorized)
	if strings.Contains(kept.Raw, typed) {
		t.Error("the page repeats a secret")
	}
	if said := kept.text("form[data-again]"); !strings.Contains(said, "no secret is: give it again") {
		t.Errorf("the page says %q", said)
	}
	asked := kept.find("form[data-again] input[type=password][required]")
	if names := asked.Map(func(_ int, field *goquery.Selection) string {
		return field.AttrOr("name", "")
	}); !slices.Equal(names, []string{"header_value", "secret"}) {
		t.Errorf("the page asks for %q", names)
	}
	headers := kept.find("form[data-again] input[name=header_value]")
	if values := headers.Map(func(_ int, field *goquery.Selection) string {
		return field.AttrOr("value", "")
	}); !slices.Equal(values, []string{"", "north", ""}) {
		t.Errorf("the values of the headers are %q", values)
	}
}

// TestNewSecretIsShownToItsMaker signs another user in where a secret was just made: only
// the user who made it may see it.
func TestNewSecretIsShownToItsMaker(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	made, _ := r.subscribe("https://hooks.example.com/x")
	rotated := func(b *browser) answer {
		t.Helper()
		return b.post(paths.To(paths.SubscriptionRotate, made.UID.String()), url.Values{
			"secret_mode": {"generate"}, "overlap": {"1h0m0s"}, "reason": {"lost"},
		}).wantStatus(t, http.StatusSeeOther)
	}
	b := r.asOperator()
	shown := b.get(rotated(b).Location).wantStatus(t, http.StatusOK)
	if !strings.Contains(shown.Raw, "whsec_") {
		t.Error("who made a secret does not see it")
	}
	place := rotated(b).Location
	b.signIn(supportEmail, password)
	for range 2 {
		shown = b.get(place).wantStatus(t, http.StatusOK)
		if strings.Contains(shown.Raw, "whsec_") {
			t.Error("who signs in next sees the new secret")
		}
		b.signIn("olga@lender.example", password)
	}
}

// A form that waits while its user's access is ended changes nothing: whoever ended the
// access need not check again.
func TestAFormEndsWithTheAccessOfItsUser(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	for name, end := range map[string]func(
		ctx context.Context, tx *postgres.Tx, user operator.User,
	) error{
		"disabled": func(ctx context.Context, tx *postgres.Tx, user operator.User) error {
			_, err := r.Operators.Disable(ctx, tx, user.Email)
			return err
		},
		"another role": func(ctx context.Context, tx *postgres.Tx, user operator.User) error {
			_, err := r.Operators.SetRole(ctx, tx, user.UID, operator.RoleSupport)
			return err
		},
		"signed out": func(ctx context.Context, tx *postgres.Tx, user operator.User) error {
			return r.Operators.EndSessions(ctx, tx, user.UID)
		},
	} {
		address := strings.ReplaceAll(name, " ", "-") + "@lender.example"
		r.addUser(address, operator.RoleOperator)
		b := r.stranger()
		b.signIn(address, password).wantStatus(t, http.StatusSeeOther)
		to, values := b.get(changePath(r.application, "status", "to", "Closed")).formValues(t)
		answered := make(chan answer, 1)
		r.do(func(ctx context.Context, tx *postgres.Tx) error {
			_, err := r.Applications.ReadLocked(ctx, tx, r.application, uuid.Nil)
			if err != nil {
				return err
			}
			go func() { answered <- b.post(to, values) }()
			pgtest.WaitForLock(t, r.DB)
			r.do(func(ctx context.Context, tx *postgres.Tx) error {
				user, err := operator.LockUser(ctx, tx, address)
				if err != nil {
					return err
				}
				return end(ctx, tx, user)
			})
			return nil
		})
		late := (<-answered).wantStatus(t, http.StatusUnauthorized)
		if got := late.text("main"); !strings.Contains(got, "Nothing was saved") {
			t.Errorf("%s: the answer says %q", name, got)
		}
		if got := r.Get(t, r.application).Status; got != lending.StatusApproved {
			t.Fatalf("%s: the application is %s", name, got)
		}
		if got := r.audits("application.status"); got != 0 {
			t.Errorf("%s: %d entries are in the audit log", name, got)
		}
	}
}
