package console

import (
	"fmt"
	"testing"

	"github.com/chromedp/chromedp"

	"drawbridge/cmd/e2e/e2etest"
	"drawbridge/views/paths"
)

// leastLead is the least width of the column of names, in pixels, where a list is a table.
const leastLead = 120

// The name of a row is readable in each list at the widths of laptops.
func TestNamesOfRowsCanBeRead(t *testing.T) {
	t.Parallel()
	w := e2etest.New(t)
	data := w.DemoData()
	w.JSON(&struct{}{}, "seed", "--deliveries", "200", "--attempts", "300", "--partners", "3",
		"--days", "3")
	s := w.Serve("--roles", "console")
	browser := newBrowser(t)
	signIn(t, browser, s.URL, data.Users[0])
	for _, path := range []string{
		paths.Applications, paths.Loans, paths.Desk, paths.Deliveries, paths.Events,
		paths.Subscriptions, paths.Emails, paths.Partners, paths.Requests, paths.Bulks, paths.Alerts,
		paths.Audit, paths.People,
	} {
		for _, width := range []int64{1240, 1280, 1366} {
			do(t, browser,
				chromedp.EmulateViewport(width, 900),
				chromedp.Navigate(s.URL+path),
				chromedp.WaitVisible(chromedp.CSS("h1")),
			)
			narrow := evaluate(t, browser, fmt.Sprintf(`(() => {
				const name = document.querySelector("main .table tbody th");
				const wide = name?.getBoundingClientRect().width;
				return !name || wide >= %d ? "" : name.textContent.trim() + ": " + wide + " px";
			})()`, leastLead))
			if narrow != "" {
				t.Errorf("at %d px %s has the name %s", width, path, narrow)
			}
		}
	}
}
