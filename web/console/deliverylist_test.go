package console_test

import (
	"encoding/csv"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"drawbridge/internal/lending"
	"drawbridge/internal/operator"
	"drawbridge/internal/postgres"
	"drawbridge/internal/webhook/delivery"
	"drawbridge/internal/webhook/subscription"
	"drawbridge/views/paths"
)

// A typed time is in the reader's zone, and the resulting address means the same to
// everybody.
func TestTimesOfAFilterAreTheReaders(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.signedIn()
	made := deliverAll(r)
	b.post(paths.Preferences, url.Values{"zone": {"Asia/Kolkata"}})
	kolkata, err := time.LoadLocation("Asia/Kolkata")
	r.must(err)
	now := time.Now().In(kolkata)
	ago := func(d time.Duration) string { return now.Add(-d).Format("2006-01-02T15:04") }
	answer := b.get(paths.Deliveries+"?"+url.Values{
		"since": {ago(time.Hour)}, "until": {ago(-time.Hour)},
	}.Encode()).wantStatus(t, http.StatusSeeOther)
	target, err := url.Parse(answer.Location)
	r.must(err)
	if since := target.Query().Get("since"); !strings.HasSuffix(since, "+05:30") {
		t.Errorf("the address says since %q, want the reader's zone in it", since)
	}
	page := b.get(answer.Location).wantStatus(t, http.StatusOK)
	if got := page.rowIDs(); !slices.Equal(got, uids(made)) {
		t.Errorf("the last hour lists %v, want all", got)
	}
	if value, _ := page.find("#filter-since").Attr("value"); value != ago(time.Hour) {
		t.Errorf("the form shows %q, want %q", value, ago(time.Hour))
	}
	if got := page.text("label[for=filter-since]"); got != "Created from, Asia/Kolkata" {
		t.Errorf("label %q", got)
	}
	// Somebody in another zone sees the same rows.
	b.post(paths.Preferences, url.Values{"zone": {"America/Phoenix"}})
	if got := b.get(answer.Location).rowIDs(); !slices.Equal(got, uids(made)) {
		t.Errorf("in Phoenix the address lists %v", got)
	}
}

func TestSavedViews(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.signedIn()
	links := func(of *browser) []string {
		return strings.Fields(strings.ReplaceAll(strings.Join(of.get(paths.Deliveries).
			find(".view-link").Map(textOf), ","), " ", "_"))
	}
	builtIn := "Failing_now,Failed_of_today,Slow,Tail"
	if got := strings.Join(links(b), ""); got != builtIn {
		t.Errorf("views %s, want %s", got, builtIn)
	}
	save := url.Values{
		"path": {paths.Deliveries}, "filter": {"code=503&range=7d"},
		"name": {"Busy <b>endpoints</b>"},
	}
	answer := b.post(paths.SavedViews, save).wantStatus(t, http.StatusSeeOther)
	if answer.Location != paths.Deliveries+"?code=503&range=7d" {
		t.Errorf("saving leads to %q", answer.Location)
	}
	page := b.get(answer.Location)
	own := page.find(".view-link[aria-current]")
	if own.Length() != 1 || own.Text() != "Busy <b>endpoints</b>" {
		t.Errorf("the view in force is %q", own.Text())
	}
	r.addUser("other@lender.example", operator.RoleSupport)
	other := r.stranger()
	other.signIn("other@lender.example", password)
	if got := strings.Join(links(other), ""); got != builtIn {
		t.Errorf("somebody else sees the views %s", got)
	}
	remove, _ := page.find("button[name=remove]").Attr("value")
	form := url.Values{"path": {paths.Deliveries}, "filter": {""}, "remove": {remove}}
	other.post(paths.SavedViews, form).wantStatus(t, http.StatusNotFound)
	b.post(paths.SavedViews, form).wantStatus(t, http.StatusSeeOther)
	if got := strings.Join(links(b), ""); got != builtIn {
		t.Errorf("after removing there are %s", got)
	}
	r.exec(`
		INSERT INTO saved_views (view_uid, user_uid, name, path, query, created_at)
		SELECT gen_random_uuid(), user_uid, 'view ' || n, $1, '', now()
		  FROM users, generate_series(1, 50) AS n
		 WHERE email = $2`, paths.Deliveries, supportEmail)
	full := url.Values{"path": {paths.Deliveries}, "filter": {"code=503"}, "name": {"view 50"}}
	b.post(paths.SavedViews, full).wantStatus(t, http.StatusSeeOther)
	full.Set("name", "view 51")
	b.post(paths.SavedViews, full).wantStatus(t, http.StatusBadRequest)
	for says, wrong := range map[string]url.Values{
		"There is no list at":                   {"path": {"//evil.example"}, "name": {"x"}},
		"The name must have 1 to 60 characters": {"path": {paths.Deliveries}, "name": {" "}},
	} {
		got := b.post(paths.SavedViews, wrong).wantStatus(t, http.StatusBadRequest).text("main")
		if !strings.Contains(got, says) {
			t.Errorf("%v is refused with %q, want %q", wrong, got, says)
		}
	}
}

