package console_test

import (
	"fmt"
	"net/http"
	pathlib "path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/PuerkitoBio/goquery"
	"github.com/google/uuid"

	"drawbridge/internal/webhook/delivery"
	"drawbridge/views/paths"
	"drawbridge/views/ui"
)

// rowIDs returns the ids of the deliveries in a list, in order.
func (a answer) rowIDs() []string {
	return a.find("main .table tbody a.lead").Map(func(_ int, link *goquery.Selection) string {
		href, _ := link.Attr("href")
		return pathlib.Base(href)
	})
}

func uids(deliveries []delivery.Delivery) []string {
	var texts []string
	for _, sent := range deliveries {
		texts = append(texts, sent.UID.String())
	}
	return texts
}

// deliverAll creates three deliveries: pending, retrying and delivered, in this order.
func deliverAll(r *harness) []delivery.Delivery {
	r.Helper()
	endpoint := r.receiver(status(http.StatusOK), status(http.StatusServiceUnavailable))
	r.subscribe(endpoint.URL)
	for _, status := range []string{"Approved", "Pend Clearance"} {
		r.publish(status)
		r.work()
	}
	return r.publish("Closed")
}

func TestDeliveryList(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.signedIn()
	if empty := b.get(paths.Deliveries).text(".empty"); !strings.Contains(
		empty, "No deliveries yet") {
		t.Errorf("an empty log says %q", empty)
	}
	made := deliverAll(r)
	page := b.get(paths.Deliveries).wantStatus(t, http.StatusOK)
	if got := page.rowIDs(); !slices.Equal(got, uids(made)) {
		t.Fatalf("rows %v, want %v", got, uids(made))
	}
	var chips []string
	page.find("main .table .chip").Each(func(_ int, chip *goquery.Selection) {
		chips = append(chips, strings.TrimSpace(chip.Text()))
	})
	if got := strings.Join(chips, " "); got != "Pending Retrying Delivered" {
		t.Errorf("states %s", got)
	}
	if row := page.text("#d-" + ui.RowID(made[1].UID)); !strings.Contains(row, "HTTP 503") ||
		!strings.Contains(row, "Pend Clearance") || !strings.Contains(row, "Sunvolt Energy") {
		t.Errorf("the retrying row says %q", row)
	}
	if got := page.text(".table-tools .soft"); got != "3 deliveries" {
		t.Errorf("count %q", got)
	}
	part := b.fragment().get(paths.Deliveries)
	if part.find("html head title").Length() != 0 || len(part.rowIDs()) != 0 ||
		part.find("tbody tr").Length() != 3 {
		t.Errorf("a script gets %.120q, want the region alone", part.Raw)
	}
}

func TestDeliveryFilters(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.signedIn()
	made := deliverAll(r)
	pending, retrying, delivered := made[0], made[1], made[2]
	hour := func(by time.Duration) string {
		return time.Now().UTC().Add(by).Format(time.RFC3339)
	}
	tests := []struct {
		name, value string
		want        []delivery.Delivery
	}{
		{"state", "retrying", []delivery.Delivery{retrying}},
		{"state", "delivered", []delivery.Delivery{delivered}},
		{"state", "failed", nil},
		{"state", "waiting", made[:2]},
		{"partner", r.Partner.String(), made},
		{"partner", uuid.NewString(), nil},
		{"merchant", r.Merchant.String(), made},
		{"merchant", uuid.NewString(), nil},
		{"event_uid", retrying.EventUID.String(), []delivery.Delivery{retrying}},
		{"code", "503", []delivery.Delivery{retrying}},
		{"code", "5xx", []delivery.Delivery{retrying}},
		{"code", "2XX", []delivery.Delivery{delivered}},
		{"code", "404", nil},
		{"error", "http_5xx", []delivery.Delivery{retrying}},
		{"error", "timeout", nil},
		{"test", "no", made},
		{"test", "yes", nil},
		{"resend", "no", made},
		{"resend", "yes", nil},
		{"slow", "yes", nil},
		{"range", "1h", made},
		{"range", "30d", made},
		{"event", "application.status.update", made},
		{"event", "task.created", nil},
		{"subscription", pending.SubscriptionUID.String(), made},
		{"subscription", uuid.NewString(), nil},
		{"application", r.application.String(), made},
		{"application", uuid.NewString(), nil},
		{"since", hour(-time.Hour), made},
		{"since", hour(time.Hour), nil},
		{"until", hour(-time.Hour), nil},
	}
	for _, test := range tests {
		page := b.get(paths.Where(paths.Deliveries, test.name, test.value)).wantStatus(t, http.StatusOK)
		if got := page.rowIDs(); !slices.Equal(got, uids(test.want)) {
			t.Errorf("%s=%s lists %v, want %v", test.name, test.value, got, uids(test.want))
		}
		if len(test.want) == 0 && !strings.Contains(page.text(".empty"), "No delivery matches") {
			t.Errorf("%s=%s without a match says %q", test.name, test.value, page.text(".empty"))
		}
		wantActive := 1
		if test.name == "state" {
			wantActive = 0 // the tabs show it
		}
		if got := page.find(".filter-on").Length(); got != wantActive {
			t.Errorf("%s=%s shows %d filters in force, want %d", test.name, test.value, got, wantActive)
		}
	}
}

