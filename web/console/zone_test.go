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
		{"auto:localtime", " IST"},
		{"posixrules", " IST"},
		{"right/Asia/Tokyo", " IST"},
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

// If the times in a list's address lack a zone, the zone is added, and the rest is kept.
func TestAnAddressGetsAZone(t *testing.T) {
	t.Parallel()
	b := newHarness(t).signedIn()
	b.post(paths.Preferences, url.Values{"zone": {"Asia/Kolkata"}})
	blank := paths.Deliveries + "?since=2020-01-01T09:00&state=failed&until=+"
	if led := b.get(b.get(blank).Location); led.Status != http.StatusOK {
		t.Errorf("with a blank end it leads on to %s", led.Location)
	}
	asked := "?event=document.sent&since=2020-01-01T09:00&state=failed&tail=1"
	led := b.get(paths.Deliveries+asked).wantStatus(t, http.StatusSeeOther).Location
	want := strings.Replace(asked, "09:00", "09%3A00%3A00%2B05%3A30", 1)
	if led != paths.Deliveries+want {
		t.Errorf("led to %s, want %s", led, want)
	}
	b.get(led).wantStatus(t, http.StatusOK)
}

// A filter's times are in its form's zone, whatever was chosen in another tab since.
func TestAFilterIsReadInTheZoneThatItStates(t *testing.T) {
	t.Parallel()
	b := newHarness(t).signedIn()
	for _, path := range []string{paths.Deliveries, paths.Audit, paths.Home} {
		b.post(paths.Preferences, url.Values{"zone": {"Asia/Kolkata"}})
		stated := b.get(path).find(".filter-form [name=zone]").AttrOr("value", "")
		b.post(paths.Preferences, url.Values{"zone": {"America/New_York"}})
		shown := b.get(path + "?" + url.Values{
			"zone": {stated}, "since": {"2026-11-20T09:00"},
		}.Encode())
		if shown.Location != "" {
			shown = b.get(shown.Location)
		}
		since := shown.find("main [name=since]").AttrOr("value", "")
		if since != "2026-11-19T22:30" {
			t.Errorf("%s: nine o'clock in %q is %s in New York", path, stated, since)
		}
	}
}

// Times are in the zone in which the form was shown, whatever was chosen in another tab
// since, and a form that is shown again keeps that zone.
func TestAFormIsReadInTheZoneThatItStates(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.signedIn()
	made, _ := r.subscribe("https://hooks.example/")
	opened := b.get(paths.BulkNew).find("main [name=zone]").AttrOr("value", "")
	for _, test := range []struct{ stated, preferred, scope string }{
		{opened, "America/New_York", "2026-11-21T04:00:00Z"},
		{"", "America/New_York", "2026-11-21T09:00:00Z"}, // it names no zone
		{"Local", "America/New_York", "2026-11-21T09:00:00Z"},
		{"Asia/Kolkata", "UTC", "2026-11-20T22:30:00Z"},
	} {
		b.post(paths.Preferences, url.Values{"zone": {test.preferred}})
		form := url.Values{
			"kind": {"recover"}, "subscription": {made.UID.String()}, "since": {"2026-11-21T04:00"},
			"zone": {test.stated},
		}
		form.Set("until", "soon")
		shown := b.post(paths.BulkNew, form).wantStatus(t, http.StatusBadRequest)
		form.Set("until", "2026-11-21T17:00")
		zone, _ := shown.find("main [name=zone]").Attr("value")
		if form.Set("zone", zone); !strings.Contains(shown.text("main"), "In the time zone "+zone+".") {
			t.Errorf("%+v: the form says another zone than %q", test, zone)
		}
		r.Exec(t, `DELETE FROM bulk_resends`)
		b.begin(form)
		var since string
		r.must(r.DB.Get(&since, `SELECT scope->>'since' FROM bulk_resends`))
		if since != test.scope {
			t.Errorf("%+v: it begins at %s", test, since)
		}
	}
}
