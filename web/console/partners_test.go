package console_test

import (
	"context"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/PuerkitoBio/goquery"
	"github.com/google/uuid"

	"drawbridge/internal/apilog"
	"drawbridge/internal/lending"
	"drawbridge/internal/operator"
	"drawbridge/internal/partner"
	"drawbridge/internal/postgres"
	viewpaths "drawbridge/views/paths"
)

const operatorEmail = "olga@lender.example"

// asOperator is a browser of an operator.
func (r *harness) asOperator() *browser {
	r.Helper()
	r.addUser(operatorEmail, operator.RoleOperator)
	b := r.stranger()
	b.signIn(operatorEmail, password).wantStatus(r.T, http.StatusSeeOther)
	return b
}

// formValues returns what a browser would send of the page's form.
func (a answer) formValues(t *testing.T) (action string, values url.Values) {
	t.Helper()
	form := a.find("form.dialog-form")
	if form.Length() != 1 {
		t.Fatalf("%d forms on the page: %.300s", form.Length(), a.text("main"))
	}
	values = url.Values{}
	form.Find("input, textarea").Each(func(_ int, field *goquery.Selection) {
		name, kind := field.AttrOr("name", ""), field.AttrOr("type", "text")
		value := field.AttrOr("value", field.Text())
		if _, ticked := field.Attr("checked"); kind == "checkbox" && !ticked {
			return
		}
		values.Add(name, value)
	})
	form.Find("select").Each(func(_ int, field *goquery.Selection) {
		chosen := field.Find("option[selected]")
		if chosen.Length() == 0 {
			chosen = field.Find("option").First()
		}
		values.Set(field.AttrOr("name", ""), chosen.AttrOr("value", ""))
	})
	return form.AttrOr("action", ""), values
}

// fillIn opens a form and sends it with these fields set.
func (b *browser) fillIn(path string, fields map[string]string) (answer, url.Values) {
	b.Helper()
	action, values := b.get(path).wantStatus(b.T, http.StatusOK).formValues(b.T)
	for name, value := range fields {
		values.Set(name, value)
	}
	return b.post(action, values), values
}

func TestPartnerList(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.signedIn()
	page := b.get(viewpaths.Partners).wantStatus(t, http.StatusOK)
	row := page.text("#p-" + r.Partner.String())
	if !strings.Contains(row, "Sunvolt Energy") || page.text(".table-tools") != "1 partner" {
		t.Errorf("row %q, count %q", row, page.text(".table-tools"))
	}
	for query, want := range map[string]int{
		"name=sunv": 1, "name=+Sunvolt": 1, "name=volt": 0, "name=%25": 0,
	} {
		page := b.get(viewpaths.Partners+"?"+query).wantStatus(t, http.StatusOK)
		if got := page.find("main .table tbody tr").Length(); got != want {
			t.Errorf("%s lists %d, want %d", query, got, want)
		}
		if want == 0 && !strings.Contains(page.text(".empty"), "No partner's name begins") {
			t.Errorf("%s says %q", query, page.text(".empty"))
		}
	}
	for _, query := range []string{"cursor=x", "name=a%00", "name=%ff"} {
		b.get(viewpaths.Partners+"?"+query).wantStatus(t, http.StatusBadRequest)
	}
	r.exec(`
		INSERT INTO partners SELECT gen_random_uuid(), 'Bulk ' || n, now() - n * interval '1 hour'
		  FROM generate_series(1, 60) AS n`)
	first := b.get(viewpaths.Partners)
	older := first.find(".pager a[rel=next]").AttrOr("href", "")
	second := b.get(older).wantStatus(t, http.StatusOK)
	rows := first.find("main tbody tr").Length() + second.find("main tbody tr").Length()
	if rows != 61 || first.text(".table-tools") != "61 partners" {
		t.Errorf("%d partners on two pages; %s", rows, first.text(".table-tools"))
	}
}

