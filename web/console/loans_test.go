package console_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/uuid"

	"drawbridge/internal/app/apptest"
	"drawbridge/internal/lending"
	"drawbridge/internal/loan"
	"drawbridge/views/paths"
)

func TestLoanList(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.signedIn()
	if got := b.get(paths.Loans).text(".empty"); !strings.Contains(got, "No loans yet") {
		t.Errorf("without loans: %q", got)
	}
	w := r
	solar := w.NewProduct(t, "SOLAR", "50,50")
	once := w.NewProduct(t, "ONCE", "100")
	ready := w.Loan(t, solar).UID
	pending := w.Loan(t, solar).UID
	w.Draw(t, pending, loan.DrawInput{})
	drawn := w.Loan(t, once).UID
	w.Settle(t, w.Draw(t, drawn, apptest.Documented()).ID)
	blocked := w.Loan(t, solar).UID
	w.Move(t, blocked, lending.StatusPendClearance)
	again := w.Loan(t, solar).UID
	first := w.Draw(t, again, loan.DrawInput{}).ID
	w.Settle(t, first)
	w.Settle(t, w.Draw(t, again, apptest.Documented()).ID)
	w.Fund(t, first, lending.FundingReturned) // so that there is something to draw again
	for query, want := range map[string][]uuid.UUID{
		"":                       {again, blocked, drawn, pending, ready},
		"state=ready":            {again, ready},
		"state=pending":          {pending},
		"state=completed":        {drawn},
		"state=blocked":          {blocked},
		"product=" + once.UID:    {drawn},
		"draw=FUNDING_SETTLED":   {again, drawn},
		"draw=RETURNED":          {again},
		"draw=FUNDING_REQUESTED": {pending},

		"draw=FUNDING_REQUESTED&state=pending": {pending},
		"draw=FUNDING_REQUESTED&state=ready":   nil,

		"draw=CANCELLED":                                 nil,
		"partner=" + uuid.NewString():                    nil,
		"partner=" + r.Partner.String() + "&state=ready": {again, ready},
	} {
		page := b.get(paths.Loans+"?"+query).wantStatus(t, http.StatusOK)
		for _, uid := range want {
			if page.find("#l-"+uid.String()).Length() != 1 {
				t.Errorf("%q misses %s", query, uid)
			}
		}
		if got := page.find("main tbody tr").Length(); got != len(want) {
			t.Errorf("%q lists %d, want %d", query, got, len(want))
		}
	}
	page := b.get(paths.Loans)
	for uid, want := range map[uuid.UUID]string{
		ready: "Ready to draw", pending: "Draw pending", drawn: "Drawn", blocked: "Not approved",
	} {
		if got := page.text("#l-" + uid.String()); !strings.Contains(got, want) {
			t.Errorf("%s says %q, want %q", uid, got, want)
		}
	}
	if got := page.text("#l-" + ready.String()); !strings.Contains(got, "stage 1, USD 5,000.00") {
		t.Errorf("the next stage: %q", got)
	}
	shown := b.get(paths.To(paths.Application, drawn.String())).text(".panel-head")
	if !strings.Contains(shown, "Drawn to the end") {
		t.Errorf("once the final draw is settled: %q", shown)
	}
	for _, query := range []string{"state=x", "partner=1", "product=x", "draw=x", "cursor=x"} {
		b.get(paths.Loans+"?"+query).wantStatus(t, http.StatusBadRequest)
	}
}

func TestProducts(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.admin()
	if got := b.get(paths.Products).text(".empty"); !strings.Contains(got, "No products yet") {
		t.Errorf("without products: %q", got)
	}
	fields := map[string]string{
		"code": "SOLAR", "name": "Solar", "term": "120", "rate": "7.99", "fee": "3.75",
		"schedule": "40,40,20", "min": "1000", "max": "100000", "preview": "1000.01",
	}
	query := url.Values{}
	for name, value := range fields {
		query.Set(name, value)
	}
	preview := b.get(paths.ProductNew+"?"+query.Encode()).wantStatus(t, http.StatusOK)
	if got := preview.text(".stage-preview"); !containsAll(got, []string{"400.00", "200.01"}) {
		t.Errorf("the preview says %q", got)
	}
	bad, _ := b.fillIn(paths.ProductNew, map[string]string{"code": "a b", "schedule": "40,40"})
	bad.wantStatus(t, http.StatusBadRequest)
	if !strings.Contains(bad.text("#ask-schedule-fault"), "add up to exactly 100") ||
		bad.text("#ask-code-fault") == "" || bad.find("#ask-code").AttrOr("value", "") != "a b" {
		t.Errorf("faults %q", bad.text("[role=alert]"))
	}
	if bad.find("[autofocus]").First().AttrOr("role", "") != "alert" {
		t.Error("the focus does not go to what is wrong")
	}
	answer, values := b.fillIn(paths.ProductNew, fields)
	answer.wantStatus(t, http.StatusSeeOther)
	b.post(paths.ProductNew, values).wantStatus(t, http.StatusSeeOther)
	page := b.get(answer.Location)
	if page.find("main tbody tr").Length() != 1 || page.text("tbody .chip") != "On offer" ||
		r.audits("product.create") != 1 {
		t.Errorf("products %q", page.text("main"))
	}
	taken, _ := b.fillIn(paths.ProductNew, fields)
	if got := taken.text("#ask-code-fault"); !strings.Contains(got, "taken") {
		t.Errorf("the same code again: %q", got)
	}
	href := page.find("tbody a[data-ask]:contains('Stop offering')").AttrOr("href", "")
	if says := b.get(href).text(".dialog-body"); !strings.Contains(says, "unaffected") {
		t.Errorf("taking it off says %q", says)
	}
	answer, _ = b.fillIn(href, nil)
	if got := b.get(answer.Location).text("tbody .chip"); got != "Not offered" {
		t.Errorf("after taking it off: %q", got)
	}
	support := r.signedIn()
	support.get(paths.Products).wantStatus(t, http.StatusOK)
	for _, path := range []string{paths.ProductNew, href} {
		support.get(path).wantStatus(t, http.StatusForbidden)
		r.signedIn().post(path, url.Values{}).wantStatus(t, http.StatusForbidden)
	}
}
