package console_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/PuerkitoBio/goquery"
	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"drawbridge/internal/postgres"
	"drawbridge/internal/secret"
	"drawbridge/internal/webhook/delivery"
	"drawbridge/internal/webhook/sender"
	"drawbridge/internal/webhook/subscription"
	"drawbridge/views/paths"
	"drawbridge/views/subscriptions"
)

// onlySubscription loads the only subscription.
func (r *harness) onlySubscription() subscription.Subscription {
	r.Helper()
	found, _, err := r.Webhooks.Subscriptions.List(r.Context(), subscription.Filter{},
		postgres.Paging{Limit: 10})
	r.must(err)
	if len(found) != 1 {
		r.Fatalf("%d subscriptions, want one", len(found))
	}
	return found[0]
}

// audited lists the audit actions on subscriptions, oldest first.
func (r *harness) audited() []string {
	r.Helper()
	var actions []string
	r.must(r.DB.SelectContext(r.Context(), &actions, `
		SELECT action || ': ' || reason FROM audit_log
		 WHERE subject_kind = 'subscription' ORDER BY entry_id`))
	return actions
}

// filled is a form that can be saved.
func (r *harness) filled(address string) url.Values {
	return url.Values{
		"act": {"save"}, "url": {address},
		"partner": {r.Partner.String()}, "merchants": {"all"},
		"events": {"some"}, "event": {"task.created", "task.updated"}, "auth": {"hmac"},
		"secret_mode": {"generate"}, "header_key": {"1", "2"}, "header_name": {"X-Api-Key", ""},
		"header_value": {"the-partners-own-key", ""}, "rate": {"20"}, "on_failing": {"pause"},
		"alert_email": {"hooks@sunvolt.example"}, "reason": {"ticket 7"},
		"test_event": {"task.created"},
	}
}

func TestASubscriptionIsCreatedAndItsSecretShownOnce(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b, endpoint := r.asOperator(), r.receiver()
	b.get(paths.SubscriptionNew).wantStatus(t, http.StatusOK)
	made := b.post(paths.SubscriptionNew, r.filled(endpoint.URL+"/hook")).
		wantStatus(t, http.StatusSeeOther)
	got := r.onlySubscription()
	if got.Events[0] != "task.created" || len(got.Events) != 2 || got.Auth != sender.AuthHMAC ||
		got.Rate != 20 || len(got.Headers) != 1 || got.Headers[0].Value != "the-partners-own-key" {
		t.Errorf("created %+v", got)
	}
	if !got.Watch.Pause || got.Watch.AlertEmail != "hooks@sunvolt.example" || got.Version != 1 {
		t.Errorf("one save made %+v", got)
	}
	page := b.get(made.Location).wantStatus(t, http.StatusOK)
	value := page.text("#new-secret")
	if !strings.HasPrefix(value, "whsec_") {
		t.Fatalf("the secret is shown as %q", value)
	}
	again := b.get(made.Location)
	if again.find("#new-secret").Length() != 0 || strings.Contains(again.Raw, value) {
		t.Error("the secret is shown twice")
	}
	var kept int
	r.must(r.DB.GetContext(t.Context(), &kept,
		`SELECT count(*) FROM sessions WHERE position($1 in encode(data, 'escape')) > 0`, value))
	if kept != 0 {
		t.Error("the session holds the secret in plain text")
	}
	if diff := cmp.Diff([]string{"subscription.create: ticket 7"}, r.audited()); diff != "" {
		t.Errorf("audit log: %s", diff)
	}
	for _, tab := range []string{"activity", "configuration", "secret", "health", "versions"} {
		shown := b.get(paths.SubscriptionTab(got.UID.String(), tab)).wantStatus(t, http.StatusOK)
		if strings.Contains(shown.Raw, "the-partners-own-key") {
			t.Errorf("the tab %s shows the partner's key", tab)
		}
	}
}

// wantFaults fails the test unless the form reports these fields as wrong, from top to
// bottom, and links to each.
func (a answer) wantFaults(t *testing.T, want ...string) {
	t.Helper()
	var fields []string
	for _, link := range a.find("#faults a").EachIter() {
		href, _ := link.Attr("href")
		fields = append(fields, href)
		if a.find(href).Length() != 1 {
			t.Errorf("%s leads nowhere", href)
		}
	}
	if diff := cmp.Diff(want, fields); diff != "" {
		t.Errorf("what is named as wrong (-want +got):\n%s", diff)
	}
}