func TestExportDeliveries(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.signedIn()
	made := deliverAll(r)
	r.exec(`UPDATE partners SET name = '=cmd|''/C calc''!A0'`)
	file := b.post(paths.DeliveriesCSV, url.Values{"filter": {"state=retrying"}}).
		wantStatus(t, http.StatusOK)
	if got := file.Header.Get("Content-Type"); !strings.HasPrefix(got, "text/csv") {
		t.Errorf("content type %q", got)
	}
	got := file.Header.Get("Content-Disposition")
	if !strings.HasPrefix(got, `attachment; filename="deliveries-`) {
		t.Errorf("disposition %q", got)
	}
	rows, err := csv.NewReader(strings.NewReader(file.Raw)).ReadAll()
	r.must(err)
	if len(rows) != 2 || rows[1][0] != made[1].UID.String() || rows[1][2] != "retrying" {
		t.Fatalf("the file holds %q", rows)
	}
	if got := rows[1][7]; got != `'=cmd|'/C calc'!A0` {
		t.Errorf("the partner's name is written %q", got)
	}
	var audited int
	r.must(r.DB.Get(&audited, `SELECT count(*) FROM audit_log WHERE action = 'delivery.export'
		AND actor = $1 AND after->>'filter' = 'state=retrying'`, supportEmail))
	if audited != 1 {
		t.Errorf("%d entries in the audit log, want 1", audited)
	}
	b.post(paths.DeliveriesCSV, url.Values{"filter": {"state=resting"}}).
		wantStatus(t, http.StatusBadRequest)
	b.get(paths.DeliveriesCSV).wantStatus(t, http.StatusNotFound)
}

// Acting on nothing ticked shows the same list with an explanation.
func TestActsOnDeliveriesNeedSome(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.asOperator()
	for path, want := range map[string]string{
		paths.DeliveriesCancel: "Tick the deliveries to cancel first.",
		paths.BulkNew:          "Tick the deliveries to re-send first.",
	} {
		answer := b.post(path, url.Values{"filter": {"range=7d"}}).wantStatus(t, http.StatusSeeOther)
		if answer.Location != paths.Deliveries+"?range=7d" {
			t.Errorf("%s leads to %q", path, answer.Location)
		}
		if got := b.get(answer.Location).text("main .notice"); !strings.Contains(got, want) {
			t.Errorf("%s: the list says %q", path, got)
		}
	}
}

func TestCancelDeliveries(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	made := deliverAll(r)
	chosen := url.Values{"delivery": uids(made), "filter": {"range=7d"}}
	support := r.signedIn()
	support.post(paths.DeliveriesCancel, chosen).wantStatus(t, http.StatusForbidden)
	if support.get(paths.Deliveries).find("button:contains('Cancel selected')").Length() != 0 {
		t.Error("support is offered what it may not do")
	}
	r.addUser("olga@lender.example", operator.RoleOperator)
	b := r.stranger()
	b.signIn("olga@lender.example", password)
	page := b.post(paths.DeliveriesCancel, chosen).wantStatus(t, http.StatusOK)
	if got := page.find("main a:contains('Keep them')").AttrOr("href", ""); got !=
		paths.Deliveries+"?range=7d" {
		t.Errorf("keeping them leads to %q", got)
	}
	if got := page.text("main .notice"); !strings.Contains(got,
		"cancels 2 waiting deliveries to 1 endpoint") {
		t.Errorf("the question is %q", got)
	}
	chosen.Set("confirmed", "yes")
	page = b.post(paths.DeliveriesCancel, chosen).wantStatus(t, http.StatusBadRequest)
	if got := page.text("#reason-fault"); !strings.Contains(got, "Say why") {
		t.Errorf("without a reason: %q", got)
	}
	chosen.Set("reason", strings.Repeat("Ж", 501))
	b.post(paths.DeliveriesCancel, chosen).wantStatus(t, http.StatusBadRequest)
	overtaken := maps.Clone(chosen)
	overtaken.Set("reason", strings.Repeat("Ж", 500)) // in characters, not in bytes
	chosen.Set("reason", "wrong endpoint")
	answer := b.post(paths.DeliveriesCancel, chosen).wantStatus(t, http.StatusSeeOther)
	if answer.Location != paths.Deliveries+"?range=7d" {
		t.Errorf("it leads back to %q", answer.Location)
	}
	var states []string
	for _, sent := range r.list() {
		states = append(states, string(sent.State))
	}
	if got := strings.Join(states, " "); got != "cancelled cancelled delivered" {
		t.Errorf("states %s", got)
	}
	r.work() // the jobs in the queue find nothing to do
	if after := r.list(); after[0].State != delivery.StateCancelled || after[0].AttemptCount != 0 {
		t.Errorf("a cancelled delivery went out: %+v", after[0])
	}
	var audited int
	r.must(r.DB.Get(&audited, `SELECT count(*) FROM audit_log
		WHERE action = 'delivery.cancel' AND reason = 'wrong endpoint'`))
	if audited != 2 {
		t.Errorf("%d entries in the audit log, want 2", audited)
	}
	late := b.post(paths.DeliveriesCancel, overtaken).wantStatus(t, http.StatusConflict)
	if got := late.text("main"); !strings.Contains(got, "Nothing was cancelled") {
		t.Errorf("whoever comes second reads %q", got)
	}
	delete(chosen, "confirmed")
	b.post(paths.DeliveriesCancel, chosen).wantStatus(t, http.StatusConflict)
}