func TestCreatePartner(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.asOperator()
	page := b.get(viewpaths.Partners)
	href := page.find("main .page-acts a").First().AttrOr("href", "")
	answer, values := b.fillIn(href, map[string]string{
		"name": "Windward", "merchant": "Windward Boise", "reason": "signed on Monday",
	})
	answer.wantStatus(t, http.StatusSeeOther)
	made := b.get(answer.Location).wantStatus(t, http.StatusOK)
	if made.text("h1") != "Windward" || !strings.Contains(made.text("main"), "Windward Boise") ||
		!strings.HasPrefix(made.text("main > .notice"), "Created.") {
		t.Errorf("page says %.300q", made.text("main"))
	}
	// The same form again leads to the same partner and makes no other.
	again := b.post(viewpaths.PartnerNew, values).wantStatus(t, http.StatusSeeOther)
	if again.Location != answer.Location || r.count(`SELECT count(*) FROM partners`) != 2 {
		t.Errorf("sent again, it leads to %q, and there are %d partners", again.Location,
			r.count(`SELECT count(*) FROM partners`))
	}
	if got := b.get(again.Location).text("main > .notice"); !strings.Contains(got, "acted already") {
		t.Errorf("sent again, it says %q", got)
	}
	var entry struct{ Actor, Reason, Subject string }
	r.must(r.DB.Get(&entry, `SELECT actor, reason, subject FROM audit_log
		WHERE action = 'partner.create'`))
	if entry.Actor != operatorEmail || entry.Reason != "signed on Monday" ||
		viewpaths.To(viewpaths.Partner, entry.Subject) != answer.Location {
		t.Errorf("audit log %+v", entry)
	}
}

// Errors are shown beside their fields, the input stays, and nothing is changed.
func TestPartnerFormsKeepWhatWasTyped(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.asOperator()
	partnerPath := viewpaths.To(viewpaths.Partner, r.Partner.String())
	merchantPath := viewpaths.To(viewpaths.Merchant, r.Merchant.String())
	for _, path := range []string{
		viewpaths.PartnerNew, partnerPath + "/rename", partnerPath + "/merchants/new",
		merchantPath + "/rename",
	} {
		answer, _ := b.fillIn(path, map[string]string{"name": " ", "reason": "why not"})
		answer.wantStatus(t, http.StatusBadRequest)
		if got := answer.text("#ask-name-fault"); !strings.HasSuffix(got, "ame is required.") {
			t.Errorf("%s: fault %q", path, got)
		}
		if answer.text("[role=alert] a[href='#ask-name']") == "" {
			t.Errorf("%s: the summary does not lead to the field", path)
		}
		if kept := answer.find("#ask-reason").AttrOr("value", ""); kept != "why not" {
			t.Errorf("%s: the reason became %q", path, kept)
		}
	}
	answer, _ := b.fillIn(viewpaths.PartnerNew, map[string]string{
		"name": "Fine", "merchant": strings.Repeat("x", 201),
	})
	answer.wantStatus(t, http.StatusBadRequest)
	if !strings.Contains(answer.text("#ask-merchant-fault"), "at most 200 characters") ||
		answer.find("#ask-name").AttrOr("value", "") != "Fine" {
		t.Errorf("a merchant's long name: %q", answer.text("#ask-merchant-fault"))
	}
	if r.count(`SELECT count(*) FROM partners`) != 1 || r.count(`SELECT count(*) FROM audit_log
		WHERE action LIKE '%.create' OR action LIKE '%.rename'`) != 0 {
		t.Error("a refused form left something behind")
	}
	b.send(http.MethodPost, viewpaths.PartnerNew, url.Values{"name": {"No token"}}).
		wantStatus(t, http.StatusBadRequest)
}

