package console_test

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/PuerkitoBio/goquery"
	"github.com/google/uuid"

	"drawbridge/internal/app/apptest"
	"drawbridge/internal/postgres"
	"drawbridge/internal/webhook/delivery"
	"drawbridge/internal/webhook/fault"
	"drawbridge/internal/webhook/sender"
	"drawbridge/internal/webhook/subscription"
	"drawbridge/views/paths"
)

// delivered makes a delivery whose only attempt had these answers.
func (r *harness) delivered(answers ...http.HandlerFunc) (delivery.Delivery, *apptest.Endpoint) {
	r.Helper()
	endpoint := r.receiver(answers...)
	r.subscribe(endpoint.URL + "/hook")
	r.publish("Approved")
	r.work()
	return r.list()[0], endpoint
}

func TestDeliveryPage(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.signedIn()
	sent, endpoint := r.delivered(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = w.Write([]byte(`{"error":"maintenance","n":12345678901234567890}`))
	})
	page := b.get(paths.To(paths.Delivery, sent.UID.String())).wantStatus(t, http.StatusOK)
	if got := page.text(".headline"); got != "Application status changed Retrying" {
		t.Errorf("headline %q", got)
	}
	if got := page.text("#attempt-1 h3"); got != "Attempt 1: 503 Service Unavailable" {
		t.Errorf("attempt %q", got)
	}
	for selector, want := range map[string]string{
		"#attempt-1 [data-tab=Response] pre": `"n" : 12345678901234567890`,
		"#attempt-1 [data-tab=Request]":      endpoint.URL + "/hook",
		"#body-sent pre":                     `"status" : "Approved"`,
		".facts":                             sent.SubscriptionUID.String(),
		"[aria-label=Diagnosis]":             "Likely owner: partner",
		"#moment-next":                       "Attempt 2 is due",
	} {
		if got := page.text(selector); !strings.Contains(got, want) {
			t.Errorf("%s says %q, want %q", selector, got, want)
		}
	}
	curl, _ := page.find("button[data-copy^='curl ']").Attr("data-copy")
	if !strings.Contains(curl, endpoint.URL+"/hook") || !strings.Contains(curl, "<X-API-KEY>") {
		t.Errorf("the curl command is %q", curl)
	}
}

// TestDeliveryPageNamesTheFault: the page says that the sandbox caused the failure on purpose.
func TestDeliveryPageNamesTheFault(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.signedIn()
	endpoint := r.receiver()
	to, _ := r.subscribe(endpoint.URL + "/hook")
	r.do(func(ctx context.Context, tx *postgres.Tx) error {
		_, err := r.Faults.Place(ctx, tx,
			fault.Order{SubscriptionUID: to.UID, Fault: delivery.FaultDuplicate, Count: 1})
		return err
	})
	r.publish("Approved")
	r.work()
	page := b.get(paths.To(paths.Delivery, r.list()[0].UID.String())).wantStatus(t, http.StatusOK)
	if got := page.text("#attempt-1"); !strings.Contains(got, "Sandbox fault: duplicate") {
		t.Errorf("the attempt says %q", got)
	}
}

func TestDeliveryPageMasksSecrets(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.signedIn()
	endpoint := r.receiver(func(w http.ResponseWriter, q *http.Request) {
		// Some endpoints echo what they received.
		_, _ = w.Write([]byte("you sent " + q.Header.Get("x-api-key")))
	})
	_, value := r.subscribe(endpoint.URL)
	r.publish("Approved")
	r.work()
	page := b.get(paths.To(paths.Delivery, r.list()[0].UID.String())).wantStatus(t, http.StatusOK)
	for _, secret := range []string{value.Reveal(), "the-partners-own-key"} {
		if strings.Contains(page.Raw, secret) {
			t.Errorf("the page shows the secret %q", secret)
		}
	}
	if got := page.text("#attempt-1 .masked"); got != "hidden (masked)" {
		t.Errorf("the masked header reads %q", got)
	}
}

func TestHostileAnswerIsInert(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.signedIn()
	planted := `<script>planted()</script><img src=x onerror="planted()">` + "\x1b[2J\r\n"
	sent, _ := r.delivered(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Planted", planted[:26])
		w.WriteHeader(http.StatusTeapot)
		_, _ = w.Write([]byte(planted))
	})
	page := b.get(paths.To(paths.Delivery, sent.UID.String())).wantStatus(t, http.StatusOK)
	page.find("script").Each(func(_ int, script *goquery.Selection) {
		if source, _ := script.Attr("src"); !strings.HasPrefix(source, "/static/") {
			t.Errorf("planted script %q", source)
		}
	})
	if page.find("[onerror]").Length() != 0 {
		t.Error("planted handler")
	}
	got := page.find("#attempt-1 [data-tab=Response] pre").Text()
	if !strings.Contains(got, `onerror="planted()">␛[2J`) {
		t.Errorf("the answer is shown as %q", got)
	}
}

