package console_test

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
	"drawbridge/internal/webhook/bulk"
	"drawbridge/internal/webhook/delivery"
	"drawbridge/internal/webhook/sender"
	"drawbridge/internal/webhook/subscription"
	"drawbridge/views/paths"
)

// failures makes failed deliveries of the application.
func (r *harness) failures(count int) []delivery.Delivery {
	r.Helper()
	for n := range count {
		r.publish(fmt.Sprintf("Step %d", n+1))
		r.ahead.Add(int64(time.Second))
	}
	r.exec(`
		UPDATE deliveries
		   SET state = 'failed', attempt_count = 3, next_attempt_at = NULL, queued = false,
		       last_http_status = 503, last_error_class = 'http_5xx', last_duration_us = 1000
		 WHERE state = 'pending'`)
	r.exec(`DELETE FROM river_job`)
	r.ahead.Add(int64(time.Second))
	return r.list()
}

// advance does the workers' part of a bulk re-send.
func (r *harness) advance(page string, run int) {
	r.Helper()
	uid := uuid.MustParse(page[strings.LastIndex(page, "/")+1:])
	_, err := r.Webhooks.Bulk.Advance(r.Context(), bulk.Args{BulkUID: uid, Run: run})
	r.must(err)
	r.ahead.Add(int64(time.Second))
	_, err = r.Webhooks.Deliveries.EnqueueDue(r.Context())
	r.must(err)
	r.work()
}

// begin posts a selection and returns the address of its draft.
func (b *browser) begin(form url.Values) string {
	b.Helper()
	answer := b.post(paths.BulkNew, form).wantStatus(b.T, http.StatusSeeOther)
	return answer.Location
}

func (r *harness) auditedBulk(action string) int {
	r.Helper()
	return r.count(
		`SELECT count(*) FROM audit_log WHERE action = $1 AND actor = $2`, action, supportEmail)
}

func TestBulkResendOfSelectedDeliveries(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.signedIn()
	endpoint := r.receiver()
	r.subscribe(endpoint.URL + "/hook")
	deliveries := r.failures(3)
	page := b.begin(url.Values{
		"delivery": {deliveries[0].UID.String(), deliveries[2].UID.String()},
	})
	draft := b.get(page).wantStatus(t, http.StatusOK)
	if got := draft.text(".tiles .tile:first-child dd"); !strings.HasPrefix(got, "2 ") {
		t.Errorf("the plan sends %q", got)
	}
	if got := draft.text("#confirm h2"); got != "Re-send 2 deliveries?" {
		t.Errorf("the dialog asks %q", got)
	}

	refused := b.post(page+"/confirm", url.Values{"planned": {"2"}, "reason": {" "}})
	refused.wantStatus(t, http.StatusBadRequest)
	got := refused.text(".bulk-ask .field-fault")
	if !strings.Contains(got, "The reason is required") {
		t.Errorf("without a reason: %q", got)
	}
	confirm := url.Values{"planned": {"2"}, "reason": {"endpoint was down"}}
	b.post(page+"/confirm", confirm).wantStatus(t, http.StatusSeeOther)
	r.advance(page, 1)
	r.advance(page, 1)
	done := b.get(page).wantStatus(t, http.StatusOK)
	if got := done.text("#progress-title"); got != "All have ended" {
		t.Errorf("at the end: %q", got)
	}
	if got := done.find("#results tbody tr").Length(); got != 2 || len(endpoint.Received()) != 2 {
		t.Errorf("%d results, %d requests", got, len(endpoint.Received()))
	}
	if got := done.text("#results tbody"); strings.Count(got, "HTTP 200") != 2 {
		t.Errorf("results: %s", got)
	}
	var sent string
	r.must(r.DB.GetContext(t.Context(), &sent, `SELECT new_uid FROM bulk_resend_items LIMIT 1`))
	if b.get(paths.To(paths.Delivery, sent)).find(`main a[href="`+page+`"]`).Length() == 0 {
		t.Error("the new delivery does not lead back to the bulk re-send")
	}
	file := b.get(page+"/items.csv").wantStatus(t, http.StatusOK)
	if lines := strings.Count(file.Raw, "\n"); lines != 3 || !strings.Contains(file.Raw, "delivered") {
		t.Errorf("the file: %s", file.Raw)
	}
	for _, action := range []string{"draft", "confirm", "export"} {
		if r.auditedBulk("bulk_resend."+action) != 1 {
			t.Errorf("the audit log does not tell of the %s", action)
		}
	}
	again := b.post(page+"/confirm", confirm).wantStatus(t, http.StatusSeeOther)
	if text := b.get(again.Location).text("main"); !strings.Contains(text, "cannot be confirmed") {
		t.Errorf("confirmed twice: %.300s", text)
	}
	list := b.get(paths.Bulks).wantStatus(t, http.StatusOK)
	if got := list.text("tbody tr"); !strings.Contains(got, "2 chosen deliveries") {
		t.Errorf("the list shows %q", got)
	}
}

