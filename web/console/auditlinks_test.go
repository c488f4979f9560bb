package console_test

import (
	"net/http"
	"testing"

	"drawbridge/views/paths"
)

// The audit log leads nobody to a page that refuses them.
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