func TestWrongFilters(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.signedIn()
	deliverAll(r)
	tests := []struct{ query, field, want string }{
		{"state=resting", "", "no such state"},
		{"event=draw.made", "event", "no such event"},
		{"subscription=17", "subscription", "not an id"},
		{"application=%3Cscript%3E", "application", "not an id"},
		{"since=yesterday", "since", "not a time"},
		{"range=soon", "range", "no such range"},
		{"code=OK", "code", "not an HTTP status"},
		{"code=99999", "code", "not an HTTP status"},
		{"error=bad", "error", "no such error"},
		{"test=perhaps", "test", "no such test"},
		{"partner=me", "partner", "not an id"},
		{"until=2026-13-01T00:00", "until", "not a time"},
		{"since=0001-01-01T00:00:00Z", "since", "must be after"},
		{"until=9999-12-31T23:00:00-02:00", "until", "must be after"},
		{"since=2026-11-21T10:00&until=2026-11-21T09:00", "until", "must come after"},
		{"cursor=xyz", "", "position in the list"},
	}
	for _, test := range tests {
		page := b.get(paths.Deliveries+"?"+test.query).wantStatus(t, http.StatusBadRequest)
		if got := page.text("main .empty[role=alert]"); !strings.Contains(got, test.want) {
			t.Errorf("%s says %q, want %q", test.query, got, test.want)
		}
		if len(page.rowIDs()) != 0 {
			t.Errorf("%s lists deliveries although the filter is wrong", test.query)
		}
		if test.field == "" {
			continue
		}
		if invalid, _ := page.find("#filter-" + test.field).Attr("aria-invalid"); invalid != "true" &&
			page.find("#filter-"+test.field+"-fault").Length() != 1 {
			t.Errorf("%s does not mark the field %s", test.query, test.field)
		}
	}
}

func TestDeliveryPagesFollowEachOther(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	endpoint := r.receiver()
	r.subscribe(endpoint.URL)
	var made []delivery.Delivery
	for i := range 120 {
		made = r.publish(fmt.Sprintf("Status %d", i))
	}
	b := r.signedIn()
	var seen []string
	path := paths.Deliveries + "?event=application.status.update"
	for pages := 0; path != ""; pages++ {
		page := b.get(path).wantStatus(t, http.StatusOK)
		if newest := page.find(".pager a:contains(Newest)").Length(); (newest == 1) != (pages > 0) {
			t.Errorf("page %d has %d links to the newest", pages, newest)
		}
		seen = append(seen, page.rowIDs()...)
		path, _ = page.find(".pager a[rel=next]").Attr("href")
	}
	if !slices.Equal(seen, uids(made)) {
		t.Errorf("the pages list %d deliveries, want all %d once in their order", len(seen), len(made))
	}
}

// TestNewDeliveriesWait checks that rows being read do not move: new rows are counted and
// shown on demand.
func TestNewDeliveriesWait(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.signedIn()
	before := deliverAll(r)
	poll, _ := b.get(paths.Deliveries).find("#live").Attr("data-poll")
	part := b.fragment().get(poll)
	if part.find(".news").Length() != 0 || part.find("tbody tr").Length() != len(before) {
		t.Errorf("without news the region says %q", part.text(".table-tools .soft"))
	}
	r.publish("Declined")
	part = b.fragment().get(poll)
	if got := part.text(".news"); got != "1 new delivery, show" {
		t.Errorf("news %q", got)
	}
	if got := part.find("tbody tr").Length(); got != len(before) {
		t.Errorf("%d rows, want the %d that were shown", got, len(before))
	}
	href, _ := part.find(".news").Attr("href")
	if got := b.get(href).rowIDs(); len(got) != len(before)+1 {
		t.Errorf("the news lead to %d rows, want %d", len(got), len(before)+1)
	}
}

func TestSubscriptionList(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.signedIn()
	got := b.get(paths.Subscriptions).text(".empty")
	if !strings.Contains(got, "No subscriptions yet") {
		t.Errorf("without subscriptions: %q", got)
	}
	endpoint := r.receiver()
	made, value := r.subscribe(endpoint.URL + "/hook")
	page := b.get(paths.Subscriptions).wantStatus(t, http.StatusOK)
	row := page.text("#s-" + made.UID.String())
	for _, want := range []string{"Active", "Sunvolt Energy", "All events"} {
		if !strings.Contains(row, want) {
			t.Errorf("the row %q does not say %q", row, want)
		}
	}
	if strings.Contains(page.Raw, value.Reveal()) ||
		strings.Contains(page.Raw, "the-partners-own-key") {
		t.Error("the page shows a secret")
	}
	b.get(paths.Subscriptions+"?cursor=xyz").wantStatus(t, http.StatusBadRequest)
}

// fail uses up the attempts of a delivery.
func (r *harness) fail(sent delivery.Delivery) {
	r.Helper()
	r.exec(`
		UPDATE deliveries
		   SET state = 'failed', attempt_count = 3, next_attempt_at = NULL, queued = false,
		       last_error_class = 'timeout', finished_at = $2
		 WHERE delivery_uid = $1`, sent.UID, r.DB.Now())
}
