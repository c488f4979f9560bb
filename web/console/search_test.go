package console_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/uuid"

	"drawbridge/views/paths"
)

func searchFor(text string) string {
	return paths.Search + "?" + url.Values{"q": {text}}.Encode()
}

// One hit is the page itself.
func TestSearchLeadsToThePage(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.signedIn()
	made := deliverAll(r)
	delivery := made[0].UID.String()
	for sought, want := range map[string]string{
		delivery:                         paths.To(paths.Delivery, delivery),
		"  " + delivery + "\n":           paths.To(paths.Delivery, delivery),
		strings.ToUpper(delivery):        paths.To(paths.Delivery, delivery),
		made[0].EventUID.String():        paths.To(paths.Event, made[0].EventUID.String()),
		made[0].SubscriptionUID.String(): paths.To(paths.Subscription, made[0].SubscriptionUID.String()),
		made[0].URL:                      paths.To(paths.Subscription, made[0].SubscriptionUID.String()),
		r.application.String():           paths.To(paths.Application, r.application.String()),
		"ANA@example.com":                paths.To(paths.Application, r.application.String()),
		"phoenix":                        paths.To(paths.Merchant, r.Merchant.String()),
		r.Partner.String():               paths.To(paths.Partner, r.Partner.String()),
	} {
		got := b.get(searchFor(sought))
		if got.Status != http.StatusSeeOther || got.Location != want {
			t.Errorf("looking for %q leads to %d %q, want %q", sought, got.Status, got.Location, want)
		}
	}
	old := b.get(paths.Deliveries+"?q=x").wantStatus(t, http.StatusSeeOther)
	if old.Location != searchFor("x") {
		t.Errorf("the old address leads to %q", old.Location)
	}
}

func TestSearchListsWhatItMayBe(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.signedIn()
	page := b.get(searchFor("sunvolt")).wantStatus(t, http.StatusOK)
	if got := page.text("main .hits h2"); got != "Partners Merchants" {
		t.Errorf("groups %q", got)
	}
	for _, nothing := range []string{uuid.NewString(), "hello", "<script>alert(1)</script>", "%"} {
		page = b.get(searchFor(nothing)).wantStatus(t, http.StatusOK)
		if got := page.text("main .empty h2"); got != "No results for “"+nothing+"”" {
			t.Errorf("looking for %q says %q", nothing, got)
		}
		if value, _ := page.find("#find").Attr("value"); value != nothing {
			t.Errorf("the field holds %q, want what was typed", value)
		}
	}
	if got := b.get(paths.Search).text("main .empty h2"); !strings.Contains(got, "Find anything") {
		t.Errorf("without a text: %q", got)
	}
	b.get(searchFor("a\x00b")).wantStatus(t, http.StatusBadRequest)
	part := b.fragment().get(searchFor("deliv")).wantStatus(t, http.StatusOK)
	if href, _ := part.find("a.hit").Attr("href"); href != paths.Deliveries {
		t.Errorf("the palette offers %q for a page's name", href)
	}
	if part.find("html head title").Length() != 0 {
		t.Error("the palette gets a whole page")
	}
	if got := b.fragment().get(searchFor("people")).text(".hit"); got != "" {
		t.Errorf("support is offered %q", got)
	}
}

func TestSignatureDoctor(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.signedIn()
	endpoint := r.receiver()
	_, value := r.subscribe(endpoint.URL)
	made := r.publish("Approved")
	uid := made[0].UID.String()
	page := b.get(paths.To(paths.Delivery, uid))
	href, _ := page.find("a:contains('Signature doctor')").Attr("href")
	if got, _ := b.get(href).find("#doctor-delivery").Attr("value"); got != uid {
		t.Errorf("the doctor is asked about %q", got)
	}
	detail, err := r.Webhooks.Deliveries.Get(r.Context(), made[0].UID)
	r.must(err)
	body := string(detail.Body)
	sum := hmacHex(value.Reveal(), body)
	tests := []struct{ body, signature, want string }{
		{body, sum, "belongs to this body and the current secret"},
		{body, "x-hmac-signature: " + sum, "belongs to this body and the current secret"},
		{body + "\r\n", sum, "other line ends"},
		{strings.ReplaceAll(body, `":`, `": `), sum, "JSON written differently"},
		{body, hmacHex("another", body), "No secret of this subscription"},
		{body, "abc", "not an HMAC-SHA256"},
	}
	for _, test := range tests {
		answer := b.post(paths.Doctor, url.Values{
			"delivery": {uid}, "body": {test.body}, "signature": {test.signature},
		}).wantStatus(t, http.StatusOK)
		if got := answer.text("main .notice"); !strings.Contains(got, test.want) {
			t.Errorf("%q with %q: %q, want %q", test.body, test.signature, got, test.want)
		}
		if strings.Contains(answer.Raw, value.Reveal()) {
			t.Error("the page shows the secret")
		}
	}
	for field, form := range map[string]url.Values{
		"delivery":     {"delivery": {"17"}, "signature": {sum}},
		"subscription": {"subscription": {uuid.NewString()}, "signature": {sum}},
		"signature":    {"delivery": {uid}},
	} {
		answer := b.post(paths.Doctor, form).wantStatus(t, http.StatusBadRequest)
		if answer.find("#doctor-"+field+"-fault").Length() != 1 {
			t.Errorf("%v does not mark the field %s", form, field)
		}
	}
	var audited int
	r.must(r.DB.Get(&audited,
		`SELECT count(*) FROM audit_log WHERE action = 'delivery.examine_signature'`))
	if audited != len(tests) {
		t.Errorf("%d entries in the audit log, want %d", audited, len(tests))
	}
}
