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
	r := newRoom(t)
	delivery, _ := r.delivered()
	lost := r.Webhooks.Keys.Current()
	others, err := secret.ParseKeyring(secret.GenerateKey())
	r.must(err)
	r.Webhooks.Keys = others
	b := r.asOperator()
	uid := delivery.SubscriptionUID.String()
	for path, status := range map[string]int{
		views.SubscriptionTab(uid, views.TabVersions):      http.StatusInternalServerError,
		views.SubscriptionPath(uid):                        http.StatusOK,
		views.SubscriptionTab(uid, views.TabConfiguration): http.StatusOK,
		views.SubscriptionAct(uid, "edit"):                 http.StatusConflict,
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
	b.post(views.SubscriptionAct(uid, "edit"), url.Values{"url": {s.URL}}).
		wantStatus(t, http.StatusConflict)
	b.post(views.SubscriptionAct(uid, "delete"), url.Values{"confirm": {views.HostOf(s.URL)}}).
		wantStatus(t, http.StatusSeeOther)
	if s, err = r.Webhooks.Subscription(t.Context(), s.UID); err != nil ||
		s.State != webhook.StateDeleted {
		t.Errorf("deleted without its key it is %s (%v)", s.State, err)
	}
}
