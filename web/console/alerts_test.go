package console_test

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/PuerkitoBio/goquery"

	"drawbridge/internal/app/apptest"
	"drawbridge/internal/document"
	"drawbridge/internal/loan"
	"drawbridge/views/paths"
)

// watch updates the health of subscriptions as the workers do.
func (r *harness) watch() {
	r.Helper()
	_, err := r.Alerts.Tally(r.Context())
	r.must(err)
	r.must(r.Alerts.Watch(r.Context()))
}

// useUp publishes an event and makes every attempt of its deliveries.
func (r *harness) useUp(status string) {
	r.Helper()
	r.publish(status)
	for range 3 {
		r.work()
		r.pass(12 * time.Minute)
		_, err := r.Webhooks.Deliveries.EnqueueDue(r.Context())
		r.must(err)
	}
	r.watch()
}

// tile returns the value of a number of the overview.
func (a answer) tile(label string) string {
	return strings.TrimSpace(a.find(".tile:contains('" + label + "') dd").First().Contents().
		First().Text())
}

// Waiting deliveries are pending or retrying, and the number links to their list.
func TestWhatWaitsIsListed(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.signedIn()
	made := deliverAll(r)
	home := b.get(paths.Home).wantStatus(t, http.StatusOK)
	if got := home.tile("Waiting"); !strings.HasPrefix(got, "2 ") {
		t.Errorf("the overview counts %q, want 2", got)
	}
	href, _ := home.find(".tile:contains('Waiting') a").Attr("href")
	waiting := b.get(href).wantStatus(t, http.StatusOK)
	if got := waiting.rowIDs(); !slices.Equal(got, uids(made[:2])) {
		t.Errorf("that leads to %v, want the pending and the retrying one", got)
	}
	_, query, _ := strings.Cut(href, "?")
	plan := b.begin(url.Values{"all": {"1"}, "filter": {query}})
	if got := b.get(plan).text("h1"); got != "Waiting deliveries" {
		t.Errorf("a re-send of them is titled %q", got)
	}
}

func TestOverview(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.signedIn()
	quiet := b.get(paths.Home).wantStatus(t, http.StatusOK).text("main")
	if !strings.Contains(quiet, "Nothing needs you") {
		t.Errorf("a quiet day says %q", quiet)
	}
	good, bad := r.receiver(), r.receiver(status(http.StatusServiceUnavailable))
	r.subscribe(good.URL)
	r.subscribe(bad.URL)
	r.useUp("Approved")
	page := b.get(paths.Home).wantStatus(t, http.StatusOK)
	for label, want := range map[string]string{
		"Success rate": "50 %", "Failed": "1", "Delivered": "1", "Waiting": "0", "Failing": "0",
		"Needs attention": "1", "E-mails failed": "0",
	} {
		got := strings.TrimSpace(page.find(".tile:contains('" + label + "') dd").First().Text())
		if !strings.HasPrefix(got, want) {
			t.Errorf("%s = %q, want %q", label, got, want)
		}
	}
	got := page.text("#attention-title ~ p")
	if got == "" || page.find("tr[id^=item-]").Length() != 1 {
		t.Error("the alert is not listed")
	}
	href, _ := page.find(".tile:contains('Failed') a").Attr("href")
	if got := b.get(href).rowIDs(); len(got) != 1 {
		t.Errorf("the number leads to %v, want the delivery that it counts", got)
	}
	totals := make(map[int]int)
	page.find("#outcomes tbody tr").Each(func(_ int, row *goquery.Selection) {
		row.Find("td").Each(func(i int, cell *goquery.Selection) {
			count, err := strconv.Atoi(strings.TrimSpace(cell.Text()))
			r.must(err)
			totals[i] += count
		})
	})
	if want := map[int]int{0: 1, 1: 1}; !maps.Equal(totals, want) {
		t.Errorf("the plot's table holds %v, want failed 1 and delivered 1", totals)
	}
	if page.find("svg.plot-box title").Length() != 2 {
		t.Error("a plot has no name")
	}
}