func TestAWrongEditNamesAllThatIsWrong(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b, endpoint := r.asOperator(), r.receiver()
	b.post(paths.SubscriptionNew, r.filled(endpoint.URL+"/hook")).wantStatus(t, http.StatusSeeOther)
	before := r.onlySubscription()
	path := paths.To(paths.SubscriptionEdit, before.UID.String())
	form := edit(b.get(path))
	form.Del("event")
	form.Set("rate", "many")
	form.Set("secret_mode", "paste")
	form.Set("secret", "short")
	form["header_name"][0], form["header_value"][0] = "Host", "a"
	b.post(path, form).wantStatus(t, http.StatusBadRequest).
		wantFaults(t, "#event", "#secret", "#header-1-name", "#rate")
	if after := r.onlySubscription(); after.Version != before.Version {
		t.Errorf("a wrong form made version %d", after.Version)
	}
}

func TestAWrongFormKeepsWhatWasTyped(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.asOperator()
	form := r.filled("https://localhost/hook")
	form.Set("partner", "")
	form.Set("merchants", "some")
	form.Del("event")
	form.Set("secret_mode", "paste")
	form.Set("secret", "short")
	form.Set("rate", "many")
	form["header_name"] = []string{"Host", "x-drawbridge-own"}
	form["header_value"] = []string{"a", "über"}
	page := b.post(paths.SubscriptionNew, form).wantStatus(t, http.StatusBadRequest)
	page.wantFaults(t, "#url", "#partner", "#merchant", "#event", "#secret", "#header-1-name",
		"#header-2-name", "#header-2-value", "#rate")
	form.Set("partner", r.Partner.String())
	form.Set("merchants", "all")
	form.Set("events", "all")
	form.Set("rate", "5000")
	page = b.post(paths.SubscriptionNew, form).wantStatus(t, http.StatusBadRequest)
	page.wantFaults(t, "#url", "#secret", "#header-1-name", "#header-2-name", "#header-2-value",
		"#rate")
	for selector, typed := range map[string]string{
		"#url": "https://localhost/hook", "#secret": "short", "#header-1-name": "Host",
		"#header-2-value": "über", "#rate": "5000", "#reason": "ticket 7",
	} {
		if got, _ := page.find(selector).Attr("value"); got != typed {
			t.Errorf("%s holds %q, %q was typed", selector, got, typed)
		}
	}
	if found, _, _ := r.Webhooks.Subscriptions.List(t.Context(),
		subscription.Filter{}, postgres.Paging{Limit: 1}); len(found) != 0 {
		t.Error("a wrong form created a subscription")
	}
}

func TestHeaderRowsComeAndGoWithoutScript(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.asOperator()
	form := r.filled("https://hooks.example.com/")
	form.Set("act", "add-header")
	page := b.post(paths.SubscriptionNew, form).wantStatus(t, http.StatusOK)
	if page.find(".header-row").Length() != 3 || page.find("#header-3-name[autofocus]").Length() != 1 {
		t.Errorf("after adding: %s", page.text("#headers"))
	}
	form.Set("act", "remove-1")
	page = b.post(paths.SubscriptionNew, form).wantStatus(t, http.StatusOK)
	if page.find("#header-1-row").Length() != 0 || page.find("#header-2-row").Length() != 1 {
		t.Error("another row was removed")
	}
}

func TestATestBeforeSavingShowsTheAnswer(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.asOperator()
	endpoint := r.receiver(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusTeapot)
		fmt.Fprint(w, `<b onclick="x()">short and stout</b>`)
	}, status(http.StatusNoContent))
	form := r.filled(endpoint.URL)
	form.Set("act", "try")
	form.Set("secret_mode", "paste")
	form.Set("secret", "agreed-between-us")
	page := b.post(paths.SubscriptionNew, form).wantStatus(t, http.StatusOK)
	result := page.text("#trial-result")
	if !strings.Contains(result, "418") || !strings.Contains(result, "short and stout") ||
		page.find("#trial-result [onclick]").Length() != 0 {
		t.Errorf("the result says %q", result)
	}
	if typed, _ := page.find("#secret").Attr("value"); typed != "agreed-between-us" {
		t.Error("the secret that was typed is lost")
	}
	if strings.Contains(result, "agreed-between-us") || strings.Contains(result, "partners-own-key") {
		t.Error("the result shows a secret")
	}
	page = b.post(paths.SubscriptionNew, form).wantStatus(t, http.StatusOK)
	if result = page.text("#trial-result"); !strings.Contains(result, "confirmed the test") {
		t.Errorf("the result says %q", result)
	}
	if len(endpoint.Received()) != 2 || len(r.list()) != 0 {
		t.Error("a trial is one request and no delivery")
	}
}

