package console_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"drawbridge/internal/postgres"
	"drawbridge/internal/statement"
	viewpaths "drawbridge/views/paths"
)

// The statements of a merchant have a list and a page each, with the bytes and the
// signature to download; the page of a corrected version says that it was replaced.
func TestStatementsInTheConsole(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.signedIn()
	text := b.get(viewpaths.Statements).wantStatus(t, http.StatusOK).text("main")
	if !strings.Contains(text, "No statements yet") ||
		strings.Count(text, "within half an hour of") != 2 { // as the partners' guide says
		t.Errorf("without statements the list says %q", text)
	}
	// The chores of a process whose clock is days ahead.
	db, err := postgres.Open(t.Context(), r.DB.URL())
	r.must(err)
	t.Cleanup(func() { _ = db.Close() })
	rounds := *r.Statements
	rounds.DB = db
	freeze := func(ahead time.Duration) {
		db.Now = func() time.Time { return r.DB.Now().Add(ahead) }
		_, err := rounds.Freeze(t.Context())
		r.must(err)
	}
	freeze(5 * 24 * time.Hour)
	r.subscribe("https://hooks.example.com/x")
	r.publish("Approved") // belongs to a day that is frozen by now
	freeze(9 * 24 * time.Hour)

	listed, _, err := r.Statements.List(t.Context(), statement.Filter{}, postgres.Paging{Limit: 100})
	r.must(err)
	first := listed[len(listed)-1]
	merchant := first.MerchantUID.String()
	page := b.get(viewpaths.To(viewpaths.Merchant, merchant)).wantStatus(t, http.StatusOK)
	href, _ := page.find(".page-acts a:contains('Daily statements')").Attr("href")
	list := b.get(href).wantStatus(t, http.StatusOK)
	if rows := list.find("tbody tr").Length(); rows != len(listed) {
		t.Errorf("%d rows for %d statements", rows, len(listed))
	}
	if text := list.text("main"); !containsAll(text, []string{first.Date(), "version 2"}) {
		t.Errorf("the list says %q", text)
	}
	b.get(viewpaths.Statements+"?date=today").wantStatus(t, http.StatusBadRequest)

	path := viewpaths.To(viewpaths.Statement, merchant, first.Date())
	newest := b.get(path).wantStatus(t, http.StatusOK).text("main")
	if !containsAll(newest, []string{
		"Version 2", "Events 1", "Gross USD 0.00", "Not all had arrived",
	}) {
		t.Errorf("the page says %q", newest)
	}
	if text := b.get(path+"?version=1").wantStatus(t, http.StatusOK).text("main"); !containsAll(
		text, []string{"Corrected since", "Events 0"}) {
		t.Errorf("the page of the first version says %q", text)
	}
	b.get(path+"?version=3").wantStatus(t, http.StatusNotFound)
	b.get(viewpaths.To(viewpaths.Statement, merchant, "2001-01-01")).wantStatus(t, http.StatusNotFound)

	for _, version := range []string{"1", "2"} {
		shown := b.get(path + "?version=" + version)
		for _, format := range []string{"json", "csv"} {
			var column struct {
				Content   []byte `db:"content"`
				Signature []byte `db:"signature"`
			}
			r.must(r.DB.GetContext(t.Context(), &column, `
				SELECT `+format+` AS content, `+format+`_signature AS signature
				  FROM statements
				 WHERE merchant_uid = $1 AND day = $2 AND version = $3`,
				merchant, first.Date(), version))
			links := shown.find("a[download][href*='format=" + format + "']")
			for i, want := range [][]byte{column.Content, column.Signature} {
				address, _ := links.Eq(i).Attr("href")
				if got := b.get(address).wantStatus(t, http.StatusOK); got.Raw != string(want) {
					t.Errorf("%s has other bytes", address)
				}
			}
		}
	}
	if n := r.Count(t, `SELECT count(*) FROM audit_log WHERE action = 'statement.download'`); n != 8 {
		t.Errorf("%d downloads are in the audit log", n)
	}
}
