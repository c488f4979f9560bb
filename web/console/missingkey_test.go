package console_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"drawbridge/internal/secret"
	"drawbridge/internal/webhook/subscription"
	"drawbridge/views/paths"
	"drawbridge/views/subscriptions"
)

// If the server lacks the key of an encrypted value, the page names the value, the key and
// what to do; the subscription is still listed and can be deleted.
func TestMissingKeyIsNamed(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	delivery, _ := r.delivered()
	lost := r.Webhooks.Subscriptions.Keys.Current()
	r.Webhooks.Subscriptions.Keys = keysAgain(r)
	b := r.asOperator()
	uid := delivery.SubscriptionUID.String()
	for path, status := range map[string]int{
		paths.SubscriptionTab(uid, subscriptions.TabVersions):      http.StatusOK,
		paths.To(paths.Subscription, uid):                          http.StatusOK,
		paths.SubscriptionTab(uid, subscriptions.TabConfiguration): http.StatusOK,
	} {
		text := b.get(path).wantStatus(t, status).text("main")
		for _, want := range []string{lost, "DRAWBRIDGE_SECRETS_KEY"} {
			if !strings.Contains(text, want) {
				t.Errorf("%s says %q, want %q", path, text, want)
			}
		}
	}
	b.get(paths.To(paths.Delivery, delivery.UID.String())).wantStatus(t, http.StatusOK)
	list := b.get(paths.Subscriptions).wantStatus(t, http.StatusOK)
	address := list.find("main a[href='" + paths.To(paths.Subscription, uid) + "']")
	if address.Length() == 0 {
		t.Error("the list leaves out the subscription")
	}
	s, err := r.Webhooks.Subscriptions.Get(t.Context(), delivery.SubscriptionUID)
	r.must(err)
	page := b.get(paths.To(paths.SubscriptionEdit, uid)).wantStatus(t, http.StatusOK)
	form := edit(page)
	refused := b.post(paths.To(paths.SubscriptionEdit, uid), form).wantStatus(t, http.StatusBadRequest)
	if refused.find("#headers-fault").Length() != 1 {
		t.Error("headers that nobody can see were replaced without asking")
	}
	form.Set("headers_replace", "yes")
	form.Set("secret_mode", "generate")
	b.post(paths.To(paths.SubscriptionEdit, uid), form).wantStatus(t, http.StatusSeeOther)
	if s, err = r.Webhooks.Subscriptions.Get(t.Context(), s.UID); err != nil || s.Unopened != "" {
		t.Errorf("with secret and headers given again it is %+v, %v", s, err)
	}
	r.Webhooks.Subscriptions.Keys = keysAgain(r)
	b.post(paths.To(paths.SubscriptionDelete, uid), url.Values{"confirm": {endpointOf(s.URL)}}).
		wantStatus(t, http.StatusSeeOther)
	if s, err = r.Webhooks.Subscriptions.Get(t.Context(), s.UID); err != nil ||
		s.State != subscription.StateDeleted {
		t.Errorf("deleted without its key it is %s (%v)", s.State, err)
	}
}

// The page says if another process has other keys, although this one can decrypt everything.
func TestAProcessWithOtherKeysIsNamed(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	made, _ := r.subscribe(r.receiver().URL)
	r.exec(`UPDATE subscriptions SET stopped_at = '2026-11-28 10:00:00Z'`)
	text := r.asOperator().get(paths.To(paths.Subscription, made.UID.String())).
		wantStatus(t, http.StatusOK).text("main")
	const want = "Stopped since 2026-11-28T10:00:00Z: a process has another DRAWBRIDGE_SECRETS_KEY"
	if !strings.Contains(text, want) {
		t.Errorf("the page says %q", text)
	}
}

// keysAgain returns a keyring without the key of any stored value.
func keysAgain(r *harness) *secret.Keyring {
	r.Helper()
	keys, err := secret.ParseKeyring(secret.GenerateKey())
	r.must(err)
	return keys
}

// A damaged value breaks no page of the subscription, and each page says what to do.
func TestDamagedSecretBreaksNoPage(t *testing.T) {
	t.Parallel()
	for _, column := range []string{"secret_sealed", "headers_sealed"} {
		t.Run(column, func(t *testing.T) {
			t.Parallel()
			r := newHarness(t)
			made, value := r.subscribe(r.receiver().URL)
			r.exec(`UPDATE subscriptions SET ` + column + ` = 'v1.damaged'`)
			b, uid := r.asOperator(), made.UID.String()
			for _, tab := range []string{"activity", "configuration", "secret", "health", "versions"} {
				page := b.get(paths.SubscriptionTab(uid, tab)).wantStatus(t, http.StatusOK)
				if !strings.Contains(page.text("main"), "is damaged") {
					t.Errorf("the tab %s does not say it", tab)
				}
			}
			for _, act := range []string{"edit", "rotate", "pause", "delete", "test"} {
				b.get(paths.To(paths.Subscription, uid)+"/"+act).wantStatus(t, http.StatusOK)
			}
			b.get(paths.Where(paths.To(paths.SubscriptionRestore, uid), "version", "1")).wantStatus(t,
				http.StatusOK)
			want := http.StatusOK
			if column == "secret_sealed" {
				want = http.StatusConflict
			}
			b.post(paths.To(paths.SubscriptionCompare, uid), url.Values{"candidate": {value.Reveal()}}).
				wantStatus(t, want)
			form := edit(b.get(paths.To(paths.SubscriptionEdit, uid)))
			form.Set("secret_mode", "generate")
			form.Set("headers_replace", "yes")
			b.post(paths.To(paths.SubscriptionEdit, uid), form).wantStatus(t, http.StatusSeeOther)
			if healed := r.onlySubscription(); healed.Unopened != "" {
				t.Errorf("given again it says %q", healed.Unopened)
			}
		})
	}
}
