package console_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/PuerkitoBio/goquery"

	"drawbridge/internal/operator"
	"drawbridge/views/paths"
)

// The form determines whether a task is a dialog or a page, wherever it is opened: each
// link to a form opens a dialog if the form is one.
func TestSmallTasksAreDialogs(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	made, _ := r.subscribe("https://hooks.partner.example/ledger")
	lender := r.issueLender()
	const admin = "ada@lender.example"
	r.addUser(admin, operator.RoleAdmin)
	b := r.stranger()
	b.signIn(admin, password)
	gets, forms := map[string]bool{}, []*regexp.Regexp{}
	for _, route := range r.Console.Routes() {
		if route.Method == http.MethodGet {
			gets[route.Path] = true
		}
	}
	part := regexp.MustCompile(`:[a-z]+`)
	for _, route := range r.Console.Routes() {
		if route.Method == http.MethodPost && gets[route.Path] {
			forms = append(forms,
				regexp.MustCompile("^"+part.ReplaceAllString(route.Path, "[^/]+")+"$"))
		}
	}
	seen := map[string]bool{}
	for _, path := range []string{
		paths.Partners, paths.To(paths.Partner, r.Partner.String()),
		paths.To(paths.Merchant, r.Merchant.String()), paths.Lender,
		paths.To(paths.LenderClient, lender.ClientID), paths.Products, paths.People,
		paths.Applications, paths.To(paths.Application, r.application.String()),
		paths.Subscriptions, paths.To(paths.Subscription, made.UID.String()),
		paths.To(paths.Subscription, made.UID.String()) + "?tab=configuration",
		paths.To(paths.Subscription, made.UID.String()) + "?tab=secret", paths.Settings, paths.Bulks,
		paths.Account,
	} {
		b.get(path).wantStatus(t, http.StatusOK).find("main a[href]").Each(
			func(_ int, link *goquery.Selection) {
				href, _ := link.Attr("href")
				address, _, _ := strings.Cut(href, "?")
				leads := false
				for _, form := range forms {
					leads = leads || form.MatchString(address)
				}
				if !leads {
					return
				}
				seen[address] = true
				answer := b.fragment().get(href)
				dialog := answer.Status == http.StatusOK && answer.find("#asked-title").Length() == 1
				if _, asks := link.Attr("data-ask"); asks != dialog {
					t.Errorf("on %s %q to %s opens a dialog: %v; its form is one: %v, %d", path,
						strings.TrimSpace(link.Text()), href, asks, dialog, answer.Status)
				}
			})
	}
	if len(seen) < 15 {
		t.Errorf("only %d links to forms were looked at", len(seen))
	}
}