func TestBulkResendOfAllThatMatchIsPausedAndCancelled(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.signedIn()
	r.subscribe(r.receiver().URL)
	r.failures(30)
	page := b.begin(url.Values{"all": {"1"}, "filter": {"state=failed&cursor=x"}})
	if got := b.get(page).text("h1"); got != "Failed deliveries" {
		t.Errorf("titled %q", got)
	}
	wrong := b.post(page+"/options", url.Values{"pace": {"5000"}, "skip_newer": {"1"}})
	if got := wrong.wantStatus(t, http.StatusBadRequest).text(".field-fault"); !strings.Contains(
		got, "from 1 to 500") {
		t.Errorf("a wrong pace: %q", got)
	}
	if wrong.find("#pace[value='5000']").Length() != 1 ||
		wrong.find("input[name=skip_newer]:checked").Length() != 1 {
		t.Error("what was typed is gone")
	}
	b.post(page+"/options", url.Values{"pace": {"5"}, "skip_newer": {"1"}}).
		wantStatus(t, http.StatusSeeOther)
	confirmed := time.Now()
	b.post(page+"/confirm", url.Values{"planned": {"30"}, "reason": {"outage"}}).
		wantStatus(t, http.StatusSeeOther)
	r.advance(page, 1)
	const pace = 5
	most := pace + int(pace*time.Since(confirmed).Seconds())
	paused := b.fragment().post(page+"/pause", nil).wantStatus(t, http.StatusOK)
	var waiting int
	title := paused.text("#progress-title")
	_, err := fmt.Sscanf(title, "Paused: %d deliveries wait", &waiting)
	sent := 30 - waiting
	if err != nil || sent < pace || sent > most {
		t.Errorf("paused: %q (%v), where %d to %d were to be sent", title, err, pace, most)
	}
	for range 2 { // the last delivery falls due within two seconds
		r.advance(page, 1)
	}
	b.get(page+"?after=2147483648").wantStatus(t, http.StatusBadRequest)
	delivered := b.get(page + "?outcome=delivered").find("#results tbody tr").Length()
	if delivered != sent {
		t.Errorf("%d delivered while paused, %d were sent before", delivered, sent)
	}
	b.post(page+"/resume", nil).wantStatus(t, http.StatusSeeOther)
	r.advance(page, 2)
	asked := b.get(page + "?cancel=1")
	if got := asked.text(".bulk-ask"); !strings.Contains(got, "deliveries are withdrawn") {
		t.Errorf("asks %q", got)
	}
	b.post(page+"/cancel", nil).wantStatus(t, http.StatusSeeOther)
	cancelled := b.get(page)
	gone := r.count(`SELECT count(*) FROM bulk_resend_items WHERE new_uid IS NOT NULL`)
	if got, want := cancelled.text(".bulk-bar:first-child span"),
		fmt.Sprintf("%d of 30 sent", gone); gone == 30 || got != want {
		t.Errorf("cancelled, it says %q, want %q", got, want)
	}
	if got := cancelled.text("#progress-title"); !strings.HasPrefix(got, "Cancelled: ") {
		t.Errorf("cancelled: %q", got)
	}
	b.post(page+"/resume", nil).wantStatus(t, http.StatusConflict)
}

