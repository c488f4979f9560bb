package console_test

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/uuid"

	"drawbridge/internal/postgres"
	"drawbridge/internal/secret"
	"drawbridge/internal/webhook/sender"
	"drawbridge/internal/webhook/subscription"
	"drawbridge/views/paths"
	"drawbridge/views/subscriptions"
)

// guarded creates a subscription with a token, a secret header and a plain one.
func (r *harness) guarded(address string) subscription.Subscription {
	r.Helper()
	var made subscription.Subscription
	r.do(func(ctx context.Context, tx *postgres.Tx) (err error) {
		made, _, err = r.Webhooks.Subscriptions.Subscribe(ctx, tx, r.Partner, subscription.Settings{
			URL: address, Auth: sender.AuthBearer, Events: []string{subscription.AllEvents},
			Secret: secret.New("the-partners-own-token"),
			Headers: []sender.Header{
				{Name: "x-api-key", Value: "the-partners-own-key"},
				{Name: "x-tenant", Value: "north", Plain: true},
			},
		}, "test")
		return err
	})
	return made
}

// An operator who does not know a partner's token or secret header cannot send it to
// another host, neither by saving nor by the test.
func TestMovingAsksForCredentialsAgain(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.asOperator()
	heard := make(chan http.Header, 10)
	own := r.receiver(func(_ http.ResponseWriter, q *http.Request) { heard <- q.Header })
	made := r.guarded(r.receiver().URL)
	path := paths.To(paths.SubscriptionEdit, made.UID.String())
	form := edit(b.get(path))
	form.Set("url", own.URL)
	for _, act := range []string{"save", "try"} {
		form.Set("act", act)
		page := b.post(path, form).wantStatus(t, http.StatusBadRequest)
		for _, field := range []string{"#secret-fault", "#header-1-value-fault"} {
			if !strings.Contains(page.text(field), "given again") {
				t.Errorf("%s: beside the field stands %q", act, page.text(field))
			}
		}
		if page.find("#header-2-value-fault").Length() != 0 {
			t.Errorf("%s: a plain header is asked for", act)
		}
	}
	if len(heard) != 0 || r.onlySubscription().Version != 1 {
		t.Fatalf("a refused change sent %d requests, or was kept", len(heard))
	}
	form["header_value"][0] = "typed-again"
	form.Set("secret_mode", "paste")
	form.Set("secret", "another-token-typed")
	b.post(path, form).wantStatus(t, http.StatusOK) // still the test
	if got := <-heard; got.Get("authorization") != "Bearer another-token-typed" ||
		got.Get("x-api-key") != "typed-again" || got.Get("x-tenant") != "north" {
		t.Errorf("the test sent %v", got)
	}
	form.Set("act", "save")
	b.post(path, form).wantStatus(t, http.StatusSeeOther)
	if got := r.onlySubscription(); got.URL != own.URL || got.Headers[0].Value != "typed-again" {
		t.Errorf("saved %+v", got)
	}
}

func TestRestoringElsewhereAsksForCredentialsAgain(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.asOperator()
	made := r.guarded("https://old.example/")
	moved, token := "https://new.example/", secret.New("token-of-the-new-host")
	r.do(func(ctx context.Context, tx *postgres.Tx) error {
		_, _, err := r.Webhooks.Subscriptions.Amend(ctx, tx, made.UID, subscription.Patch{
			URL: &moved, Secret: &token, Headers: &[]sender.Header{},
		}, "test")
		return err
	})
	uid := made.UID.String()
	page := b.get(paths.Where(paths.To(paths.SubscriptionRestore, uid), "version", "1")).wantStatus(t,
		http.StatusOK)
	if page.find("#secret").Length() != 1 || page.find("[name=header_name]").Length() != 1 {
		t.Error("the form does not ask for token and header")
	}
	form := url.Values{"version": {"1"}, "base": {"2"}, "reason": {"back"}}
	page = b.post(paths.To(paths.SubscriptionRestore, uid), form).wantStatus(t, http.StatusBadRequest)
	if !strings.Contains(page.text("#secret-fault"), "given again") ||
		!strings.Contains(page.text("#header-0-fault"), "given again") {
		t.Errorf("the refusal says %q", page.text("main"))
	}
	form.Set("secret", "token-of-the-old-host")
	form["header_name"], form["header_value"] = []string{"x-api-key"}, []string{"given again"}
	b.post(paths.To(paths.SubscriptionRestore, uid), form).wantStatus(t, http.StatusSeeOther)
	if got := r.onlySubscription(); got.Version != 3 || got.URL != "https://old.example/" ||
		len(got.Headers) != 2 || got.Headers[0].Value != "given again" {
		t.Errorf("restored %+v", got)
	}
}

