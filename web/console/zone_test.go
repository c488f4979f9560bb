package console_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"drawbridge/views/paths"
	"drawbridge/views/ui"
)

func TestTimesAreInTheReadersZone(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.signedIn()
	made := deliverAll(r)
	created := func() string {
		return b.get(paths.Deliveries).text("#d-" + ui.RowID(made[0].UID) + " time")
	}
	if got := created(); !strings.HasSuffix(got, " UTC") {
		t.Errorf("before the browser told its zone a row says %q", got)
	}
	tests := []struct{ zone, suffix string }{
		{"auto:America/Phoenix", " MST"},
		{"Asia/Kolkata", " IST"},
		{"Mars/Olympus", " IST"}, // no such zone: the choice stays
		{"Local", " IST"},
		{"../../etc/passwd", " IST"},
		{"UTC", " UTC"},
	}
	for _, test := range tests {
		b.post(paths.Preferences, url.Values{
			"zone": {test.zone}, "back": {paths.Deliveries},
		}).wantStatus(t, http.StatusSeeOther)
		if got := created(); !strings.HasSuffix(got, test.suffix) {
			t.Errorf("in the zone %s a row says %q, want it to end with%s", test.zone, got, test.suffix)
		}
	}
	b.post(paths.Preferences, url.Values{"zone": {"auto:America/Phoenix"}})
	page := b.get(paths.To(paths.Delivery, made[1].UID.String()))
	if got := page.text("#moment-event time"); !strings.HasSuffix(got, " MST") {
		t.Errorf("a delivery's page says %q", got)
	}
	if got := page.find("#zone option[selected]").Text(); got != "Browser's own (America/Phoenix)" {
		t.Errorf("the menu says %q", got)
	}
}