func TestRenamePartnerAndMerchant(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.asOperator()
	for path, action := range map[string]string{
		viewpaths.To(viewpaths.Partner, r.Partner.String()):   "partner.rename",
		viewpaths.To(viewpaths.Merchant, r.Merchant.String()): "merchant.rename",
	} {
		answer, _ := b.fillIn(path+"/rename", map[string]string{"name": "Renamed & Co"})
		if answer.Location != path {
			t.Fatalf("leads to %q: %.200s", answer.Location, answer.text("main"))
		}
		if got := b.get(path).text("h1"); got != "Renamed & Co" {
			t.Errorf("%s is called %q", path, got)
		}
		answer, _ = b.fillIn(path+"/rename", nil)
		if got := b.get(answer.Location).text("main > .notice"); got != "That is its name already." {
			t.Errorf("the same name again says %q", got)
		}
		if r.audits(action) != 1 {
			t.Errorf("%d audit entries of %s", r.audits(action), action)
		}
	}
}

func TestPartnersContact(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.asOperator()
	path := viewpaths.To(viewpaths.Partner, r.Partner.String())
	for _, contact := range []string{"it@sunvolt.example", ""} {
		answer, _ := b.fillIn(path+"/contact", map[string]string{"contact": contact})
		answer.wantStatus(t, http.StatusSeeOther)
		page := b.get(answer.Location)
		if page.text("main > .notice") != "Saved." ||
			strings.Contains(page.text("main .facts"), "it@sunvolt.example") != (contact != "") {
			t.Errorf("with the contact %q the page says %q", contact, page.text("main .facts"))
		}
	}
	answer, _ := b.fillIn(path+"/contact", map[string]string{"contact": "nobody"})
	answer.wantStatus(t, http.StatusBadRequest)
	if got := answer.text("form"); !strings.Contains(got, "is not an e-mail address") {
		t.Errorf("a wrong address is answered %q", got)
	}
	if r.audits("partner.update") != 2 {
		t.Errorf("%d audit entries", r.audits("partner.update"))
	}
}

func TestPartnerPage(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.signedIn()
	subscription, _ := r.subscribe(r.receiver().URL)
	issued := r.issue(false)
	recorder := apilog.NewWriter(r.DB)
	for i, status := range []int{200, 200, 409, 500} {
		at := r.DB.Now().UTC().Truncate(time.Microsecond)
		if i == 0 {
			at = at.Add(-25 * time.Hour)
		}
		recorder.Record(apilog.Entry{
			UID: postgres.NewUID(at), At: at, ClientID: issued.ClientID, Authenticated: true,
			PartnerUID: r.Partner, MerchantUID: r.Merchant, Status: status,
		})
	}
	ended, end := context.WithCancel(t.Context())
	end()
	recorder.Run(ended)
	page := b.get(viewpaths.To(viewpaths.Partner, r.Partner.String())).wantStatus(t, http.StatusOK)
	for selector, want := range map[string]string{
		"h1":                               "Sunvolt Energy",
		".tiles":                           "last 24 hours 3 1 refused, 1 failed",
		".tile:nth-child(2)":               "last 30 days 4 1 refused, 1 failed",
		"#m-" + r.Merchant.String():        "Sunvolt Phoenix",
		"#c-" + issued.ClientID:            "Active",
		"#s-" + subscription.UID.String():  "All events",
		".facts":                           r.Partner.String(),
		".rail [href='/console/partners']": "Partners",
		"#c-" + issued.ClientID + " code":  "…" + issued.Secret[len(issued.Secret)-4:],
		"#c-" + issued.ClientID + " .lead": issued.ClientID,
		".crumbs":                          "Partners",
		"#c-" + issued.ClientID + " bdi":   "Sunvolt Phoenix",
	} {
		if got := page.text(selector); !strings.Contains(got, want) {
			t.Errorf("%s says %q, want %q", selector, got, want)
		}
	}
	if strings.Contains(page.Raw, issued.Secret) {
		t.Error("the secret stands on the partner's page")
	}
	merchant := b.get(viewpaths.To(viewpaths.Merchant, r.Merchant.String())).wantStatus(t,
		http.StatusOK)
	if got := merchant.text("main"); !containsAll(got, []string{
		"Sunvolt Phoenix", "Sunvolt Energy", issued.ClientID, "Ana Lima",
	}) {
		t.Errorf("the merchant's page says %q", got)
	}
	for _, path := range []string{
		viewpaths.To(viewpaths.Partner, uuid.NewString()),
		viewpaths.To(viewpaths.Merchant, uuid.NewString()),
		viewpaths.To(viewpaths.Client, "dbc_none"), viewpaths.To(viewpaths.Partner, "x"),
		viewpaths.To(viewpaths.Client, "a%00"),
	} {
		b.get(path).wantStatus(t, http.StatusNotFound)
	}
}