// edit returns a subscription's form as a browser would send it back.
func edit(page answer) url.Values {
	form := url.Values{"act": {"save"}}
	page.find("#form-region form [name]").Each(func(_ int, field *goquery.Selection) {
		name, _ := field.Attr("name")
		kind, _ := field.Attr("type")
		value, _ := field.Attr("value")
		_, checked := field.Attr("checked")
		switch {
		case field.Is("button"), (kind == "radio" || kind == "checkbox") && !checked:
		case field.Is("select"):
			chosen, _ := field.Find("option[selected]").Attr("value")
			form.Add(name, chosen)
		default:
			form.Add(name, value)
		}
	})
	return form
}

func TestEditingKeepsTheSecretAndHiddenHeaders(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b, endpoint := r.asOperator(), r.receiver()
	made, value := r.subscribe(endpoint.URL)
	path := paths.To(paths.SubscriptionEdit, made.UID.String())
	page := b.get(path).wantStatus(t, http.StatusOK)
	if strings.Contains(page.Raw, "the-partners-own-key") {
		t.Fatal("the form shows the partner's key")
	}
	form := edit(page)
	form.Set("url", endpoint.URL+"/v2")
	form.Set("reason", "moved")
	b.post(path, form).wantStatus(t, http.StatusSeeOther)
	got := r.onlySubscription()
	if got.URL != endpoint.URL+"/v2" || got.Version != 2 ||
		got.Headers[0].Value != "the-partners-own-key" {
		t.Errorf("after the change: %+v", got)
	}
	r.do(func(ctx context.Context, tx *postgres.Tx) error {
		match, err := r.Webhooks.Subscriptions.CompareSecret(ctx, tx, made.UID, value)
		if match.Match != secret.MatchCurrent {
			t.Errorf("the secret is %q now", match.Match)
		}
		return err
	})
	// Sent again, it changes nothing and says so.
	b.post(path, edit(b.get(path))).wantStatus(t, http.StatusSeeOther)
	if again := r.onlySubscription(); again.Version != 2 {
		t.Errorf("version %d without a change", again.Version)
	}
}

func TestAChangeMeanwhileIsShownAndNothingIsLost(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b, endpoint := r.asOperator(), r.receiver()
	made, _ := r.subscribe(endpoint.URL)
	path := paths.To(paths.SubscriptionEdit, made.UID.String())
	form := edit(b.get(path))
	theirs := endpoint.URL + "/theirs"
	r.do(func(ctx context.Context, tx *postgres.Tx) error {
		_, _, err := r.Webhooks.Subscriptions.Amend(ctx, tx, made.UID, subscription.Patch{
			URL: &theirs, Events: []string{"document.sent"},
		}, "<b>eve</b>@lender.example")
		return err
	})
	form.Set("url", endpoint.URL+"/mine")
	page := b.post(path, form).wantStatus(t, http.StatusConflict)
	shown := page.text("#conflict")
	for _, want := range []string{"eve", theirs, endpoint.URL + "/mine", "document.sent"} {
		if !strings.Contains(shown, want) {
			t.Errorf("the difference does not say %q: %s", want, shown)
		}
	}
	if typed, _ := page.find("#url").Attr("value"); typed != endpoint.URL+"/mine" {
		t.Errorf("what was typed became %q", typed)
	}
	b.post(path, edit(page)).wantStatus(t, http.StatusSeeOther)
	got := r.onlySubscription()
	if got.URL != endpoint.URL+"/mine" || len(got.Events) != 1 || got.Events[0] != "document.sent" {
		t.Errorf("mine on top of theirs: %+v", got)
	}
}

func TestSupportSeesButChangesNothing(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.signedIn()
	made, value := r.subscribe(r.receiver().URL)
	uid := made.UID.String()
	for _, tab := range []string{"activity", "configuration", "secret", "health", "versions"} {
		page := b.get(paths.SubscriptionTab(uid, tab)).wantStatus(t, http.StatusOK)
		if page.find("main a[href$='/edit'], main a[href$='/pause'], main a[href$='/rotate'], "+
			"main a[href$='/delete'], main a[href*='/restore']").Length() != 0 {
			t.Errorf("the tab %s offers a change", tab)
		}
	}
	if b.get(paths.Subscriptions).find("main a[href$='/new']").Length() != 0 {
		t.Error("the list offers to create one")
	}
	for _, action := range []string{"edit", "test", "pause", "resume", "rotate", "restore", "delete"} {
		path := paths.To(paths.Subscription, uid) + "/" + action
		b.get(path).wantStatus(t, http.StatusForbidden)
		b.post(path, url.Values{"reason": {"x"}}).wantStatus(t, http.StatusForbidden)
	}
	b.post(paths.SubscriptionNew, r.filled("https://x.example/")).
		wantStatus(t, http.StatusForbidden)
	if got := r.onlySubscription(); got.Version != 1 {
		t.Errorf("support made version %d", got.Version)
	}
	answer := b.post(paths.To(paths.SubscriptionCompare, uid), url.Values{
		"candidate": {" " + value.Reveal() + "\n"},
	}).wantStatus(t, http.StatusOK)
	if !strings.Contains(answer.text("#compare"), "current secret") ||
		strings.Contains(answer.Raw, value.Reveal()) {
		t.Errorf("comparing says %q", answer.text("#compare"))
	}
}