// "Could not load" is a different screen from "nothing matches".
func TestListThatCannotBeLoaded(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.signedIn()
	deliverAll(r)
	r.exec(`ALTER TABLE deliveries RENAME COLUMN resent_by TO resent_by_gone`)
	page := b.get(paths.Deliveries).wantStatus(t, http.StatusServiceUnavailable)
	if got := page.text("main .empty"); !strings.Contains(got, "could not be loaded") {
		t.Errorf("the page says %q", got)
	}
	if href, _ := page.find("main .empty a").Attr("href"); href != paths.Deliveries {
		t.Errorf("trying again leads to %q", href)
	}
}

// The tail shows new rows at once.
func TestTail(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.signedIn()
	before := deliverAll(r)
	page := b.get(paths.Deliveries)
	tail, _ := page.find(".view-link:contains(Tail)").Attr("href")
	poll, _ := b.get(tail).find("#live").Attr("data-poll")
	r.publish("Declined")
	part := b.fragment().get(poll)
	if got := part.find("tbody tr").Length(); got != len(before)+1 ||
		part.find(".news").Length() != 0 {
		t.Errorf("the tail shows %d rows, want %d", got, len(before)+1)
	}
}

// A delivery opened from a list links to the one before, the one after, and the list.
func TestDeliveriesFollowInTheirList(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	made := deliverAll(r)
	b := r.signedIn()
	b.header.Set("Referer", r.URL+paths.Deliveries+"?range=7d")
	page := b.get(paths.To(paths.Delivery, made[1].UID.String())).wantStatus(t, http.StatusOK)
	b.header.Del("Referer")
	back, _ := page.find(".beside a:contains('Back')").Attr("href")
	newer, _ := page.find(".beside a[rel=prev]").Attr("href")
	older, _ := page.find(".beside a[rel=next]").Attr("href")
	if back != paths.Deliveries+"?range=7d" ||
		!strings.Contains(newer, made[0].UID.String()) || !strings.Contains(older, made[2].UID.String()) {
		t.Errorf("beside it are %q, %q and %q", back, newer, older)
	}
	last := b.get(older).wantStatus(t, http.StatusOK)
	if last.find(".beside a[rel=next]").Length() != 0 ||
		last.find(".beside a[rel=prev]").Length() != 1 {
		t.Errorf("at the end there is %q", last.text(".beside"))
	}
	if b.get(paths.To(paths.Delivery, made[1].UID.String())).find(".beside").Length() != 0 {
		t.Error("a page that was opened from nowhere leads through a list")
	}
}

func TestDeliveryPageExplainsItsSurroundings(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	made := deliverAll(r)
	b := r.signedIn()
	page := b.get(paths.To(paths.Delivery, made[1].UID.String())).wantStatus(t, http.StatusOK)
	if got := page.text("#ledger"); !strings.Contains(got, "It asked for this event") {
		t.Errorf("the ledger says %q", got)
	}
	related := page.find("section[aria-labelledby=related-title] tbody tr")
	if related.Length() != 2 {
		t.Errorf("%d other deliveries of the application, want 2", related.Length())
	}
	_, endpoint, _ := strings.Cut(made[0].URL, "://")
	if text := related.First().Text(); !strings.Contains(text, strings.TrimSuffix(endpoint, "/")) {
		t.Errorf("another delivery of the application does not name its endpoint: %q", text)
	}
	text, _ := page.find("button:contains('Copy for the partner')").Attr("data-copy")
	for _, want := range []string{
		made[1].UID.String(), r.application.String(), "HTTP 503", "State: retrying",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the text for the partner lacks %q:\n%s", want, text)
		}
	}
	if strings.Contains(text, "the-partners-own-key") {
		t.Error("the text for the partner holds a secret")
	}
}

