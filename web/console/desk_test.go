package console_test

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"drawbridge/internal/catalog"
	"drawbridge/internal/lending"
	"drawbridge/internal/loan"
	"drawbridge/internal/operator"
	"drawbridge/internal/postgres"
	"drawbridge/views/paths"
)

// TestDrawDesk shows the next step of each draw in progress, and links to the form for it;
// support may only view it.
func TestDrawDesk(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.admin()
	if got := b.get(paths.Desk).text(".empty"); !strings.Contains(got, "No draw waits") {
		t.Errorf("without draws: %q", got)
	}
	solar := r.NewProduct(t, "SOLAR", "50,50")
	quick := r.AddProduct(t, catalog.NewProduct{Code: "QUICK", OverdueHours: "1"})
	asked := r.Draw(t, r.Loan(t, solar).UID, loan.DrawInput{})
	sent := r.Draw(t, r.Loan(t, quick).UID, loan.DrawInput{})
	change, err := lending.ParseFundingChange(lending.FundingProcessing, map[string]string{
		"reference": "ACH-4711", "method": "ach", "effective_date": "2026-11-21", "reason": "first run",
	}, time.Now())
	r.must(err)
	r.Do(t, func(ctx context.Context, tx *postgres.Tx) error {
		_, _, err := r.Loans.MoveFunding(ctx, tx, r.Caller(), sent.ID, change)
		return err
	})
	settled := r.Draw(t, r.Loan(t, solar).UID, loan.DrawInput{})
	r.Settle(t, settled.ID)
	r.pass(7 * 24 * time.Hour) // forty business hours, whatever day it is
	b.signIn(adminEmail, password).wantStatus(t, http.StatusSeeOther)
	row := func(d loan.Disbursement) string { return fmt.Sprintf("#draw-%d", d.ID) }

	const cutoff = "The next cut-off for transfers is on "
	desk := b.get(paths.Desk)
	if intro := desk.text("main"); !strings.Contains(intro, cutoff) {
		t.Errorf("the desk says %q", intro)
	}
	if ages := desk.text("select[name=age]"); !strings.Contains(ages, "1 business hour or more") {
		t.Errorf("the ages are %q", ages)
	}
	for query, want := range map[string][]loan.Disbursement{
		"":                         {asked, sent},
		"state=FUNDING_REQUESTED":  {asked},
		"state=FUNDING_PROCESSING": {sent},
		"state=FUNDING_SETTLED":    {settled},
		"state=RETURNED":           nil,

		"state=FUNDING_SETTLED&overdue=yes": nil,
		"overdue=yes":                       {asked, sent},
		"age=40&product=" + quick.UID + "&merchant=" + r.Merchant.String(): {sent},
		"partner=" + solar.UID: nil,
	} {
		page := b.get(paths.Desk+"?"+query).wantStatus(t, http.StatusOK)
		for _, draw := range want {
			if page.find(row(draw)).Length() != 1 {
				t.Errorf("%q misses draw %d", query, draw.ID)
			}
		}
		if got := page.find("main tbody tr").Length(); got != len(want) {
			t.Errorf("%q lists %d, want %d", query, got, len(want))
		}
	}
	for _, query := range []string{"state=PAID", "age=2", "overdue=no", "product=x"} {
		b.get(paths.Desk+"?"+query).wantStatus(t, http.StatusBadRequest)
	}
	page := b.get(paths.Desk)
	for draw, want := range map[string][]string{
		row(asked): {"Requested, overdue", "Fund it: ", "cut-off", "Mark as processing"},
		row(sent): {
			"Processing, overdue", "Wait for the bank", "Mark as settled", "Mark as cancelled",
			"ACH-4711", "ach", "2026-11-21", "first run",
		},
	} {
		for _, words := range want {
			if got := page.text(draw); !strings.Contains(got, words) {
				t.Errorf("%s says %q, want %q", draw, got, words)
			}
		}
	}
	rows := b.cells(t, paths.Desk, paths.DeskCSV)
	for title, want := range map[string]string{
		"reference": "ACH-4711", "method": "ach", "effective_date": "2026-11-21", "reason": "first run",
	} {
		if got := column(rows, title); !slices.Equal(got, []string{"", want}) {
			t.Errorf("the file has the %s %q", title, got)
		}
	}
	link := page.find(row(asked)+" td a[href*='to=FUNDING_PROCESSING']").AttrOr("href", "")
	b.get(link).wantStatus(t, http.StatusOK)
	b.header.Set("Referer", r.URL+paths.Desk+"?overdue=yes")
	answer, _ := b.fillIn(link, map[string]string{"reason": "a note among ourselves"})
	answer.wantStatus(t, http.StatusSeeOther)
	b.header.Del("Referer")
	if back := answer.Location; back != paths.Desk+"?overdue=yes" {
		t.Errorf("a change from the desk leads to %s", back)
	}
	if said := b.get(paths.Desk).text("main"); !strings.Contains(said, "is processing.") {
		t.Errorf("back on the desk it says %q", said)
	}
	var noted, changes int
	r.must(r.DB.QueryRowContext(t.Context(), `
		SELECT (SELECT count(*) FROM audit_log WHERE reason = 'a note among ourselves'),
		       (SELECT count(*) FROM disbursement_changes WHERE reason = 'a note among ourselves')`).
		Scan(&noted, &changes))
	if noted != 1 || changes != 0 {
		t.Errorf("a note stands %d times in the audit log, want once, and %d times before the partner",
			noted, changes)
	}
	if got := b.get(paths.Desk).text(row(asked)); strings.Contains(got, "overdue") ||
		!strings.Contains(got, "Processing") {
		t.Errorf("after it was sent: %q", got)
	}

	r.addUser("looks@lender.example", operator.RoleSupport)
	support := r.stranger()
	support.signIn("looks@lender.example", password).wantStatus(t, http.StatusSeeOther)
	if got := support.get(paths.Desk).wantStatus(t, http.StatusOK).text(row(sent)); got == "" ||
		strings.Contains(got, "Mark as") {
		t.Errorf("support sees %q", got)
	}
}

// TestOverdueHoursOfAProduct changes the time after which draws are overdue.
func TestOverdueHoursOfAProduct(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.admin()
	product := r.NewProduct(t, "SOLAR", "50,50")
	path := paths.To(paths.ProductOverdue, product.UID)
	if got := b.get(path).find("[name=overdue_hours]").AttrOr("value", ""); got != "16" {
		t.Errorf("it begins with %q", got)
	}
	for _, wrong := range []string{"0", "401", "1.5", ""} {
		page := b.post(path, url.Values{"overdue_hours": {wrong}})
		if page.Status != http.StatusBadRequest && page.Status != http.StatusUnprocessableEntity ||
			!strings.Contains(page.text("main"), "from 1 to 400") {
			t.Errorf("%q is answered %d: %s", wrong, page.Status, page.text("main"))
		}
	}
	b.post(path, url.Values{"overdue_hours": {"24"}}).wantStatus(t, http.StatusSeeOther)
	if got := b.get(paths.Products).text("main table"); !strings.Contains(got, "Overdue: 24 h") ||
		r.audits("product.overdue") != 1 {
		t.Errorf("the list says %q", got)
	}
}
