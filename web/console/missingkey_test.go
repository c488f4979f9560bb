package console_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"drawbridge/internal/secret"
	"drawbridge/internal/webhook"
	"drawbridge/views"
)

// What is sealed by a key that the server lacks is named with the key and with what
// to do; the subscription is still listed and can be deleted.
func TestMissingKeyIsNamed(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	delivery, _ := r.delivered()
	lost := r.Webhooks.Keys.Current()
	r.Webhooks.Keys = keysAnew(r)
	b := r.asOperator()
	uid := delivery.SubscriptionUID.String()
	for path, status := range map[string]int{
		views.SubscriptionTab(uid, views.TabVersions):      http.StatusOK,
		views.SubscriptionPath(uid):                        http.StatusOK,
		views.SubscriptionTab(uid, views.TabConfiguration): http.StatusOK,
	} {
		text := b.get(path).wantStatus(t, status).text("main")
		for _, want := range []string{lost, "DRAWBRIDGE_SECRETS_KEY"} {
			if !strings.Contains(text, want) {
				t.Errorf("%s says %q, want %q", path, text, want)
			}
		}
	}
	b.get(views.DeliveryPath(delivery.UID.String())).wantStatus(t, http.StatusOK)
	list := b.get(views.PathSubscriptions).wantStatus(t, http.StatusOK)
	address := list.find("main a[href='" + views.SubscriptionPath(uid) + "']")
	if address.Length() == 0 {
		t.Error("the list leaves out the subscription")
	}
	s, err := r.Webhooks.Subscription(t.Context(), delivery.SubscriptionUID)
	r.must(err)
	page := b.get(views.SubscriptionAct(uid, "edit")).wantStatus(t, http.StatusOK)
	form := edit(page)
	refused := b.post(views.SubscriptionAct(uid, "edit"), form).wantStatus(t, http.StatusBadRequest)
	if refused.find("#headers-fault").Length() != 1 {
		t.Error("headers that nobody can see were replaced without asking")
	}
	form.Set("headers_replace", "yes")
	form.Set("secret_mode", "generate")
	b.post(views.SubscriptionAct(uid, "edit"), form).wantStatus(t, http.StatusSeeOther)
	if s, err = r.Webhooks.Subscription(t.Context(), s.UID); err != nil || s.Unopened != "" {
		t.Errorf("with secret and headers given anew it is %+v, %v", s, err)
	}
	r.Webhooks.Keys = keysAnew(r)
	b.post(views.SubscriptionAct(uid, "delete"), url.Values{"confirm": {views.HostOf(s.URL)}}).
		wantStatus(t, http.StatusSeeOther)
	if s, err = r.Webhooks.Subscription(t.Context(), s.UID); err != nil ||
		s.State != webhook.StateDeleted {
		t.Errorf("deleted without its key it is %s (%v)", s.State, err)
	}
}

// keysAnew is a ring without any key that sealed something.
func keysAnew(r *harness) *secret.Keyring {
	r.Helper()
	keys, err := secret.ParseKeyring(secret.GenerateKey())
	r.must(err)
	return keys
}

// What is damaged breaks no page of the subscription, and each says what to do.
func TestDamagedSecretBreaksNoPage(t *testing.T) {
	t.Parallel()
	for _, column := range []string{"secret_sealed", "headers_sealed"} {
		t.Run(column, func(t *testing.T) {
			t.Parallel()
			r := newHarness(t)
			made, value := r.subscribe(r.receiver().URL)
			_, err := r.DB.ExecContext(t.Context(), `UPDATE subscriptions SET `+column+` = 'v1.damaged'`)
			r.must(err)
			b, uid := r.asOperator(), made.UID.String()
			for _, tab := range []string{"activity", "configuration", "secret", "health", "versions"} {
				page := b.get(views.SubscriptionTab(uid, tab)).wantStatus(t, http.StatusOK)
				if !strings.Contains(page.text("main"), "is damaged") {
					t.Errorf("the tab %s does not say it", tab)
				}
			}
			for _, act := range []string{"edit", "rotate", "pause", "delete", "test"} {
				b.get(views.SubscriptionAct(uid, act)).wantStatus(t, http.StatusOK)
			}
			b.get(views.RestorePath(uid, "1")).wantStatus(t, http.StatusOK)
			want := http.StatusOK
			if column == "secret_sealed" {
				want = http.StatusConflict
			}
			b.post(views.SubscriptionAct(uid, "compare"), url.Values{"candidate": {value.Reveal()}}).
				wantStatus(t, want)
			form := edit(b.get(views.SubscriptionAct(uid, "edit")))
			form.Set("secret_mode", "generate")
			form.Set("headers_replace", "yes")
			b.post(views.SubscriptionAct(uid, "edit"), form).wantStatus(t, http.StatusSeeOther)
			if healed := r.onlySubscription(); healed.Unopened != "" {
				t.Errorf("given anew it says %q", healed.Unopened)
			}
		})
	}
}