func TestPauseResumeAndDelete(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b, endpoint := r.asOperator(), r.receiver()
	made, _ := r.subscribe(endpoint.URL)
	uid := made.UID.String()
	b.post(paths.To(paths.SubscriptionPause, uid), url.Values{"reason": {"their request"}}).
		wantStatus(t, http.StatusSeeOther)
	says := func(want string) {
		t.Helper()
		if got := b.get(paths.To(paths.Subscription, uid)).text("main"); !strings.Contains(got, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	says("what falls due is held back, and goes out at once when it is resumed.")
	r.publish("Approved")
	r.publish("Closed")
	r.work()
	says("2 deliveries wait, and go out at once when it is resumed.")
	again := b.get(paths.To(paths.SubscriptionPause, uid)).wantStatus(t, http.StatusSeeOther)
	got := b.get(again.Location).text("main .notice")
	if !strings.Contains(got, "It is already paused.") {
		t.Errorf("asked to pause it again, the page says %q", got)
	}
	asked := b.get(paths.To(paths.SubscriptionResume, uid))
	if got = asked.text(".resend-to"); !strings.Contains(got, "Events of Sunvolt") {
		t.Errorf("the form names %q, want the partner too", got)
	}
	resume := asked.text(".consequences")
	if !strings.Contains(resume, "2 deliveries wait") {
		t.Errorf("resuming announces %q", resume)
	}
	says("Paused: nothing is sent")
	remove := b.get(paths.To(paths.SubscriptionDelete, uid)).text(".consequences")
	if !strings.Contains(remove, "2 deliveries that have not gone out are cancelled") {
		t.Errorf("deleting announces %q", remove)
	}
	wrong := b.post(paths.To(paths.SubscriptionDelete, uid), url.Values{"confirm": {"yes"}}).
		wantStatus(t, http.StatusBadRequest)
	if wrong.find("#confirm[aria-invalid=true]").Length() != 1 {
		t.Error("nothing says what to type")
	}
	b.post(paths.To(paths.SubscriptionDelete, uid), url.Values{
		"confirm": {endpointOf(endpoint.URL)}, "reason": {"contract ended"},
	}).wantStatus(t, http.StatusSeeOther)
	for _, sent := range r.list() {
		if sent.State != delivery.StateCancelled {
			t.Errorf("a delivery is %s", sent.State)
		}
	}
	b.get(paths.To(paths.Subscription, uid)).wantStatus(t, http.StatusOK)
	b.get(paths.To(paths.SubscriptionEdit, uid)).wantStatus(t, http.StatusConflict)
	want := []string{"subscription.pause: their request", "subscription.delete: contract ended"}
	if diff := cmp.Diff(want, r.audited()); diff != "" {
		t.Errorf("audit log (-want +got):\n%s", diff)
	}
}

// Resuming a subscription that is not paused says so, and does not claim that anything was sent.
func TestResumingAnActiveSubscriptionSaysSo(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b, endpoint := r.asOperator(), r.receiver()
	made, _ := r.subscribe(endpoint.URL)
	act := paths.To(paths.SubscriptionResume, made.UID.String())
	for _, ask := range []func() answer{
		func() answer { return b.get(act) },
		func() answer { return b.post(act, url.Values{}) },
	} {
		reply := ask().wantStatus(t, http.StatusSeeOther)
		if got := b.get(reply.Location).text("main .notice"); got != "This subscription is not paused." {
			t.Errorf("the page says %q", got)
		}
	}
	if got := r.audited(); len(got) > 0 {
		t.Errorf("the audit log has %q, though nothing changed", got)
	}
}

func TestRotateAndRestore(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b, endpoint := r.asOperator(), r.receiver()
	made, old := r.subscribe(endpoint.URL)
	uid := made.UID.String()
	rotated := b.post(paths.To(paths.SubscriptionRotate, uid), url.Values{
		"secret_mode": {"generate"}, "overlap": {"1h0m0s"}, "reason": {"leaked"},
	}).wantStatus(t, http.StatusSeeOther)
	page := b.get(rotated.Location)
	if page.find("#new-secret").Length() != 1 || page.find("#overlap").Length() != 1 {
		t.Errorf("after the rotation: %s", page.text("main"))
	}
	answer := b.post(paths.To(paths.SubscriptionCompare, uid), url.Values{"candidate": {old.Reveal()}})
	if !strings.Contains(answer.text("#compare"), "previous secret") {
		t.Errorf("comparing the old one says %q", answer.text("#compare"))
	}
	moved := endpoint.URL + "/moved"
	r.do(func(ctx context.Context, tx *postgres.Tx) error {
		_, _, err := r.Webhooks.Subscriptions.Amend(ctx, tx, made.UID, subscription.Patch{URL: &moved},
			"test")
		return err
	})
	diff := b.get(paths.SubscriptionTab(uid, subscriptions.TabVersions) +
		"&from=1&to=3").text("#diff table")
	if !strings.Contains(diff, moved) || !strings.Contains(diff, "Secret") {
		t.Errorf("versions 1 and 3 differ in %q", diff)
	}
	form := b.get(paths.Where(paths.To(paths.SubscriptionRestore, uid), "version", "1")).wantStatus(t,
		http.StatusOK)
	if !strings.Contains(form.text("table"), moved) || strings.Contains(form.text("table"), "Secret") {
		t.Errorf("the restore announces %q", form.text("table"))
	}
	b.post(paths.To(paths.SubscriptionRestore, uid), url.Values{
		"version": {"1"}, "base": {"3"}, "reason": {"back"},
	}).wantStatus(t, http.StatusSeeOther)
	if got := r.onlySubscription(); got.URL != endpoint.URL || got.Version != 4 {
		t.Errorf("restored %+v", got)
	}
}

func TestATestEventShowsItsResult(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.asOperator()
	endpoint := r.receiver()
	made, _ := r.subscribe(endpoint.URL)
	uid := made.UID.String()
	sent := b.post(paths.To(paths.SubscriptionTest, uid), url.Values{"event": {"task.created"}}).
		wantStatus(t, http.StatusSeeOther)
	r.work()
	page := b.get(sent.Location).wantStatus(t, http.StatusOK)
	if !strings.Contains(page.text("#result"), "The endpoint confirmed the test event") {
		t.Errorf("the result says %q", page.text("#result"))
	}
	b.post(paths.To(paths.SubscriptionTest, uid), url.Values{"event": {"loan.lost"}}).
		wantStatus(t, http.StatusBadRequest)
	other, _ := r.subscribe(endpoint.URL + "/other")
	wrong := strings.Replace(sent.Location, uid, other.UID.String(), 1)
	b.get(wrong).wantStatus(t, http.StatusNotFound)
}

func TestTheAddressIsCheckedLive(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.asOperator()
	server := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(server.Close)
	for address, want := range map[string]string{
		"https://localhost/hook": "means this machine", "ftp://x.example/": "begin with https",
		server.URL: "Certificate",
	} {
		got := b.fragment().post(paths.SubscriptionCheck, url.Values{"url": {address}}).
			wantStatus(t, http.StatusOK)
		if !strings.Contains(got.text("li"), want) {
			t.Errorf("%s: %q does not say %q", address, got.text("li"), want)
		}
	}
	if n := len(r.list()); n != 0 {
		t.Errorf("checking made %d deliveries", n)
	}
}

func TestAFormThatIsSentTwiceMakesOneSubscription(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b, form := r.asOperator(), r.filled(r.receiver().URL+"/hook")
	form.Set("token", uuid.NewString())
	first := b.post(paths.SubscriptionNew, form).wantStatus(t, http.StatusSeeOther)
	second := b.post(paths.SubscriptionNew, form).wantStatus(t, http.StatusSeeOther)
	if first.Location != second.Location {
		t.Errorf("the second arrival leads to %s, the first led to %s", second.Location, first.Location)
	}
	r.onlySubscription()
	page := b.get(second.Location)
	if !strings.HasPrefix(page.text("#new-secret"), "whsec_") ||
		!strings.Contains(page.text("main"), "Nothing was done a second time") {
		t.Errorf("after the second arrival: %q", page.text("main"))
	}
	form.Del("token")
	b.send(http.MethodPost, paths.SubscriptionNew, form).wantStatus(t, http.StatusBadRequest)
}