// A bulk re-send sends exactly what its confirmation said, even if another tab or user made
// a change that leaves the count as it is. A user who sees the new state may confirm that.
func TestABulkResendIsTheOneThatWasConfirmed(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name string
		// change happens while the confirmation is open, said is what the refusal says.
		change func(b *browser, page string, subscribed subscription.Subscription)
		said   []string
	}{
		{"pace", func(b *browser, page string, _ subscription.Subscription) {
			b.post(page+"/options", url.Values{"pace": {"500"}}).wantStatus(b.T, http.StatusSeeOther)
		}, []string{"it was at most 10 a second", "is at most 500 a second"}},
		{"choice", func(b *browser, page string, _ subscription.Subscription) {
			b.post(page+"/options", url.Values{"pace": {"10"}, "skip_newer": {"1"}}).
				wantStatus(b.T, http.StatusSeeOther)
		}, []string{"is without those with a newer delivered event"}},
		{"endpoint", func(b *browser, _ string, subscribed subscription.Subscription) {
			path := paths.To(paths.SubscriptionEdit, subscribed.UID.String())
			form := edit(b.get(path))
			form.Set("url", subscribed.URL+"moved")
			b.post(path, form).wantStatus(b.T, http.StatusSeeOther)
		}, []string{"it was 3 to ", "/hook and is 3 to ", "/hookmoved now"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			r := newHarness(t)
			b, other := r.signedIn(), r.asOperator()
			subscribed, _ := r.subscribe(r.receiver().URL + "/hook")
			r.failures(3)
			page := b.begin(url.Values{"all": {"1"}, "filter": {"state=failed"}})
			confirmation := func(shown answer) url.Values {
				values := url.Values{"reason": {"outage"}}
				for _, field := range shown.find(".bulk-ask input[type=hidden]").EachIter() {
					values.Set(field.AttrOr("name", ""), field.AttrOr("value", ""))
				}
				return values
			}
			stale := confirmation(b.get(page + "?confirm=1"))
			test.change(other, page, subscribed)
			refused := b.post(page+"/confirm", stale).wantStatus(t, http.StatusConflict)
			if said := refused.text("main .notice-bad"); !containsAll(said, test.said) {
				t.Errorf("the refusal says %q", said)
			}
			b.post(page+"/confirm", confirmation(b.get(page+"?confirm=1"))).
				wantStatus(t, http.StatusSeeOther)
			if got := r.auditedBulk("bulk_resend.confirm"); got != 1 {
				t.Errorf("it was confirmed %d times", got)
			}
		})
	}
}

func TestLargeBulkResendAsksForItsCount(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.signedIn()
	r.subscribe(r.receiver().URL)
	original := r.failures(1)[0]
	r.exec(`
		WITH event AS (
			INSERT INTO events (event_uid, occurred_at, kind, partner_uid, merchant_uid,
			                    application_uid, status, body)
			SELECT gen_random_uuid(), occurred_at + n * interval '1 microsecond', kind, partner_uid,
			       merchant_uid, application_uid, status, body
			  FROM events, generate_series(1, 1100) AS n
			 WHERE event_uid = $1
			RETURNING *
		)
		INSERT INTO deliveries (delivery_uid, created_at, subscription_uid, event_uid, event_at,
		                        event, application_uid, status, state, queued)
		SELECT gen_random_uuid(), occurred_at, $2, event_uid, occurred_at, kind, application_uid,
		       status, 'failed', false
		  FROM event`, original.EventUID, original.SubscriptionUID)
	page := b.begin(url.Values{"all": {"1"}, "filter": {"state=failed"}})
	confirm := url.Values{"planned": {"1101"}, "reason": {"outage"}}
	refused := b.post(page+"/confirm", confirm).wantStatus(t, http.StatusBadRequest)
	if got := refused.text(".bulk-ask .field-fault"); !strings.Contains(got, "1,101") {
		t.Errorf("without the count: %q", got)
	}
	if got, _ := refused.find("#page-reason").Attr("value"); got != "outage" {
		t.Errorf("the reason became %q", got)
	}
	confirm.Set("count", "1,101")
	r.failures(1) // created after the draft and not included
	b.post(page+"/confirm", confirm).wantStatus(t, http.StatusSeeOther)
	if got := b.get(page).text("#progress-title"); got != "Sending" {
		t.Errorf("confirmed: %q", got)
	}
}