// Each number of applications and draws begun in a period links to exactly those.
func TestWhatWasBegunIsListed(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	_, err := r.DB.ExecContext(t.Context(), // what the harness made
		`UPDATE applications SET created_at = created_at - interval '1 year'`)
	r.must(err)
	product := r.NewProduct(r, "SOLAR", "50,50")
	for _, age := range []time.Duration{10 * time.Minute, 2 * 24 * time.Hour, 10 * 24 * time.Hour} {
		app := r.Loan(r, product, func(*apptest.Draft) {})
		settled := r.Draw(r, app.UID, loan.DrawInput{})
		r.Settle(r, settled.ID)
		r.Draw(r, app.UID, loan.DrawInput{Files: []document.File{
			r.file("done.txt", "text/plain", age.String()),
		}})
		for _, statement := range []string{
			`UPDATE applications SET created_at = created_at - $2::interval WHERE application_uid = $1`,
			`UPDATE disbursements
			    SET requested_at = requested_at - $2::interval,
			        processing_at = processing_at - $2::interval,
			        settled_at = settled_at - $2::interval
			  WHERE application_uid = $1`,
		} {
			r.exec(statement, app.UID, age.String())
		}
	}
	b := r.signedIn()
	day := 24 * time.Hour
	past := url.Values{
		"since": {r.DB.Now().Add(-3 * day).UTC().Format(time.RFC3339)},
		"until": {r.DB.Now().Add(-day).UTC().Format(time.RFC3339)},
	}.Encode()
	for query, want := range map[string]int{"": 1, "range=7d": 2, "range=30d": 3, past: 1} {
		home := b.get(paths.Home+"?"+query).wantStatus(t, http.StatusOK)
		for _, state := range []string{
			"application-state-Approved", "application-state-Declined",
			"draw-state-FUNDING_REQUESTED", "draw-state-FUNDING_SETTLED", "draw-state-RETURNED",
		} {
			want := want
			if strings.HasSuffix(state, "Declined") || strings.HasSuffix(state, "RETURNED") {
				want = 0
			}
			row := home.find("#" + state)
			href, _ := row.Find("a").Attr("href")
			listed := b.get(href).wantStatus(t, http.StatusOK).find("main .table tbody tr").Length()
			if counted := row.Find("td").Text(); counted != strconv.Itoa(want) || listed != want {
				t.Errorf("with %q %s counts %q and leads to %d, want %d", query, state, counted, listed, want)
			}
		}
	}
}

// If the numbers cannot be read, a page keeps its old ones: a poll must not report success.
func TestOverviewWithoutNumbers(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.signedIn()
	b.fragment().get(paths.Home).wantStatus(t, http.StatusOK)
	r.exec(`ALTER TABLE attention_items RENAME TO gone`)
	if poll := b.fragment().get(paths.Home); poll.Status < http.StatusInternalServerError {
		t.Errorf("a poll is answered %d: %s", poll.Status, poll.text("body"))
	}
}

func TestOverviewOfATime(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.signedIn()
	r.subscribe(r.receiver().URL)
	r.useUp("Approved")
	day := func(days int) string {
		return r.DB.Now().AddDate(0, 0, days).UTC().Format("2006-01-02T15:04:05Z")
	}
	for _, test := range []struct {
		query     string
		status    int
		delivered string
		live      bool
	}{
		{"", 200, "1", true},
		{"?range=1h", 200, "1", true},
		{"?range=7d", 200, "1", true},
		{"?range=30d", 200, "1", true},
		{"?since=" + day(-10) + "&until=" + day(-9), 200, "0", false},
		{"?since=" + day(-500), 400, "1", true},
		{"?until=" + day(-9), 400, "1", true},
		{"?since=yesterday", 400, "1", true},
	} {
		page := b.get(paths.Home+test.query).wantStatus(t, test.status)
		if got := page.tile("Delivered"); got == "" || !strings.HasPrefix(got, test.delivered) {
			t.Errorf("%s: delivered %q, want %q", test.query, got, test.delivered)
		}
		_, live := page.find("#live").Attr("hx-sse:connect")
		if live != test.live {
			t.Errorf("%s: live is %v", test.query, live)
		}
	}
}

