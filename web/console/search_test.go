package console_test

import (
	"context"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/email"
	"drawbridge/internal/lending"
	"drawbridge/internal/operator"
	"drawbridge/internal/partner"
	"drawbridge/internal/postgres"
	"drawbridge/views/paths"
)

func searchFor(text string) string {
	return paths.Search + "?" + url.Values{"q": {text}}.Encode()
}

// A single hit redirects to its page.
func TestSearchLeadsToThePage(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.signedIn()
	made := deliverAll(r)
	delivery := made[0].UID.String()
	product := r.NewProduct(t, "ROOF-3", "100")
	offered := paths.Products + "#product-" + product.UID
	for sought, want := range map[string]string{
		delivery:                         paths.To(paths.Delivery, delivery),
		"  " + delivery + "\n":           paths.To(paths.Delivery, delivery),
		strings.ToUpper(delivery):        paths.To(paths.Delivery, delivery),
		made[0].EventUID.String():        paths.To(paths.Event, made[0].EventUID.String()),
		made[0].SubscriptionUID.String(): paths.To(paths.Subscription, made[0].SubscriptionUID.String()),
		made[0].URL:                      paths.To(paths.Subscription, made[0].SubscriptionUID.String()),
		r.application.String():           paths.To(paths.Application, r.application.String()),
		"ANA@example.com":                paths.To(paths.Application, r.application.String()),
		"ana lim":                        paths.To(paths.Application, r.application.String()),
		"Lima":                           paths.To(paths.Application, r.application.String()),
		"phoenix":                        paths.To(paths.Merchant, r.Merchant.String()),
		r.Partner.String():               paths.To(paths.Partner, r.Partner.String()),
		product.UID:                      offered,
		"roof-3":                         offered,
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

// Every id that a page or an answer shows is found, also as written in the subject of an
// event or as the id of a mail.
func TestSearchFindsEveryKindOfID(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	application := r.borrowed(r.file("a.pdf", "application/pdf", "%PDF-1.4")).String()
	one := func(query string, args ...any) (text string) {
		t.Helper()
		r.must(r.DB.Get(&text, query, args...))
		return text
	}
	certificate := one(`SELECT certificate_uid FROM certificates`)
	file := one(`SELECT file_uid FROM certificate_files`)
	task := one(`SELECT task_uid FROM tasks`)
	draw := one(`SELECT max(merchant_disbursement_id)::text FROM disbursements`)
	bulk := one(`
		INSERT INTO bulk_resends (bulk_uid, partner_uid, kind, scope, pace, state, created_by,
		                          created_at)
		VALUES (gen_random_uuid(), $1, 'recover', '{}', 20, 'draft', 'sam@lender.example', $2)
		RETURNING bulk_uid`, r.Partner, r.DB.Now())
	item := one(`
		INSERT INTO attention_items (item_uid, kind, subject, severity, detail, count, opened_at,
		                             last_seen_at)
		VALUES (gen_random_uuid(), 'mail_failed', 'x', 'problem', 'No mail goes out.', 1, $1, $1)
		RETURNING item_uid`, r.DB.Now())
	request := r.called(nil).UID.String()
	mail := r.mail(email.KindDeliveriesFailed, func(m *email.Message) {
		m.ApplicationUID, m.ToAddress = uuid.Nil, "it@sunvolt.example"
	}).String()
	const messageID = "k7q2abcdefghijklmnopqrstuv@lender.example"
	one(`UPDATE emails SET message_id = $1 WHERE email_uid = $2 RETURNING message_id`,
		messageID, mail)
	system := r.issueLender().ClientID
	page, mailPage := paths.To(paths.Application, application), paths.To(paths.Email, mail)
	support := r.signedIn()
	leads := func(b *browser, sought, want string) {
		t.Helper()
		got := b.get(searchFor(sought))
		if got.Location != want || (want == "") != (got.Status == http.StatusOK) {
			t.Errorf("looking for %q leads to %d %q, want %q", sought, got.Status, got.Location, want)
		}
		if want == "" {
			return
		}
		path, _, _ := strings.Cut(want, "#")
		b.get(path).wantStatus(t, http.StatusOK)
	}
	for sought, want := range map[string]string{
		certificate:                  paths.Within(application, "certificate", certificate),
		file:                         paths.Within(application, "certificate", certificate),
		task:                         page + "#task-" + task,
		bulk:                         paths.To(paths.Bulk, bulk),
		item:                         paths.To(paths.Alert, item),
		request:                      paths.To(paths.Request, request),
		"it@SUNVOLT.example":         mailPage,
		messageID:                    mailPage,
		"<" + messageID + ">":        mailPage,
		"disbursement/" + draw:       paths.Within(application, "draw", draw),
		"application/" + application: page,
		"task/" + task:               page + "#task-" + task,
		// Its page is for administrators.
		system: "", "payments": "",
	} {
		leads(support, sought, want)
	}
	admin := r.admin()
	leads(admin, system, paths.To(paths.LenderClient, system))
	leads(admin, "paym", paths.To(paths.LenderClient, system))
	r.do(func(ctx context.Context, tx *postgres.Tx) error {
		contact := "hooks@partner.example"
		_, _, err := r.Partners.UpdatePartner(ctx, tx, r.Partner, partner.Change{Contact: &contact})
		return err
	})
	leads(support, "hooks@partner", paths.To(paths.Partner, r.Partner.String()))
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
	for _, beyond := range []string{"people", "new subscription", "rotate", "new product"} {
		if got := b.fragment().get(searchFor(beyond)).text(".hit"); got != "" {
			t.Errorf("support looks for %q and is offered %q", beyond, got)
		}
	}
	hit := b.fragment().get(searchFor("settled")).text(".hit")
	if !strings.Contains(hit, "Funding settled") {
		t.Errorf("for a kind of event the palette offers %q", hit)
	}
	r.addUser("olga@lender.example", operator.RoleOperator)
	olga := r.stranger()
	olga.signIn("olga@lender.example", password)
	for sought, want := range map[string]string{
		"new subscription": paths.SubscriptionNew, "create webhook": paths.SubscriptionNew,
		"pause": paths.Subscriptions + "?state=active", "rotate sec": paths.Subscriptions,
	} {
		got, _ := olga.fragment().get(searchFor(sought)).find("a.hit").Attr("href")
		if got != want {
			t.Errorf("for %q an operator is offered %q, want %q", sought, got, want)
		}
	}
}

// A question about a missing event is answered in a sentence, whatever names the application.
func TestWhySomebodyMissesAnEvent(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.signedIn()
	r.subscribe(r.receiver(status(http.StatusServiceUnavailable)).URL)
	made := r.publish("Approved")
	r.work()
	delivery := paths.To(paths.Delivery, made[0].UID.String())
	for _, sought := range []string{
		"Why did Ana Lima not get approved?", "ana@example.com approved",
		"lima application.status.update",
	} {
		found := b.get(searchFor(sought)).wantStatus(t, http.StatusSeeOther)
		page := b.get(found.Location).wantStatus(t, http.StatusOK)
		if got := page.text("#answer h2"); !strings.Contains(got, "waits for attempt 2 of 3") ||
			!strings.Contains(got, "HTTP 503") {
			t.Errorf("%q is answered by %q", sought, got)
		}
		if got, _ := page.find("#answer .ledger a.button").Attr("href"); got != delivery {
			t.Errorf("%q leads to the delivery %q", sought, got)
		}
	}
	page := b.get(paths.Where(paths.Why, "q", r.application.String(), "event",
		"disbursement.funding.settled")).wantStatus(t, http.StatusOK)
	got := page.text("#answer h2")
	if got != "No draw has been requested. 1 subscription gets it once "+
		"it happens." || page.text("#answer .chip") != "Has not happened" {
		t.Errorf("what has not happened is answered by %q", got)
	}
	part := b.fragment().get(searchFor("lima approved")).wantStatus(t, http.StatusOK)
	if got := part.text(".hit-answer"); !strings.Contains(got, "waits for attempt 2") {
		t.Errorf("the palette answers %q", got)
	}
	asked := b.get(paths.To(paths.Application, r.application.String()))
	asks, _ := asked.find("form[action='" + paths.Why + "'] [name=q]").Attr("value")
	if asks != r.application.String() {
		t.Errorf("the application's page asks about %q", asks)
	}
	first := r.application
	r.seed("Other Energy", "Other Phoenix")
	which := b.get(paths.Where(paths.Why, "q", "ana lima", "event", "application.status.update"))
	if got := which.find("main a.hit[href*='" + first.String() + "']").Length(); got != 1 ||
		which.find("main a.hit").Length() != 2 {
		t.Errorf("of two borrowers of one name it offers %q", which.text("main .hits"))
	}
	for field, query := range map[string][]string{
		"event": {"q", "x", "event", "birthday"},
		"q":     {"q", first.String(), "event", "document.sent", "draw", "x"},
	} {
		wrong := b.get(paths.Where(paths.Why, query...)).wantStatus(t, http.StatusBadRequest)
		if wrong.find("#why-"+field+"-fault").Length() != 1 {
			t.Errorf("%v does not mark the field %s", query, field)
		}
	}
	nobody := b.get(paths.Where(paths.Why, "q", "nobody at all", "event", "document.sent"))
	if got := nobody.text("main .empty h2"); !strings.Contains(got, "No application or draw") {
		t.Errorf("nobody is answered by %q", got)
	}
}

// A question about a missing event concerns the one that did not arrive, not a newer one that did.
func TestWhyTellsOfWhatFailedBeforeWhatArrived(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.signedIn()
	r.subscribe(r.receiver(status(http.StatusOK)).URL)
	const kind = lending.EventFundingChanged
	first := r.publish("FUNDING_REQUESTED")[0]
	second := r.publish("FUNDING_PROCESSING")[0]
	later := r.publish("FUNDING_REQUESTED")[0]
	moved := r.publish("Hard Pull")[0]
	r.publish("Approved")
	r.work()
	for event, draw := range map[uuid.UUID]int64{
		first.EventUID: 1425, second.EventUID: 1425, later.EventUID: 1426,
	} {
		r.Exec(t, `
			UPDATE events SET kind = $2, subject = 'disbursement/' || $3::bigint
			 WHERE event_uid = $1`, event, kind, draw)
	}
	ask := func(kind lending.EventKind, status string) answer {
		return b.get(paths.Where(paths.Why, "q", r.application.String(), "event", string(kind),
			"status", status)).wantStatus(t, http.StatusOK)
	}
	r.fail(first)
	r.fail(moved)
	page := ask(kind, "")
	if got := page.text("#answer h2"); !strings.Contains(got, "(FUNDING_REQUESTED) of draw #1425") ||
		page.text("#answer .answer .chip") != "Failed" {
		t.Errorf("what failed is answered by %q", got)
	}
	events := paths.Where(paths.Events, "application", r.application.String(), "kind", string(kind))
	others := page.find("#answer .answer a[href^='" + paths.Events + "?']")
	if href, _ := others.Attr("href"); href != events ||
		others.Text() != "2 other events of this kind" {
		t.Errorf("the others are %q at %q", others.Text(), href)
	}
	for status, want := range map[string]string{
		"": "(Hard Pull) happened. It did not arrive", "Approved": "(Approved) happened. It arrived",
	} {
		got := ask(lending.EventStatusUpdated, status).text("#answer h2")
		if !strings.Contains(got, want) {
			t.Errorf("status %q is answered by %q, want %q", status, got, want)
		}
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
	spaced := strings.ReplaceAll(body, `":`, `": `)
	tests := []struct{ body, signature, want string }{
		{body, sum, "belongs to this body and the current secret"},
		{body, "x-hmac-signature: " + sum, "belongs to this body and the current secret"},
		{body + "\r\n", sum, "other line ends"},
		{spaced, sum, "JSON written differently"},
		{spaced, hmacHex(value.Reveal(), spaced), "not the one that was sent: it is the same JSON"},
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

// TestSignatureDoctorAnswersNotForEver guesses a secret in every possible way: all ways
// together share one hourly limit.
func TestSignatureDoctorAnswersNotForEver(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.signedIn()
	made, value := r.subscribe(r.receiver().URL)
	delivery := r.publish("Approved")[0]
	examine := func(subject, uid, secret string) answer {
		t.Helper()
		return b.post(paths.Doctor, url.Values{
			subject: {uid}, "body": {"{}"}, "signature": {hmacHex(secret, "{}")},
		})
	}
	ways := map[string]func(secret string) answer{
		"of a delivery": func(secret string) answer {
			return examine("delivery", delivery.UID.String(), secret)
		},
		"of a subscription": func(secret string) answer {
			return examine("subscription", made.UID.String(), secret)
		},
		"itself": func(secret string) answer {
			return b.post(paths.To(paths.SubscriptionCompare, made.UID.String()),
				url.Values{"candidate": {secret}})
		},
	}
	for range 10 {
		for _, guess := range ways {
			guess("a guess").wantStatus(t, http.StatusOK)
		}
	}
	// The hour begins with the first guess, some seconds ago on a busy machine.
	told := regexp.MustCompile(`30 times in 1 h; try again in (1 h|59 min \d+ s)\b`)
	for way, guess := range ways {
		right := guess(value.Reveal()).wantStatus(t, http.StatusTooManyRequests)
		if said := right.text("main"); !told.MatchString(said) {
			t.Errorf("guess 31, %s, is answered %q", way, said)
		}
	}
	r.pass(time.Hour + time.Second)
	for _, guess := range ways {
		guess("a guess").wantStatus(t, http.StatusOK)
	}
}