func TestBulkResendStaysWithinOnePartner(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.signedIn()
	r.subscribe(r.receiver().URL)
	r.failures(2)
	first := r.Partner
	r.seed("<b>Northwind</b>", "Northwind Reno")
	r.subscribe(r.receiver().URL)
	deliveries := r.failures(1)
	form := url.Values{"all": {"1"}, "filter": {"state=failed"}}
	if len(deliveries) != 3 {
		t.Fatalf("%d deliveries", len(deliveries))
	}
	// A page to come back to.
	asking := b.post(paths.BulkNew, form).wantStatus(t, http.StatusSeeOther).Location
	asked := b.get(asking).wantStatus(t, http.StatusOK)
	if got := asked.find("input[name=partner]").Length(); got != 2 {
		t.Fatalf("%d partners to choose from: %s", got, asked.text("main"))
	}
	if !strings.Contains(asked.text("form"), "<b>Northwind</b> , 1 delivery") {
		t.Errorf("asks %q", asked.text("main form"))
	}
	form.Set("partner", first.String())
	page := b.begin(form)
	if got := b.get(page).text(".tiles .tile:first-child dd"); !strings.HasPrefix(got, "2 ") {
		t.Errorf("the chosen partner's plan sends %q", got)
	}
	chosen := url.Values{"partner": {r.Partner.String()}}
	for _, sent := range deliveries {
		chosen.Add("delivery", sent.UID.String())
	}
	if got := b.get(b.begin(chosen)).text("h1"); got != "1 chosen delivery" {
		t.Errorf("of a mixed selection, %q", got)
	}
	chosen.Del("partner")
	asking = b.post(paths.BulkNew, chosen).wantStatus(t, http.StatusSeeOther).Location
	kept, _ := b.get(asking).find("form[method=post] input[name=delivery]").Attr("value")
	chosen = url.Values{"partner": {first.String()}, "delivery": {kept}}
	if got := b.get(b.begin(chosen)).text("h1"); got != "2 chosen deliveries" {
		t.Errorf("of those of the other partner, %q", got)
	}
	// If the chosen partner has nothing left to send, no other partner's deliveries are sent.
	asking = b.post(paths.BulkNew, url.Values{
		"partner": {uuid.NewString()}, "delivery": {deliveries[0].UID.String()},
	}).wantStatus(t, http.StatusSeeOther).Location
	if asked := b.get(asking).find("input[name=partner]").Length(); asked != 1 {
		t.Errorf("%s asks for one of %d partners", asking, asked)
	}
}

func TestBulkStartNamesWhatIsWrong(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.signedIn()
	subscribed, _ := r.subscribe(r.receiver().URL)
	deliveries := r.failures(2)
	since := deliveries[len(deliveries)-1].CreatedAt.UTC()
	start := b.get(paths.BulkNew+"?subscription="+subscribed.UID.String()+
		"&recover_since="+since.Format(time.RFC3339)).wantStatus(t, http.StatusOK)
	chosen, _ := start.find("#bulk-subscription option[selected]").Attr("value")
	if chosen != subscribed.UID.String() {
		t.Errorf("chosen is %q", chosen)
	}
	if got, _ := start.find("#bulk-since").Attr("value"); got != since.Format("2006-01-02T15:04") {
		t.Errorf("begins at %q", got)
	}
	wrong := b.post(paths.BulkNew, url.Values{"kind": {"recover"}, "since": {"soon"}}).
		wantStatus(t, http.StatusBadRequest)
	for _, id := range []string{"#bulk-subscription", "#bulk-since"} {
		if wrong.find(`[role=alert] a[href="`+id+`"]`).Length() != 1 {
			t.Errorf("nothing leads to %s", id)
		}
	}
	page := b.begin(url.Values{
		"kind": {"recover"}, "subscription": {subscribed.UID.String()},
		"since": {since.Add(-time.Minute).Format("2006-01-02T15:04")},
	})
	if got := b.get(page).text(".tiles .tile:first-child dd"); !strings.HasPrefix(got, "2 ") {
		t.Errorf("recovers %q", got)
	}
	b.post(page+"/cancel", nil).wantStatus(t, http.StatusSeeOther)
	b.get(page).wantStatus(t, http.StatusNotFound)
}

