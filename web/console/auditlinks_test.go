package console_test

import (
	"net/http"
	"testing"

	"drawbridge/views/paths"
)

// The audit log contains no link to a page that the reader may not open.
func TestAuditLogLinksWhereTheReaderMayGo(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	for _, b := range []*browser{r.signedIn(), r.asOperator(), r.admin()} {
		page := b.get(paths.Audit+"?kind=user").wantStatus(t, http.StatusOK)
		if page.find("tr[id^=entry-]").Length() == 0 {
			t.Fatal("no sign-in is listed")
		}
		entry, _ := page.find("a.lead[href^='/console/audit/']").Attr("href")
		may := b.get(paths.People).Status == http.StatusOK
		for _, place := range []answer{page, b.get(entry).wantStatus(t, http.StatusOK)} {
			links := place.find("main a[href^='" + paths.People + "?q=']").Length()
			if may != (links > 0) {
				t.Errorf("%d links to people for one who may see them: %v", links, may)
			}
		}
	}
}

// A client of the lender has its own page, which only admins may open; what a command did
// to all matching deliveries has no page.
func TestAuditLogLinksToPagesThatAreThere(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	id := r.issueLender().ClientID
	r.exec(`
		INSERT INTO audit_log (at, actor, address, action, subject_kind, subject)
		VALUES (now(), 'command line', '', 'client.revoke', 'client', $1),
		       (now(), 'command line', '', 'client.revoke', 'client', $2),
		       (now(), 'command line', '', 'delivery.resend', 'delivery', 'all that match')`,
		id, r.issue(true).ClientID)
	for b, want := range map[*browser]int{r.signedIn(): 1, r.asOperator(): 1, r.admin(): 2} {
		for kind, want := range map[string]int{"client": want, "delivery": 0} {
			links := b.get(paths.Audit+"?kind="+kind).wantStatus(t, http.StatusOK).find("main td a")
			for _, link := range links.EachIter() {
				href, _ := link.Attr("href")
				b.get(href).wantStatus(t, http.StatusOK)
			}
			if got := links.Length(); got != want {
				t.Errorf("%d links to a %s, want %d", got, kind, want)
			}
		}
	}
}