// The form shows plain values and asks for the kind; a stored secret does not become
// readable by declaring it plain.
func TestHeadersAreSecretOrPlain(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.asOperator()
	made := r.guarded("https://hooks.example/")
	uid := made.UID.String()
	path := paths.To(paths.SubscriptionEdit, uid)
	page := b.get(path)
	form := edit(page)
	if strings.Join(form["header_kind"], " ") != "secret plain" ||
		strings.Join(form["header_value"], " ") != " north" {
		t.Errorf("the form shows %v of the kinds %v", form["header_value"], form["header_kind"])
	}
	shown := b.get(paths.SubscriptionTab(uid, subscriptions.TabConfiguration))
	if text := shown.text("main"); !strings.Contains(text, "north") ||
		strings.Contains(shown.Raw, "the-partners-own-key") {
		t.Errorf("the page says %q", text)
	}
	form["header_kind"] = []string{"plain", "secret"}
	refused := b.post(path, form).wantStatus(t, http.StatusBadRequest)
	if !strings.Contains(refused.text("#header-1-value-fault"), "again") ||
		strings.Contains(refused.Raw, "the-partners-own-key") {
		t.Errorf("making a stored secret plain says %q", refused.text("#header-1-value-fault"))
	}
	form["header_value"][0] = "given-as-plain"
	b.post(path, form).wantStatus(t, http.StatusSeeOther)
	got := r.onlySubscription().Headers
	if !got[0].Plain || got[0].Value != "given-as-plain" || got[1].Plain || got[1].Value != "north" {
		t.Errorf("headers %#v", got)
	}
	if again := b.get(path); strings.Contains(again.text("#headers")+again.Raw, "north") {
		t.Error("what became secret is still shown")
	}
}

// A save changes only what its form showed: all selected merchants are listed, however
// many, and can be removed.
func TestMoreMerchantsThanTheFormLists(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.asOperator()
	r.exec(`
		INSERT INTO merchants (merchant_uid, partner_uid, name, created_at)
		SELECT gen_random_uuid(), $1, 'Roofs ' || n, now() + n * interval '1 second'
		  FROM generate_series(1, 501) AS n`, r.Partner)
	made, _ := r.subscribe("https://hooks.example/")
	r.do(func(ctx context.Context, tx *postgres.Tx) error {
		chosen := append(r.merchantUIDs("Roofs 1"), r.merchantUIDs("Roofs 501")...)
		_, _, err := r.Webhooks.Subscriptions.Amend(ctx, tx, made.UID,
			subscription.Patch{Merchants: chosen}, "test")
		return err
	})
	path := paths.To(paths.SubscriptionEdit, made.UID.String())
	form := edit(b.get(path))
	form.Set("rate", "7")
	b.post(path, form).wantStatus(t, http.StatusSeeOther)
	if got := r.onlySubscription(); len(got.Merchants) != 2 || got.Rate != 7 {
		t.Errorf("a change of the rate left %d merchants, rate %d", len(got.Merchants), got.Rate)
	}
	form = edit(b.get(path))
	form["merchant"] = []string{r.merchantUIDs("Roofs 501")[0].String()}
	form.Set("rate", "many")
	refused := b.post(path, form).wantStatus(t, http.StatusBadRequest)
	first := "#merchant-" + r.merchantUIDs("Roofs 1")[0].String()
	if refused.find(first+":not([checked])").Length() != 1 {
		t.Error("what was unticked is not offered again")
	}
	form.Set("rate", "8")
	b.post(path, form).wantStatus(t, http.StatusSeeOther)
	if got := r.onlySubscription(); len(got.Merchants) != 1 {
		t.Errorf("unticked, it still covers %d", len(got.Merchants))
	}
}

// Two users edit: the health settings of the first are shown to the second and kept.
func TestHealthRulesAreMerged(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.asOperator()
	made, _ := r.subscribe("https://hooks.example/")
	path := paths.To(paths.SubscriptionEdit, made.UID.String())
	mine := edit(b.get(path))
	theirs := edit(b.get(path))
	theirs.Set("on_failing", "pause")
	theirs.Set("alert_email", "first@lender.example")
	b.post(path, theirs).wantStatus(t, http.StatusSeeOther)
	mine.Set("alert_email", "second@lender.example")
	page := b.post(path, mine).wantStatus(t, http.StatusConflict)
	shown := page.text("#conflict")
	for _, want := range []string{
		"When it fails", "pause it", "first@lender.example", "second@lender.example",
	} {
		if !strings.Contains(shown, want) {
			t.Errorf("the conflict does not say %q: %s", want, shown)
		}
	}
	b.post(path, edit(page)).wantStatus(t, http.StatusSeeOther)
	want := subscription.Watch{Pause: true, AlertEmail: "second@lender.example"}
	if got := r.onlySubscription(); got.Watch != want || got.Version != 3 {
		t.Errorf("merged %+v in version %d", got.Watch, got.Version)
	}
	uid := made.UID.String()
	diff := b.get(paths.Where(paths.To(paths.SubscriptionRestore, uid), "version", "2")).wantStatus(t,
		http.StatusOK).text(".diff-table")
	if !strings.Contains(diff, "Health rules") || !strings.Contains(diff, "first@lender.example") {
		t.Errorf("the restore announces %q", diff)
	}
	b.post(paths.To(paths.SubscriptionRestore, uid), url.Values{"version": {"2"}, "base": {"3"}}).
		wantStatus(t, http.StatusSeeOther)
	if got := r.onlySubscription().Watch; got.AlertEmail != "first@lender.example" {
		t.Errorf("restored %+v", got)
	}
}

// merchantUIDs returns the ids of the merchants with a name.
func (r *harness) merchantUIDs(name string) []uuid.UUID {
	r.Helper()
	var uids []uuid.UUID
	r.must(r.DB.SelectContext(r.Context(), &uids,
		`SELECT merchant_uid FROM merchants WHERE name = $1`, name))
	return uids
}