// A recovery that a partner's client began shows that, and can be paused and cancelled like
// any other; the client is told.
func TestARecoveryOfAClientIsSteered(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.signedIn()
	subscribed, _ := r.subscribe(r.receiver().URL)
	oldest := r.failures(2)[1]
	const client = "client drawbridge-4711"
	var begun bulk.Resend
	r.do(func(ctx context.Context, tx *postgres.Tx) (err error) {
		begun, err = r.Webhooks.Bulk.Recover(ctx, tx, bulk.Recovery{
			PartnerUID: r.Partner, SubscriptionUID: subscribed.UID,
			Merchants: []uuid.UUID{r.Merchant}, Since: oldest.EventAt, By: client,
		})
		return err
	})
	page := paths.To(paths.Bulk, begun.UID.String())
	for _, address := range []string{paths.Bulks, page} {
		if got := b.get(address).text("main"); !strings.Contains(got, client) {
			t.Errorf("%s does not name the client: %s", address, got)
		}
	}
	for _, step := range []struct {
		action string
		state  bulk.State
	}{
		{"pause", bulk.StatePaused}, {"resume", bulk.StateRunning}, {"cancel", bulk.StateCancelled},
	} {
		b.post(page+"/"+step.action, nil).wantStatus(t, http.StatusSeeOther)
		recovery, err := r.Webhooks.Bulk.RecoveryOf(t.Context(), begun.UID, client)
		if err != nil || recovery.State != step.state || recovery.Counts.Total() != 2 {
			t.Errorf("after %s the client reads %+v, %v", step.action, recovery, err)
		}
		if r.auditedBulk("bulk_resend."+step.action) != 1 {
			t.Errorf("the audit log does not tell of the %s", step.action)
		}
	}
}

func TestEventPagesTellWhoGotItAndReplay(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.signedIn()
	if got := b.get(paths.Events).text(".empty h2"); got != "No events yet" {
		t.Errorf("without events: %q", got)
	}
	r.subscribe(r.receiver().URL)
	r.do(func(ctx context.Context, tx *postgres.Tx) error {
		_, _, err := r.Webhooks.Subscriptions.Subscribe(ctx, tx, r.Partner, subscription.Settings{
			URL: r.receiver().URL, Auth: sender.AuthHMAC,
			Events: []string{string(lending.EventFundingSettled)},
		}, "test")
		return err
	})
	event := r.publish("<img src=x onerror=alert(1)>")[0].EventUID
	r.work()
	r.ahead.Add(int64(time.Second))
	late, _ := r.subscribe(r.receiver().URL)
	list := b.get(paths.Events+"?kind="+string(lending.EventStatusUpdated)+
		"&application="+r.application.String()).wantStatus(t, http.StatusOK)
	if got := list.text("tbody tr"); !strings.Contains(got, "1 delivered, 1 not chosen") {
		t.Errorf("the list says %q", got)
	}
	if got := list.text(".table-tools"); got != "1 event" {
		t.Errorf("counts %q", got)
	}
	if list.find("tbody img").Length() != 0 {
		t.Error("a status became markup")
	}
	b.get(paths.Events+"?since=soon&kind=x").wantStatus(t, http.StatusBadRequest)

	page := b.get(paths.To(paths.Event, event.String())).wantStatus(t, http.StatusOK)
	for _, want := range []string{
		"Delivered", "It had not chosen events of this kind", "It was created after the event",
	} {
		if !strings.Contains(page.text(".ledger"), want) {
			t.Errorf("the ledger lacks %q: %s", want, page.text(".ledger"))
		}
	}
	offered := page.find("input[name=subscription]")
	if got, _ := offered.Attr("value"); offered.Length() != 1 || got != late.UID.String() {
		t.Errorf("%d subscriptions to replay to, the first %s", offered.Length(), got)
	}
	draft := b.begin(url.Values{
		"kind": {"replay"}, "event": {event.String()}, "subscription": {late.UID.String()},
	})
	b.post(draft+"/confirm", url.Values{"planned": {"1"}, "reason": {"came late"}}).
		wantStatus(t, http.StatusSeeOther)
	r.advance(draft, 1)
	if got := b.get(paths.To(paths.Event, event.String())).text(".ledger"); strings.Count(
		got, "Delivered") != 2 {
		t.Errorf("after the replay: %s", got)
	}
	b.get(paths.To(paths.Event, uuid.NewString())).wantStatus(t, http.StatusNotFound)
}