// issue issues a client to the partner.
func (r *harness) issue(group bool) partner.Issued {
	r.Helper()
	var issued partner.Issued
	r.do(func(ctx context.Context, tx *postgres.Tx) (err error) {
		issued, err = (&partner.Service{DB: r.DB}).CreateClient(ctx, tx, partner.NewClient{
			PartnerUID: r.Partner, Group: group,
		})
		return err
	})
	return issued
}

// The page of a client that acts for hundreds of merchants shows some, and links to all.
func TestClientOfManyMerchants(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	const more = 300
	r.Exec(t, `
		INSERT INTO merchants (merchant_uid, partner_uid, name, created_at)
		SELECT gen_random_uuid(), $1, 'Merchant ' || n, now() + n * interval '1 second'
		  FROM generate_series(1, $2) AS n`, r.Partner, more)
	issued := r.issue(true)
	r.Exec(t, `
		INSERT INTO client_merchants (client_id, partner_uid, merchant_uid)
		SELECT $1, partner_uid, merchant_uid FROM merchants WHERE partner_uid = $2
		    ON CONFLICT DO NOTHING`, issued.ClientID, r.Partner)
	b, shown := r.signedIn(), map[string]bool{}
	for at, older := viewpaths.To(viewpaths.Client, issued.ClientID), true; older; {
		page := b.get(at).wantStatus(t, http.StatusOK)
		if len(page.Raw) > 60_000 {
			t.Errorf("%s weighs %d bytes", at, len(page.Raw))
		}
		page.find("tr[id^=m-]").Each(func(_ int, row *goquery.Selection) {
			shown[row.Find("a").Text()] = true
		})
		at, older = page.find("a[rel=next]").Attr("href")
	}
	if len(shown) != more+1 || !shown["Merchant 7"] {
		t.Errorf("%d merchants are reached, want %d", len(shown), more+1)
	}
}

// issueLender issues a client to one of the lender's systems.
func (r *harness) issueLender() partner.Issued {
	r.Helper()
	var issued partner.Issued
	r.do(func(ctx context.Context, tx *postgres.Tx) (err error) {
		issued, err = (&partner.Service{DB: r.DB}).CreateLenderClient(ctx, tx,
			partner.NewLenderClient{Name: "payments", Scopes: []string{"funding"}})
		return err
	})
	return issued
}

// TestLenderClients issues credentials to one of the lender's systems, which only admins may do.
func TestLenderClients(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.admin()
	shown, _ := b.fillIn(viewpaths.LenderNew, map[string]string{
		"name": "payments", "scope": "funding", "from": "203.0.113.0/24 198.51.100.7",
	})
	secret := shown.wantStatus(t, http.StatusOK).text("#secret")
	id := strings.Fields(shown.text(".facts code:first-of-type"))[0]
	service := partner.Service{DB: r.DB}
	caller, err := service.AuthenticateLender(t.Context(), partner.Presented{
		ClientID: id, Secret: secret, Address: netip.MustParseAddr("198.51.100.7"),
	})
	if err != nil || caller.Name != "payments" {
		t.Errorf("the credentials shown are those of %+v, %v", caller, err)
	}
	path := viewpaths.To(viewpaths.LenderClient, id)
	page := b.get(path).wantStatus(t, http.StatusOK)
	list := b.get(viewpaths.Lender).wantStatus(t, http.StatusOK)
	for _, text := range []string{page.text("main"), list.text("main")} {
		if !containsAll(text, []string{"payments", "funding", "203.0.113.0/24, 198.51.100.7/32"}) ||
			strings.Contains(text, secret) {
			t.Errorf("it says %q", text)
		}
	}
	b.get(viewpaths.To(viewpaths.Client, id)).wantStatus(t, http.StatusNotFound)
	b.get(viewpaths.To(viewpaths.LenderClient, r.issue(true).ClientID)).wantStatus(t,
		http.StatusNotFound)
	clerk := r.asOperator()
	for _, closed := range []string{viewpaths.Lender, viewpaths.LenderNew, path, path + "/revoke"} {
		clerk.get(closed).wantStatus(t, http.StatusForbidden)
	}
	if clerk.get(viewpaths.Home).find(".rail [href='"+viewpaths.Lender+"']").Length() != 0 {
		t.Error("an operator sees the lender's systems in the rail")
	}
	refused, _ := b.fillIn(viewpaths.LenderNew, map[string]string{"name": "x", "from": "here"})
	refused.wantStatus(t, http.StatusBadRequest)
	text := refused.text("[role=alert]")
	if !containsAll(text, []string{"Scope is required", "here"}) {
		t.Errorf("the refusal says %q", text)
	}
}