func TestDiagnosis(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		state func(r *harness) delivery.Delivery
		want  string
	}{
		{"delivered", func(r *harness) delivery.Delivery {
			sent, _ := r.delivered()
			return sent
		}, "The partner has received it The endpoint answered 200 to attempt 1."},
		{"retrying", func(r *harness) delivery.Delivery {
			sent, _ := r.delivered(status(http.StatusUnauthorized))
			return sent
		}, "It failed and will be tried again by itself"},
		{"failed", func(r *harness) delivery.Delivery {
			sent, _ := r.delivered(status(http.StatusNotFound))
			r.fail(sent)
			return sent
		}, "All attempts are used up"},
		{"paused", func(r *harness) delivery.Delivery {
			endpoint := r.receiver()
			subscribed, _ := r.subscribe(endpoint.URL)
			r.do(func(ctx context.Context, tx *postgres.Tx) error {
				_, err := r.Webhooks.Subscriptions.Pause(ctx, tx, subscribed.UID, "test")
				return err
			})
			r.publish("Approved")
			r.work()
			return r.list()[0]
		}, "It waits: the subscription is paused"},
		{"cancelled", func(r *harness) delivery.Delivery {
			endpoint := r.receiver()
			subscribed, _ := r.subscribe(endpoint.URL)
			r.publish("Approved")
			r.remove(subscribed)
			return r.list()[0]
		}, "It was cancelled and will not be sent"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			r := newHarness(t)
			sent := test.state(r)
			page := r.signedIn().get(paths.To(paths.Delivery, sent.UID.String()))
			if got := page.text("[aria-label=Diagnosis]"); !strings.HasPrefix(got, test.want) {
				t.Errorf("diagnosis %q, want %q", got, test.want)
			}
		})
	}
}

// TestDiagnosisWithoutCredentials: the diagnosis blames no secret if none was sent.
func TestDiagnosisWithoutCredentials(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.signedIn()
	endpoint := r.receiver(status(http.StatusUnauthorized))
	var made subscription.Subscription
	r.do(func(ctx context.Context, tx *postgres.Tx) (err error) {
		made, _, err = r.Webhooks.Subscriptions.Subscribe(ctx, tx, r.Partner, subscription.Settings{
			URL: endpoint.URL, Auth: sender.AuthNone, Events: []string{subscription.AllEvents},
		}, "test")
		return err
	})
	r.publish("Approved")
	r.work()
	r.watch()
	for _, path := range []string{
		paths.To(paths.Delivery, r.list()[0].UID.String()),
		paths.To(paths.Subscription, made.UID.String()),
	} {
		got := b.get(path).text("[aria-label=Diagnosis]")
		if !strings.Contains(got, "wants credentials, and none were sent") {
			t.Errorf("%s says %q", path, got)
		}
	}
}

// remove deletes a subscription.
func (r *harness) remove(subscribed subscription.Subscription) {
	r.Helper()
	r.do(func(ctx context.Context, tx *postgres.Tx) error {
		_, err := r.Webhooks.Subscriptions.Delete(ctx, tx, subscribed.UID, "test")
		return err
	})
}

// TestResendWithoutScript goes from the failed delivery over the form's own page to the new
// delivery, which reaches the partner.
func TestResendWithoutScript(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.signedIn()
	sent, endpoint := r.delivered(status(http.StatusInternalServerError), status(http.StatusOK))
	r.fail(sent)
	page := b.get(paths.To(paths.Delivery, sent.UID.String()))
	href, _ := page.find("a[data-open=resend]").Attr("href")
	form := b.get(href).wantStatus(t, http.StatusOK).find("main form[method=post]")
	action, _ := form.Attr("action")
	back := b.post(action, url.Values{"reason": {"Partner fixed the endpoint"}}).wantStatus(t,
		http.StatusSeeOther)
	r.work()
	made := r.list()[0]
	if back.Location != paths.To(paths.Delivery, made.UID.String()) {
		t.Fatalf("after the re-send: %q", back.Location)
	}
	fresh := b.get(back.Location).wantStatus(t, http.StatusOK)
	if got := fresh.text(".headline"); got != "Application status changed Delivered re-send" {
		t.Errorf("headline %q", got)
	}
	if got := fresh.text("main > .notice"); got != "Re-sent. This is the new delivery." {
		t.Errorf("notice %q", got)
	}
	if b.get(back.Location).find("main > .notice").Length() != 0 {
		t.Error("the notice stays")
	}
	bodies := endpoint.Received()
	if len(bodies) != 2 || bodies[0] != bodies[1] {
		t.Errorf("the partner received %q, want the same bytes twice", bodies)
	}
	old := b.get(paths.To(paths.Delivery, sent.UID.String()))
	got := old.text("#resend-" + made.UID.String())
	if !strings.Contains(got, "Partner fixed the endpoint") ||
		!strings.Contains(got, supportEmail) {
		t.Errorf("the old delivery says of its re-send %q", got)
	}
	var entry struct {
		Actor   string `db:"actor"`
		Subject string `db:"subject"`
		Reason  string `db:"reason"`
	}
	r.must(r.DB.Get(&entry,
		`SELECT actor, subject, reason FROM audit_log WHERE action = 'delivery.resend'`))
	if entry.Actor != supportEmail || entry.Subject != sent.UID.String() || entry.Reason == "" {
		t.Errorf("audit log %+v", entry)
	}
}