// Delivered deliveries are counted as in the list that the number links to, even if they
// were created before the period in which they arrived.
func TestOverviewCountsWhatIsListed(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	r.subscribe(r.receiver().URL)
	r.publish("Approved")
	r.pass(2 * time.Hour)
	r.publish("Closed")
	r.work()
	r.watch()
	b := r.signedIn()
	for query, want := range map[string]string{"?range=1h": "1", "?range=24h": "2"} {
		home := b.get(paths.Home + query)
		href, _ := home.find(".tile:contains('Delivered') a").Attr("href")
		listed := strconv.Itoa(len(b.get(href).rowIDs()))
		got, _, _ := strings.Cut(home.tile("Delivered"), " ")
		if got != want || listed != want {
			t.Errorf("%s: counts %q and leads to %s, want %s", query, got, listed, want)
		}
	}
	_, err := r.DB.ExecContext(t.Context(), `
		INSERT INTO attention_items (item_uid, kind, subject, severity, detail, count, opened_at,
		                             last_seen_at)
		SELECT gen_random_uuid(), 'mail_failed', 'mail/' || n, 'problem', 'refused', 1, now(), now()
		  FROM generate_series(1, 1001) AS n`)
	r.must(err)
	if got := b.get(paths.Home).tile("Needs attention"); !strings.HasPrefix(got, "1,001") {
		t.Errorf("1001 alerts are counted as %q", got)
	}
}

// Failures can be plotted by endpoint and by error, for the chosen period.
func TestOverviewSplitsFailures(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.signedIn()
	r.subscribe(r.receiver(status(http.StatusBadGateway)).URL + "/ledger")
	for range 2 {
		r.useUp("Approved")
	}
	page := b.get(paths.Home + "?range=7d")
	if got := page.text("#outcomes-title"); got != "Deliveries per hour" {
		t.Errorf("at first the plot is of %q", got)
	}
	for name, want := range map[string]string{"By endpoint": "/ledger", "By error": "HTTP 502"} {
		href, _ := page.find("[aria-labelledby=outcomes-title] a:contains('" + name + "')").Attr("href")
		split := b.get(strings.TrimSuffix(href, "#outcomes")).wantStatus(t, http.StatusOK)
		if head := split.text("#outcomes thead"); !strings.Contains(head, want) {
			t.Errorf("%s: the table behind the plot has the columns %q, want one of %q", name, head, want)
		}
		count := 0
		for _, cell := range split.find("#outcomes tbody td").EachIter() {
			n, err := strconv.Atoi(strings.TrimSpace(cell.Text()))
			r.must(err)
			count += n
		}
		if count != 6 {
			t.Errorf("%s: %d attempts are plotted, want 6", name, count)
		}
		if current := split.text(".filter-bar [aria-current]"); current != "7 days" {
			t.Errorf("%s: the time is %q", name, current)
		}
	}
	b.get(paths.Home+"?by=colour").wantStatus(t, http.StatusBadRequest)
}

func TestOverviewStaysUpToDate(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.signedIn()
	path, _ := b.get(paths.Home).find("#live").Attr("hx-sse:connect")
	live := b.listen(path)
	if page, ok := live.next(); !ok || page.Find("tr[id^=item-]").Length() != 0 {
		t.Fatal("the stream does not begin with a quiet overview")
	}
	r.exec(`
		INSERT INTO attention_items (item_uid, kind, subject, severity, detail, count, opened_at,
		                             last_seen_at)
		VALUES (gen_random_uuid(), 'mail_failed', 'e-mails', 'problem', 'none went out', 1, now(),
		        now())`)
	for {
		page, ok := live.next()
		if !ok {
			t.Fatal("the stream ended without the news")
		}
		if page.Find("tr[id^=item-]").Length() == 1 {
			return
		}
	}
}