// login reports whether credentials are accepted.
func (r *harness) login(id, secret string) bool {
	r.Helper()
	_, err := (&partner.Service{DB: r.DB}).Authenticate(r.Context(),
		partner.Presented{ClientID: id, Secret: secret, Merchant: r.Merchant.String()})
	if code := lending.ErrorCode(err); code != "" && code != lending.CodeUnauthorized {
		r.Fatal(err)
	}
	return err == nil
}

func TestIssueClient(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.asOperator()
	path := viewpaths.To(viewpaths.Partner, r.Partner.String()) + "/clients/new"
	shown, values := b.fillIn(path, map[string]string{"kind": "group"})
	shown.wantStatus(t, http.StatusOK)
	id, secret := shown.text(".facts code:first-of-type"), shown.text("#secret")
	id = strings.Fields(id)[0]
	if !r.login(id, secret) {
		t.Fatalf("%s with the secret shown does not work", id)
	}
	if copied := shown.find("[data-copy='" + secret + "']").Length(); copied != 1 {
		t.Errorf("%d buttons copy the secret", copied)
	}
	if command := shown.text("pre"); !strings.Contains(command, r.URL+"/api/v2/") ||
		strings.Contains(command, secret) {
		t.Errorf("the command to check is %q", command)
	}
	if shown.Header.Get("Cache-Control") != "no-store" {
		t.Error("the page with the secret may be kept")
	}
	// Reloading that page sends the form again: no second client, no secret.
	again := b.post(path, values).wantStatus(t, http.StatusSeeOther)
	next := b.get(again.Location).wantStatus(t, http.StatusOK)
	if again.Location != viewpaths.To(viewpaths.Client, id) || strings.Contains(next.Raw, secret) ||
		!strings.Contains(next.text("main > .notice"), "no page shows their secret again") ||
		r.count(`SELECT count(*) FROM clients`) != 1 {
		t.Errorf("sent again: to %q, %q", again.Location, next.text("main > .notice"))
	}
	var after string
	r.must(r.DB.Get(&after, `SELECT after FROM audit_log WHERE action = 'client.create'`))
	if strings.Contains(after, secret) || !strings.Contains(after, r.Merchant.String()) {
		t.Errorf("audit log %s", after)
	}
}

func TestIssueClientErrors(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.asOperator()
	second := r.NewMerchant(t, r.Partner, "Second")
	foreign := r.NewMerchant(t, r.NewPartner(t, "Other"), "Foreign")
	path := viewpaths.To(viewpaths.Partner, r.Partner.String()) + "/clients/new"
	_, values := b.get(path).formValues(t)
	for want, merchants := range map[string][]string{
		"tick at least one merchant": nil,
		"exactly one merchant":       {r.Merchant.String(), second.String()},
		"is not a merchant of":       {foreign.String()},
		"not in the list":            {"x"},
	} {
		values["merchant"] = merchants
		page := b.post(path, values).wantStatus(t, http.StatusBadRequest)
		if got := page.text("#ask-merchant-fault"); !strings.Contains(got, want) {
			t.Errorf("%v: %q, want %q", merchants, got, want)
		}
		if ticked := page.find("[name=merchant][checked]").Length(); len(merchants) == 2 && ticked != 2 {
			t.Errorf("%d of two ticks are kept", ticked)
		}
	}
	values["merchant"] = []string{r.Merchant.String(), second.String()}
	values.Set("kind", "group")
	b.post(path, values).wantStatus(t, http.StatusOK)
}

