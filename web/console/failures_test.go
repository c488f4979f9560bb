package console_test

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"drawbridge/internal/operator"
	"drawbridge/internal/postgres"
	"drawbridge/internal/webhook/delivery"
	"drawbridge/internal/webhook/subscription"
	"drawbridge/views/paths"
	"drawbridge/views/ui"
)

// An alert links to all failures of an endpoint: since when, by error, a failed and the
// last good exchange, the text for the partner, and one re-send of all.
func TestFailuresOfAnEndpoint(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	code := http.StatusNoContent
	answers := func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(code)
		if code != http.StatusNoContent {
			_, _ = w.Write([]byte("the ledger is locked"))
		}
	}
	subscribed, _ := r.subscribe(r.receiver(answers).URL)
	path := paths.To(paths.Failures, subscribed.UID.String())
	title := r.signedIn().get(path).wantStatus(t, http.StatusOK).text("h1")
	if title != "Nothing is missing" {
		t.Errorf("before anything failed: %q", title)
	}
	r.useUp("Hard Pull")
	code = http.StatusServiceUnavailable
	r.useUp("Pend Clearance")
	r.useUp("Approved")
	code = http.StatusForbidden
	r.useUp("Closed")

	b := r.signedIn() // a session ends while so many attempts wait
	alert, _ := b.get(paths.Alerts).find("tr[id^=item-] a.lead").Attr("href")
	if href, _ := b.get(alert).find(".page-acts a.button-main").Attr("href"); href != path {
		t.Errorf("the alert leads to %q, want %q", href, path)
	}
	page := b.get(path).wantStatus(t, http.StatusOK)
	for selector, want := range map[string]string{
		"h1": "3 did not arrive", "#group-http_5xx-503": "HTTP 503 deliveries 2",
		"#group-http_4xx-403": "HTTP 403 deliveries 1",
		"#sample-attempt-3":   "403 Forbidden", "#good-attempt-1": "204 No Content",
		".page-title p":           "every attempt fails since",
		".page-acts .button-main": "Re-send all 3",
	} {
		if got := page.text(selector); !strings.Contains(got, want) {
			t.Errorf("%s says %q, want %q", selector, got, want)
		}
	}
	text, _ := page.find("button:contains('Copy for the partner')").Attr("data-copy")
	for _, want := range []string{
		"3 webhooks to " + subscribed.URL, "- HTTP 503: 2", "The last one that was accepted",
		"the ledger is locked",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the text for the partner lacks %q:\n%s", want, text)
		}
	}
	if strings.Contains(page.Raw, "the-partners-own-key") {
		t.Error("the page shows a secret header")
	}

	narrow, _ := page.find("#group-http_5xx-503 a.lead").Attr("href")
	some := b.get(narrow)
	if got := some.text("h1"); got != "2 did not arrive" || some.text("#sample-attempt-3 h3") == "" {
		t.Errorf("one error alone: %q", got)
	}
	form := some.find("form[action='" + paths.BulkNew + "']")
	filter, _ := form.Find("[name=filter]").Attr("value")
	plan := b.post(paths.BulkNew, url.Values{"all": {"1"}, "filter": {filter}}).
		wantStatus(t, http.StatusSeeOther)
	if got := b.get(plan.Location).text(".tiles .tile:first-child dd"); !strings.HasPrefix(got, "2 ") {
		t.Errorf("the plan counts %q, want the two that failed so", got)
	}

	application := b.get(paths.To(paths.Application, r.application.String()))
	notice := application.text("main .notice b")
	if notice != "3 webhooks of this application did not arrive" {
		t.Errorf("the application says %q", notice)
	}
	href, _ := application.find("main .notice a.button").Attr("href")
	if got := len(b.get(href).rowIDs()); got != 3 {
		t.Errorf("that leads to %d deliveries, want 3", got)
	}
}

// Deliveries that waited while their subscription was paused fail long after their creation: a
// recovery from the subscription's page includes them, and "What fails" says when they failed.
func TestRecoveryHoldsWhatWaited(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	subscribed, _ := r.subscribe(r.receiver(status(http.StatusInternalServerError)).URL)
	uid := subscribed.UID.String()
	r.do(func(ctx context.Context, tx *postgres.Tx) error {
		_, err := r.Webhooks.Subscriptions.Pause(ctx, tx, subscribed.UID, "test")
		return err
	})
	r.publish("Approved")
	created := r.list()[0].CreatedAt
	r.pass(50 * time.Hour)
	r.do(func(ctx context.Context, tx *postgres.Tx) error {
		_, err := r.Webhooks.Subscriptions.Resume(ctx, tx, subscribed.UID, "test")
		return err
	})
	r.useUp("Closed")

	b := r.signedIn()
	page := b.get(paths.To(paths.Subscription, uid))
	href, _ := page.find("a:contains('Recover failed')").Attr("href")
	since, _ := b.get(href).find("#bulk-since").Attr("value")
	if want := created.UTC().Format("2006-01-02T15:04"); since != want {
		t.Errorf("recovery begins at %s, want %s", since, want)
	}
	form := url.Values{"kind": {"recover"}, "subscription": {uid}, "since": {since}}
	if got := b.get(b.begin(form)).text(".tiles .tile:first-child dd"); !strings.HasPrefix(got, "2 ") {
		t.Errorf("recovers %q, want both", got)
	}
	form.Set("since", r.DB.Now().UTC().Add(-time.Minute).Format("2006-01-02T15:04"))
	empty := b.get(b.begin(form)).text("main")
	if !strings.Contains(empty, "Deliveries go by when they were created") {
		t.Errorf("the empty plan says %q", empty)
	}
	first, _ := b.get(paths.To(paths.Failures, uid)).find("#group-http_5xx-500 time").First().
		Attr("datetime")
	if at, err := time.Parse(time.RFC3339, first); err != nil || at.Before(created.Add(50*time.Hour)) {
		t.Errorf("the first failed at %s, but was created at %s (%v)", first, created, err)
	}
}

