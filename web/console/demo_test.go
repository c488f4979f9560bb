package console_test

import (
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/PuerkitoBio/goquery"

	"drawbridge/internal/demo"
	"drawbridge/internal/lending"
	"drawbridge/internal/operator"
	"drawbridge/views/paths"
	"drawbridge/web/console"
)

// TestFirstStart checks what the demo data show to somebody who has just started
// Drawbridge.
func TestFirstStart(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	r.must(demo.History(t.Context(), r.DB))
	t.Run("Overview", r.overviewIsFull)
	t.Run("EventNames", r.eventsAreNamed)
	t.Run("Currency", r.amountsAreInEuros)
}

func (r *harness) overviewIsFull(t *testing.T) {
	b := r.signedIn()
	page := b.get(paths.Home).wantStatus(t, http.StatusOK)
	var hours, lost, arrived int
	page.find("#outcomes tbody tr").Each(func(_ int, row *goquery.Selection) {
		counts := row.Find("td").Map(func(_ int, cell *goquery.Selection) string {
			return strings.TrimSpace(cell.Text())
		})
		failed, err := strconv.Atoi(counts[0])
		r.must(err)
		delivered, err := strconv.Atoi(counts[1])
		r.must(err)
		if delivered > 0 {
			hours++
		}
		lost, arrived = lost+failed, arrived+delivered
	})
	if hours < 12 || lost == 0 || arrived < 5*lost {
		t.Errorf("the plot has %d delivered in %d hours, and %d failed", arrived, hours, lost)
	}
	for _, want := range []string{"Subscription failing", "Deliveries failed"} {
		if page.find("tr[id^=item-]:contains('"+want+"')").Length() == 0 {
			t.Errorf("nothing that needs attention says %q", want)
		}
	}
	if got := page.text("main"); strings.Count(got, "a week before") < 3 {
		t.Errorf("the figures do not compare with the week before: %s", got)
	}
	for what, path := range map[string]string{
		"a slow delivery":      paths.Deliveries + "?slow=yes",
		"a failing endpoint":   paths.Subscriptions + "?state=failing",
		"a bulk re-send":       paths.Bulks,
		"an e-mail that left":  paths.Emails + "?state=sent",
		"an e-mail that could": paths.Emails + "?state=failed",
	} {
		if b.get(path).wantStatus(t, http.StatusOK).find("main tbody tr").Length() == 0 {
			t.Errorf("there is not %s", what)
		}
	}
	for _, status := range lending.AllFundingStatuses() {
		path := paths.Desk + "?state=" + string(status)
		if b.get(path).wantStatus(t, http.StatusOK).find("tr[id^=draw-]").Length() == 0 {
			t.Errorf("the draw desk has none in %s", status)
		}
	}
}

// eventsAreNamed finds codes of events that are shown without their names.
func (r *harness) eventsAreNamed(t *testing.T) {
	const olga = "olga@lender.example"
	r.addUser(olga, operator.RoleOperator)
	b := r.stranger()
	b.signIn(olga, password)
	first := func(path, selector string) string {
		href, _ := b.get(path).wantStatus(t, http.StatusOK).find(selector).First().Attr("href")
		if href == "" {
			t.Fatalf("%s leads nowhere", path)
		}
		return href
	}
	named := 0
	for _, path := range []string{
		paths.Deliveries, paths.Deliveries + "?state=failed", paths.Events, paths.Subscriptions,
		first(paths.Deliveries+"?state=failed", "tbody a.lead"), first(paths.Events, "tbody a.lead"),
		first(paths.Subscriptions, "tbody a.lead"), paths.SubscriptionNew, paths.Why,
		first(paths.Bulks, "tbody a.lead"), first(paths.Applications+"?status=Approved", "tbody a.lead"),
	} {
		page := b.get(path).wantStatus(t, http.StatusOK)
		if heading := page.text("h1"); lending.EventKind(heading).IsKnown() {
			t.Errorf("%s is called %q", path, heading)
		}
		page.find("main *").Each(func(_ int, element *goquery.Selection) {
			code := strings.TrimSpace(element.Text())
			if element.Children().Length() > 0 || !lending.EventKind(code).IsKnown() {
				return
			}
			named++
			beside := element.Closest("td, th, li, label, .panel, .page-title, dialog").Text()
			if !strings.Contains(beside, lending.EventKind(code).Title()) {
				t.Errorf("%s has %q alone in %q", path, code, beside)
			}
		})
		page.find("main option").Each(func(_ int, option *goquery.Selection) {
			kind := lending.EventKind(option.AttrOr("value", ""))
			if want := kind.Title() + " (" + string(kind) + ")"; kind.IsKnown() && option.Text() != want {
				t.Errorf("%s offers %q, want %q", path, option.Text(), want)
			}
		})
	}
	if named < 50 {
		t.Errorf("only %d codes were seen", named)
	}
}

// amountsAreInEuros renders the same data in a console whose currency is the euro.
func (r *harness) amountsAreInEuros(t *testing.T) {
	options := r.options
	options.Currency = "EUR"
	server := httptest.NewUnstartedServer(nil)
	options.PublicURL = "http://" + server.Listener.Addr().String()
	c, err := console.New(options)
	r.must(err)
	server.Config.Handler = serve(c)
	server.Start()
	t.Cleanup(server.Close)
	t.Cleanup(c.Close)
	r.URL = server.URL
	b := r.signedIn()
	for path, want := range map[string]string{
		paths.Applications: "Requested (EUR)", paths.Loans: "Balance (EUR)", paths.Desk: "Net (EUR)",
	} {
		page := b.get(path).wantStatus(t, http.StatusOK)
		if page.find("th:contains('"+want+"')").Length() != 1 {
			t.Errorf("%s has no column %q", path, want)
		}
		if !strings.HasSuffix(page.text("tbody tr:first-child td > i:contains('EUR')"), "EUR") {
			t.Errorf("%s names no currency on a telephone", path)
		}
	}
	href, _ := b.get(paths.Desk).find("tbody a.lead").First().Attr("href")
	for _, selector := range []string{".page-title p", ".sums", "#timeline"} {
		text := b.get(href).wantStatus(t, http.StatusOK).text(selector)
		if !strings.Contains(text, "EUR ") || strings.Contains(text, "USD") {
			t.Errorf("%s of an application says %q", selector, text)
		}
	}
}