func TestResendWithScript(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.signedIn().fragment()
	sent, _ := r.delivered()
	part := b.post(paths.To(paths.Resend, sent.UID.String()), url.Values{}).wantStatus(t,
		http.StatusOK)
	made := r.list()[0]
	if part.find("html head title").Length() != 0 ||
		part.find("#resend-"+made.UID.String()).Length() != 1 {
		t.Errorf("the region does not list the new delivery: %.200q", part.Raw)
	}
	trigger := part.Header.Get("HX-Trigger")
	if !strings.Contains(trigger, `"console:done"`) || !strings.Contains(trigger, made.UID.String()) {
		t.Errorf("the script is told %q", trigger)
	}
}

func TestResendRefusals(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.signedIn()
	sent, _ := r.delivered()
	path := paths.To(paths.Resend, sent.UID.String())
	long := url.Values{"reason": {strings.Repeat("x", 501)}}
	page := b.post(path, long).wantStatus(t, http.StatusBadRequest)
	kept, _ := page.find("input[name=reason]").Attr("value")
	if !strings.Contains(page.text("[role=alert]"), "500") || len(kept) != 501 {
		t.Errorf("a long reason: %q, kept %d characters", page.text("[role=alert]"), len(kept))
	}
	part := b.fragment().post(path, long).wantStatus(t, http.StatusBadRequest)
	if got := part.text("[role=alert]"); !strings.Contains(got, "500") {
		t.Errorf("a script is told %q", got)
	}
	subscribed, err := r.Webhooks.Subscriptions.Get(t.Context(), sent.SubscriptionUID)
	r.must(err)
	r.remove(subscribed)
	b.post(path, url.Values{}).wantStatus(t, http.StatusConflict)
	if b.get(paths.To(paths.Delivery, sent.UID.String())).find("[data-open=resend]").Length() != 0 {
		t.Error("a delivery of a deleted subscription offers a re-send")
	}
	if got := len(r.list()); got != 1 || r.audits("delivery.resend") != 0 {
		t.Errorf("refused re-sends left %d deliveries and %d audit entries", got,
			r.audits("delivery.resend"))
	}
}

func TestResendNamesRisks(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.signedIn()
	first, endpoint := r.delivered()
	risks := func(sent delivery.Delivery) string {
		return b.get(paths.To(paths.Resend, sent.UID.String())).text(".risk")
	}
	if got := risks(first); !strings.Contains(got, "received this event already") ||
		strings.Contains(got, "later event") || strings.Contains(got, "changed since") {
		t.Errorf("a delivered event: %q", got)
	}
	r.ahead.Store(int64(time.Second))
	r.publish("Closed")
	r.work()
	if got := risks(first); !strings.Contains(got,
		"A later event of this application was delivered already") {
		t.Errorf("an event that would be overtaken: %q", got)
	}
	r.publish("Declined")
	if got := risks(r.list()[0]); !strings.Contains(got, "still being tried") {
		t.Errorf("a pending event: %q", got)
	}
	r.do(func(ctx context.Context, tx *postgres.Tx) error {
		_, err := r.Webhooks.Deliveries.Resend(ctx, tx, []uuid.UUID{first.UID}, "test", "")
		return err
	})
	if got := risks(first); !strings.Contains(got, "A re-send of it is under way") {
		t.Errorf("an event that is sent again already: %q", got)
	}
	moved := endpoint.URL + "/moved"
	r.do(func(ctx context.Context, tx *postgres.Tx) error {
		_, _, err := r.Webhooks.Subscriptions.Amend(ctx, tx, first.SubscriptionUID,
			subscription.Patch{URL: &moved}, "test")
		return err
	})
	if got := risks(first); !strings.Contains(got, "changed since") {
		t.Errorf("after a change of the subscription: %q", got)
	}
	if got := b.get(paths.To(paths.Resend, first.UID.String())).text(".resend-to"); got != moved {
		t.Errorf("the form names the address %q, want the present one", got)
	}
}
