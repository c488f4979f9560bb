package console_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"drawbridge/views/paths"
)

// A delivery whose body retention has removed says so, and a re-send is refused
// in the same words.
func TestDeliveryWhoseBodyWasRemoved(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.signedIn()
	delivery, _ := r.delivered()
	r.exec(`
		UPDATE events SET body = '', body_removed_at = now() WHERE event_uid = $1`, delivery.EventUID)
	page := b.get(paths.To(paths.Delivery, delivery.UID.String())).wantStatus(t, http.StatusOK)
	if got := page.text("#body-sent"); !strings.Contains(got, "Removed by retention") {
		t.Errorf("the body's panel says %q", got)
	}
	if page.find("button[data-copy^='curl ']").Length() != 0 {
		t.Error("a curl command without the body is offered")
	}
	answer := b.post(paths.To(paths.Resend, delivery.UID.String()),
		url.Values{"reason": {"asked for"}}).
		wantStatus(t, http.StatusConflict)
	if got := answer.text("body"); !strings.Contains(got, "was removed on") {
		t.Errorf("the re-send's refusal says %q", got)
	}
}