// After a subscription's URL has changed, deliveries to the former URL still show it: to
// the partner, on the page, in the list and in the file.
func TestAttemptsNameTheirOwnURL(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	server := r.receiver(status(http.StatusServiceUnavailable))
	made, _ := r.subscribe(server.URL + "/then")
	r.publish("Approved")
	r.work()
	r.amend(made.UID, subscription.Patch{URL: new(server.URL + "/now")})
	b := r.signedIn()
	uid := r.list()[0].UID.String()
	path := paths.To(paths.Delivery, uid)
	copied := func(page answer) string {
		text, _ := page.find("button:contains('Copy for the partner')").Attr("data-copy")
		return text
	}
	page := b.get(path).wantStatus(t, http.StatusOK)
	then, now := "Sent to "+server.URL+"/then\nAttempt 1", "Sent to "+server.URL+"/now\nAttempt 2"
	if got := copied(page); !strings.Contains(got, then) || strings.Contains(got, "/now") {
		t.Errorf("the text for the partner is %q", got)
	}
	heading := endpointOf(server.URL+"/then") + " (now " + endpointOf(server.URL+"/now") + " )"
	for selector, want := range map[string]string{
		".page-title p": heading, ".facts": "Last sent to " + server.URL + "/then",
	} {
		if got := page.text(selector); !strings.Contains(got, want) {
			t.Errorf("%s says %q, want %q", selector, got, want)
		}
	}
	row := b.get(paths.Deliveries).text("#d-" + uid[24:])
	if !strings.Contains(row, endpointOf(server.URL+"/then")) || strings.Contains(row, "/now") {
		t.Errorf("the row says %q", row)
	}
	file := b.post(paths.DeliveriesCSV, nil).wantStatus(t, http.StatusOK).Raw
	if want := "," + server.URL + "/then,"; !strings.Contains(file, want) {
		t.Errorf("the file holds %q, want %q", file, want)
	}
	for range 2 {
		r.pass(12 * time.Minute)
		_, err := r.Webhooks.Deliveries.EnqueueDue(r.Context())
		r.must(err)
		r.work()
	}
	r.watch()
	page = b.get(path)
	if got := copied(page); !strings.Contains(got, then) || !strings.Contains(got, now) {
		t.Errorf("the text for the partner is %q", got)
	}
	if got := page.text("main"); strings.Contains(got, "Last sent to") {
		t.Error("the page tells of a former URL although the last attempt went to today's")
	}
}

// A draw is found by its number, and its application by its borrower, in the lists of
// events and deliveries.
func TestEventsNameTheirDraw(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	r.subscribe(r.receiver().URL)
	application := r.borrowed(r.file("photo.pdf", "application/pdf", "%PDF-1.7"))
	var draw int
	r.must(r.DB.Get(&draw, `SELECT merchant_disbursement_id FROM disbursements
		WHERE status = 'FUNDING_SETTLED'`))
	r.work()
	b := r.signedIn()
	found, _, err := r.Webhooks.Deliveries.List(r.Context(), delivery.Filter{
		ApplicationUID: application, Event: lending.EventFundingSettled,
	}, postgres.Paging{Limit: 1})
	r.must(err)
	borrower, err := r.Applications.Summary(r.Context(), application)
	r.must(err)
	of := found[0]
	number, name := fmt.Sprintf("Draw #%d", draw), borrower.Name()
	mine := "?application=" + application.String()
	for _, test := range []struct {
		path, selector string
		want           []string
	}{
		{paths.Deliveries + mine, "#d-" + of.UID.String()[24:], []string{number}},
		{paths.Deliveries + mine, ".filters-on", []string{name}},
		{paths.Events + mine, "#e-" + of.EventUID.String(), []string{number}},
		{paths.Events + mine, ".filters-on", []string{name}},
		{paths.To(paths.Delivery, of.UID.String()), ".page-title p", []string{number}},
		{paths.To(paths.Delivery, of.UID.String()), ".facts", []string{number, name}},
		{paths.To(paths.Event, of.EventUID.String()), ".page-title p", []string{number}},
		{paths.To(paths.Event, of.EventUID.String()), ".facts", []string{number, name}},
		{paths.To(paths.Resend, of.UID.String()), "main", []string{number, name}},
	} {
		got := b.get(test.path).wantStatus(t, http.StatusOK).text(test.selector)
		for _, want := range test.want {
			if !strings.Contains(got, want) {
				t.Errorf("%s %s says %q, want %q", test.path, test.selector, got, want)
			}
		}
	}
	for _, path := range []string{paths.DeliveriesCSV, paths.EventsCSV} {
		if file := b.post(path, nil).Raw; !strings.Contains(file, fmt.Sprintf("disbursement/%d", draw)) {
			t.Errorf("%s does not name the draw: %q", path, file)
		}
	}
}