func TestRotateClient(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.asOperator()
	issued := r.issue(false)
	path := viewpaths.To(viewpaths.Client, issued.ClientID)
	shown, values := b.fillIn(path+"/rotate", map[string]string{"overlap": "1h"})
	fresh := shown.wantStatus(t, http.StatusOK).text("#secret")
	if !r.login(issued.ClientID, issued.Secret) || !r.login(issued.ClientID, fresh) {
		t.Error("not both secrets work in the overlap")
	}
	page := b.get(path).wantStatus(t, http.StatusOK)
	notice := page.text("main .notice-warn")
	end := func(secret string) string { return secret[len(secret)-4:] }
	if !containsAll(notice, []string{"Two secrets work", end(issued.Secret), end(fresh)}) ||
		page.find("relative-time[due] time").Length() != 1 ||
		page.text(".headline .chip") != "Rotating" {
		t.Errorf("the overlap is shown as %q", notice)
	}
	if risk := b.get(path + "/rotate").text(".risk"); !strings.Contains(risk, "under way") {
		t.Errorf("rotating again warns %q", risk)
	}
	again := b.post(path+"/rotate", values).wantStatus(t, http.StatusSeeOther)
	if again.Location != path || !r.login(issued.ClientID, fresh) {
		t.Error("the same form rotated twice")
	}
	r.ahead.Store(int64(61 * time.Minute))
	if r.login(issued.ClientID, issued.Secret) {
		t.Error("the old secret outlives the overlap")
	}
	if got := b.get(path); got.find(".notice-warn").Length() != 0 {
		t.Errorf("after the overlap: %q", got.text(".notice-warn"))
	}
	values.Set("overlap", "1000000h")
	values.Del("token") // another form
	b.post(path+"/rotate", values).wantStatus(t, http.StatusBadRequest)
	if r.audits("client.rotate") != 1 {
		t.Errorf("%d audit entries", r.audits("client.rotate"))
	}
}

func TestClientRate(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.asOperator()
	issued := r.issue(false)
	path := viewpaths.To(viewpaths.Client, issued.ClientID) + "/rate"
	answer, _ := b.fillIn(path, map[string]string{"rate": "7", "burst": "9"})
	page := b.get(answer.Location)
	if got := page.text(".facts"); !strings.Contains(got, "7 requests a second, 9 at once") {
		t.Errorf("the page says %q", got)
	}
	bad, _ := b.fillIn(path, map[string]string{"rate": "many", "burst": "0"})
	bad.wantStatus(t, http.StatusBadRequest)
	if !strings.Contains(bad.text("#ask-rate-fault"), "from 1 to") ||
		!strings.Contains(bad.text("#ask-burst-fault"), "from 1 to") ||
		bad.find("#ask-rate").AttrOr("value", "") != "many" {
		t.Errorf("faults %q and %q", bad.text("#ask-rate-fault"), bad.text("#ask-burst-fault"))
	}
	var before string
	r.must(r.DB.Get(&before, `SELECT before FROM audit_log WHERE action = 'client.rate'`))
	if !strings.Contains(before, "50") {
		t.Errorf("audited before: %s", before)
	}
}