func TestAlertQueue(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.asOperator()
	if text := b.get(paths.Alerts).wantStatus(t, http.StatusOK).text("main"); !strings.Contains(
		text, "Nothing needs you") {
		t.Errorf("an empty queue says %q", text)
	}
	r.subscribe(r.receiver(status(http.StatusServiceUnavailable)).URL)
	r.useUp("Approved")
	list := b.get(paths.Alerts).wantStatus(t, http.StatusOK)
	if got := list.text(".rail a[href='/console/attention'] .rail-count"); got != "1 open" {
		t.Errorf("badge %q", got)
	}
	item, _ := list.find("tr[id^=item-] a.lead").Attr("href")
	page := b.get(item).wantStatus(t, http.StatusOK)
	look, _ := page.find(".page-acts a").Attr("href")
	if got := b.get(look).rowIDs(); len(got) != 1 {
		t.Errorf("the item leads to %v", got)
	}
	act := func(form url.Values, want int) answer {
		t.Helper()
		return b.post(item, form).wantStatus(t, want)
	}
	act(url.Values{"act": {"take"}}, http.StatusSeeOther)
	if rows := b.get(paths.Alerts + "?owner=me").find("tr[id^=item-]").Length(); rows != 1 {
		t.Errorf("%d items are mine", rows)
	}
	act(url.Values{"act": {"snooze"}, "for": {"soon"}}, http.StatusBadRequest)
	act(url.Values{"act": {"snooze"}, "for": {"4h"}}, http.StatusSeeOther)
	if rows := b.get(paths.Alerts).find("tr[id^=item-]").Length(); rows != 0 {
		t.Error("a snoozed item is in sight")
	}
	snoozed := b.get(paths.Alerts + "?state=snoozed")
	if rows := snoozed.find("tr[id^=item-]").Length(); rows != 1 {
		t.Error("a snoozed item is nowhere")
	}
	act(url.Values{"act": {"wake"}}, http.StatusSeeOther)
	refused := act(url.Values{"act": {"resolve"}, "note": {""}}, http.StatusBadRequest)
	if got := refused.text("#note-fault"); !strings.Contains(got, "The note must have") {
		t.Errorf("the missing note is named %q", got)
	}
	act(url.Values{"act": {"explode"}}, http.StatusBadRequest)
	stale := url.Values{
		"act": {"resolve"}, "note": {"It was maintenance."},
		"seen": {page.find("[name=seen]").AttrOr("value", "")},
	}
	r.useUp("Declined")
	grown := act(stale, http.StatusConflict)
	if got := grown.text("main .notice-bad"); !strings.Contains(got, "it was 1 and is 2 now") {
		t.Errorf("of what was added meanwhile it says %q", got)
	}
	if kept := grown.find("#note").AttrOr("value", ""); kept != "It was maintenance." {
		t.Errorf("the note became %q", kept)
	}
	act(url.Values{
		"act": {"resolve"}, "note": {"The partner is told."},
		"seen": {grown.find("[name=seen]").AttrOr("value", "")},
	}, http.StatusSeeOther)
	late := act(stale, http.StatusConflict).text("main")
	if !containsAll(late, []string{
		operatorEmail + " closed this at 20", "not kept: “It was maintenance.”", "The partner is told.",
	}) {
		t.Errorf("who resolves it after somebody else reads %q", late)
	}
	if text := b.get(item).text("main"); !strings.Contains(text, "The partner is told.") ||
		strings.Contains(text, "Assign to me") {
		t.Errorf("a closed item says %q", text)
	}
	act(url.Values{"act": {"take"}}, http.StatusConflict)
	if r.audits("attention.resolve") != 1 || r.audits("attention.take") != 1 {
		t.Error("what was done is not in the audit log")
	}
	for _, wrong := range []string{"state=odd", "kind=odd", "owner=odd", "cursor=odd"} {
		b.get(paths.Alerts+"?"+wrong).wantStatus(t, http.StatusBadRequest)
	}
	b.get(paths.To(paths.Alert, "nothing")).wantStatus(t, http.StatusNotFound)
}

func TestSupportSeesTheQueueAndLeavesItAlone(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.signedIn()
	r.subscribe(r.receiver(status(http.StatusServiceUnavailable)).URL)
	r.useUp("Approved")
	item, _ := b.get(paths.Alerts).find("tr[id^=item-] a.lead").Attr("href")
	if b.get(item).wantStatus(t, http.StatusOK).find("form.attention-form").Length() != 0 {
		t.Error("support is offered what it may not do")
	}
	b.post(item, url.Values{"act": {"take"}}).wantStatus(t, http.StatusForbidden)
}

func TestSystemPage(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	r.exec(`
		INSERT INTO processes (process_uid, host, pid, roles, version, started_at, last_beat_at, skew_us)
		VALUES (gen_random_uuid(), 'bridge-1', 77, '{api,worker}', '0.2.0', now(), now(), 2500000),
		       (gen_random_uuid(), 'bridge-2', 78, '{console}', '0.2.0', now(),
		        now() - interval '2 minutes', 100)`)
	r.subscribe(r.receiver().URL)
	r.publish("Approved")
	text := r.signedIn().get(paths.System).wantStatus(t, http.StatusOK).text("main")
	text = strings.ReplaceAll(text, "_ ", "_") // where a line may end
	for _, want := range []string{
		"bridge-1", "api, worker", "Clock off", "2.5 s", "bridge-2", "Lost", "PostgreSQL", "Connections",
		"deliveries_y", "0010_health", "Deliveries", "probe_endpoints",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
}