// A failing subscription with a new URL is not reported as failing before an attempt there.
func TestAChangedURLHasNotFailed(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	server := r.receiver(status(http.StatusServiceUnavailable))
	made, _ := r.subscribe(server.URL + "/then")
	r.useUp("Approved")
	r.exec(`UPDATE subscriptions SET state = 'failing'`)
	r.pass(time.Minute)
	r.amend(made.UID, subscription.Patch{URL: new(server.URL + "/now")})
	failed := url.Values{"delivery": {r.list()[0].UID.String()}}
	page, failures := paths.To(paths.Subscription, made.UID.String()),
		paths.To(paths.Failures, made.UID.String())
	told := func(b *browser, path, selector string, want, never string) {
		t.Helper()
		got := b.get(path).wantStatus(t, http.StatusOK).text(selector)
		if !strings.Contains(got, want) || strings.Contains(got, never) {
			t.Errorf("%s says %q, want %q and not %q", path, got, want, never)
		}
	}
	b := r.signedIn()
	told(b, page, "[aria-label=Diagnosis]", "Not tried since its URL was changed", "Likely owner")
	told(b, failures, ".page-title p", "not tried since its URL was changed", "every attempt fails")
	told(b, b.begin(failed), "main", "to a URL that nothing was sent to yet", "failing at present")
	text, _ := b.get(failures).find("button:contains('Copy for the partner')").Attr("data-copy")
	for _, want := range []string{
		"1 webhooks to your endpoint have", "Its URL is " + server.URL + "/now since",
		"Sent to " + server.URL + "/then\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the text for the partner lacks %q:\n%s", want, text)
		}
	}
	r.useUp("Closed")
	b = r.signedIn()
	told(b, page, "[aria-label=Diagnosis]", "Likely owner: partner", "Not tried")
	told(b, failures, ".page-title p", "every attempt fails since", "not tried")
	told(b, b.begin(failed), "main", "failing at present", "nothing was sent to yet")
}

// The badge counts the failures of a day, without tests.
func TestBadgeLeavesTestsOut(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	subscribed, _ := r.subscribe(r.receiver(status(http.StatusServiceUnavailable)).URL)
	r.useUp("Approved")
	r.asOperator().post(paths.To(paths.SubscriptionTest, subscribed.UID.String()),
		url.Values{"event": {"document.sent"}}).wantStatus(t, http.StatusSeeOther)
	for range 3 {
		r.work()
		r.pass(12 * time.Minute)
	}
	home := r.signedIn().get(paths.Home)
	badge := home.text(".rail a[href='" + paths.Deliveries + "'] .rail-count")
	if badge != "1 failed, of those created in the last 24 hours" {
		t.Errorf("the badge says %q", badge)
	}
	if got := home.tile("Failed"); !strings.HasPrefix(got, "1 ") {
		t.Errorf("the overview counts %q", got)
	}
}