func TestRevokeClient(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.asOperator()
	issued := r.issue(false)
	path := viewpaths.To(viewpaths.Client, issued.ClientID)
	if !r.login(issued.ClientID, issued.Secret) { // which also notes its use
		t.Fatal("the client does not work")
	}
	risk := b.get(path + "/revoke").text(".risk")
	if !strings.Contains(risk, "within the last 24 hours") {
		t.Errorf("the form of one that was just used says %q", risk)
	}
	answer, values := b.fillIn(path+"/revoke", map[string]string{"reason": "leaked"})
	page := b.get(answer.wantStatus(t, http.StatusSeeOther).Location)
	if page.text(".headline .chip") != "Revoked" ||
		page.find("main .page-acts [data-ask]").Length() != 0 ||
		r.login(issued.ClientID, issued.Secret) {
		t.Errorf("after revoking: %q", page.text("main"))
	}
	b.post(path+"/revoke", values).wantStatus(t, http.StatusSeeOther)
	values.Set("token", uuid.NewString())
	b.post(path+"/revoke", values).wantStatus(t, http.StatusSeeOther)
	if r.audits("client.revoke") != 1 {
		t.Errorf("%d audit entries of one revocation", r.audits("client.revoke"))
	}
	_, values = b.get(path + "/rotate").formValues(t)
	b.post(path+"/rotate", values).wantStatus(t, http.StatusConflict)
}

// Support sees the pages but none of the buttons, and no form.
func TestSupportChangesNoPartner(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	issued := r.issue(false)
	b := r.signedIn()
	for _, path := range []string{
		viewpaths.Partners, viewpaths.To(viewpaths.Partner, r.Partner.String()),
		viewpaths.To(viewpaths.Merchant, r.Merchant.String()),
		viewpaths.To(viewpaths.Client, issued.ClientID),
	} {
		page := b.get(path).wantStatus(t, http.StatusOK)
		if got := page.find("main [data-ask], main a[href$='/new']").Length(); got != 0 {
			t.Errorf("%s offers support %d changes", path, got)
		}
	}
	for _, path := range []string{
		viewpaths.PartnerNew, viewpaths.To(viewpaths.Partner, r.Partner.String()) + "/rename",
		viewpaths.To(viewpaths.Partner, r.Partner.String()) + "/clients/new",
		viewpaths.To(viewpaths.Client, issued.ClientID) + "/rotate",
		viewpaths.To(viewpaths.Client, issued.ClientID) + "/revoke",
	} {
		b.get(path).wantStatus(t, http.StatusForbidden)
		b.post(path, url.Values{"token": {uuid.NewString()}, "name": {"x"}}).
			wantStatus(t, http.StatusForbidden)
	}
}

// A script gets the content of a dialog with the same form.
func TestFormsOpenInDialogs(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.asOperator()
	path := viewpaths.To(viewpaths.Partner, r.Partner.String()) + "/rename"
	part := b.fragment().get(path).wantStatus(t, http.StatusOK)
	if part.find("html head title").Length() != 0 || part.find("#asked-title").Length() != 1 {
		t.Errorf("a script gets %.200q", part.Raw)
	}
	action, values := part.formValues(t)
	values.Set("name", "From a dialog")
	if got := b.post(action, values).Location; got != viewpaths.To(viewpaths.Partner,
		r.Partner.String()) {
		t.Errorf("leads to %q", got)
	}
}

// Hostile names are shown and do nothing.
func TestHostilePartnerNames(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.asOperator()
	const planted = `"><script>planted()</script><img src=x onerror=planted()>`
	answer, _ := b.fillIn(viewpaths.PartnerNew, map[string]string{
		"name": planted, "merchant": planted,
	})
	paths := []string{
		viewpaths.Partners, answer.Location, answer.Location + "/rename",
		answer.Location + "/clients/new", answer.Location + "/merchants/new",
	}
	paths = append(paths, b.get(answer.Location).find("tr[id^=m-] a").AttrOr("href", ""))
	for _, path := range paths {
		page := b.get(path).wantStatus(t, http.StatusOK)
		if !strings.Contains(page.Raw, "planted()") ||
			page.find("script:not([src]), [onerror]").Length() != 0 {
			t.Errorf("%s: the name acts, or is not there", path)
		}
	}
}
