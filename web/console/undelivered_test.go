package console_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/uuid"

	"drawbridge/views/paths"
)

// An application's page says at the top which webhook was not delivered, until a re-send
// was.
func TestApplicationPointsToWhatDidNotArrive(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b, page := r.signedIn(), paths.To(paths.Application, r.application.String())
	delivery, _ := r.delivered(status(http.StatusNotFound), status(http.StatusOK))
	if got := b.get(page).text(".notice-warn"); got != "" {
		t.Errorf("a delivery that is tried again is told as %q", got)
	}
	r.fail(delivery)
	shown := b.get(page).wantStatus(t, http.StatusOK)
	if got := shown.text(".notice-warn"); !strings.Contains(got, "did not arrive") ||
		!strings.Contains(got, "Application status changed") {
		t.Errorf("the page says %q", got)
	}
	why := paths.To(paths.Delivery, delivery.UID.String())
	if href, _ := shown.find(".notice-warn a").Attr("href"); href != why {
		t.Errorf("the link leads to %q", href)
	}
	b.post(why+"/resend", url.Values{
		"reason": {"it is back"}, "token": {uuid.NewString()},
	}).wantStatus(t, http.StatusSeeOther)
	if b.get(page).text(".notice-warn") == "" {
		t.Error("the notice goes before the re-send arrives")
	}
	r.work()
	if got := b.get(page).text(".notice-warn"); got != "" {
		t.Errorf("after the re-send arrived the page says %q", got)
	}
}
