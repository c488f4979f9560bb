package console_test

import (
	"net/http"
	"strings"
	"testing"

	"drawbridge/internal/secret"
	"drawbridge/views"
)

// A page whose secret is sealed by a key that the server lacks names the key and
// what to do.
func TestMissingKeyIsNamed(t *testing.T) {
	t.Parallel()
	r := newRoom(t)
	delivery, _ := r.delivered()
	lost := r.Webhooks.Keys.Current()
	others, err := secret.ParseKeyring(secret.GenerateKey())
	r.must(err)
	r.Webhooks.Keys = others
	b := r.signedIn()
	for _, path := range []string{
		views.DeliveryPath(delivery.UID.String()),
		views.SubscriptionPath(delivery.SubscriptionUID.String()),
	} {
		page := b.get(path).wantStatus(t, http.StatusInternalServerError)
		text := page.text("main")
		for _, want := range []string{"A key is missing", lost, "DRAWBRIDGE_SECRETS_KEY"} {
			if !strings.Contains(text, want) {
				t.Errorf("%s says %q, want %q", path, text, want)
			}
		}
	}
}