// A failure that a re-send has fixed is not listed as a failure of the endpoint.
func TestFailuresLeaveOutWhatWasMadeGood(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.signedIn()
	code := http.StatusServiceUnavailable
	subscribed, _ := r.subscribe(r.receiver(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(code)
	}).URL)
	r.useUp("Approved")
	code = http.StatusOK
	failed := r.list()[0]
	b.post(paths.To(paths.Resend, failed.UID.String()), url.Values{"reason": {"fixed"}})
	r.work()
	if got := r.list()[0]; got.State != delivery.StateDelivered {
		t.Fatalf("the re-send is %s", got.State)
	}
	page := b.get(paths.To(paths.Failures, subscribed.UID.String()))
	if got := page.text("h1"); got != "Nothing is missing" {
		t.Errorf("after it was made good: %q", got)
	}
	all := b.get(paths.Deliveries + "?state=failed").rowIDs()
	open := b.get(paths.Deliveries + "?state=failed&open=yes").rowIDs()
	if len(all) != 1 || len(open) != 0 {
		t.Errorf("%d failed, %d of them not made good; want 1 and 0", len(all), len(open))
	}

	detail := b.get(paths.To(paths.Delivery, failed.UID.String()))
	if got := detail.text("main"); !strings.Contains(got, "The event arrived after all") ||
		strings.Contains(got, "Open alert") || detail.find("#moment-end .tone-bad").Length() != 0 {
		t.Errorf("the delivery's page is alarmed: %q", got)
	}
	row := b.get(paths.Deliveries + "?state=failed").find("#d-" + ui.RowID(failed.UID))
	if got := row.Find(".chip").Text(); !strings.Contains(got, "Made good") ||
		row.Find(".fault-word, .pip-bad, .tone-bad").Length() != 0 {
		t.Errorf("its row is red: %q", row.Text())
	}
	home := b.get(paths.Home)
	if got := home.find(".rail a[href='" + paths.Deliveries + "'] .rail-count").Text(); got != "" {
		t.Errorf("the badge counts %q", got)
	}
	if got := home.tile("Failed"); !strings.HasPrefix(got, "0") {
		t.Errorf("the overview counts %q", got)
	}
}

// Each role sees first what it needs; the rest is folded, except on its own pages.
func TestNavigationOfRoles(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	r.addUser("olga@lender.example", operator.RoleOperator)
	olga := r.stranger()
	olga.signIn("olga@lender.example", password)
	for role, test := range map[string]struct {
		b     *browser
		first string
	}{
		"support": {
			r.signedIn(), "Overview Needs attention Applications Deliveries Events E-mails API requests",
		},
		"operator": {
			olga, "Overview Needs attention Applications Loans and draws Draw desk Subscriptions Partners",
		},
	} {
		page := test.b.get(paths.Home)
		got := strings.Join(strings.Fields(page.find(".rail > ul").First().Text()), " ")
		if got != test.first {
			t.Errorf("%s finds first %q, want %q", role, got, test.first)
		}
		if got := page.find(".rail details").Length(); got < 2 ||
			page.find(".rail details[open]").Length() != 0 {
			t.Errorf("%s finds %d folded groups, want Administration and Reference closed", role, got)
		}
		inside := test.b.get(paths.Audit)
		if got := inside.text(".rail details[open] summary"); got != "Administration" {
			t.Errorf("on the audit log %q is open for %s", got, role)
		}
	}
}

// A new partner's page leads step by step to the first webhook.
func TestFirstWebhookIsGuided(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.asOperator()
	r.Partner = r.NewPartner(r, "Newcomer")
	path := paths.To(paths.Partner, r.Partner.String())
	says := func(left, action string) {
		t.Helper()
		page := b.get(path).wantStatus(t, http.StatusOK)
		if got := page.text("#first-webhook .panel-head p"); got != left {
			t.Errorf("the guide says %q, want %q", got, left)
		}
		if got := page.find("#first-webhook a.button").First(); strings.TrimSpace(got.Text()) != action {
			t.Errorf("the next step is %q, want %q", got.Text(), action)
		} else if href, _ := got.Attr("href"); action != "" {
			b.get(href).wantStatus(t, http.StatusOK)
		}
	}
	says("4 steps left", "Add a merchant")
	r.Merchant = r.NewMerchant(r, r.Partner, "Newcomer Solar")
	says("3 steps left", "Issue credentials")
	r.issue(false)
	says("2 steps left", "Create a subscription")
	subscribed, _ := r.subscribe(r.receiver().URL)
	says("1 step left", "Send a test")
	b.post(paths.To(paths.SubscriptionTest, subscribed.UID.String()),
		url.Values{"event": {"document.sent"}})
	r.work()
	if got := b.get(path).find("#first-webhook").Length(); got != 0 {
		t.Error("the guide stays when all is done")
	}
}

// The rail's numbers and a partner page's guide are secondary: if they cannot be counted,
// the page shows the last known numbers.
func TestPagesWaitForNoCount(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	r.Console.Lists.CountTimeout = 2 * time.Second
	deliverAll(r)
	r.Exec(t, `
		UPDATE deliveries
		   SET state = 'failed', next_attempt_at = NULL, queued = false, finished_at = now()
		 WHERE state = 'retrying'`)
	r.Exec(t, `UPDATE subscription_health SET last_success_at = NULL`)
	b := r.asOperator()
	path := paths.To(paths.Partner, r.Partner.String())
	before := b.get(path).wantStatus(t, http.StatusOK)
	if before.text(".rail-count") == "" {
		t.Fatal("the rail has no number")
	}
	busy, err := r.DB.Beginx()
	r.must(err)
	defer func() { r.must(busy.Rollback()) }()
	_, err = busy.ExecContext(t.Context(), `LOCK TABLE deliveries, attention_items`)
	r.must(err)
	after := b.get(path).wantStatus(t, http.StatusOK)
	if got, want := after.text(".rail-count"), before.text(".rail-count"); got != want {
		t.Errorf("the rail says %q, want %q as before", got, want)
	}
}
