package console

import (
	"fmt"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"drawbridge/cmd/e2e/e2etest"
)

// A delivery opens beside the list by a click on its row or a key, j and k move through the
// list, and Escape returns to the row. Links open pages, and so do rows if there is no room.
func TestDeliveriesBesideTheirList(t *testing.T) {
	t.Parallel()
	w := e2etest.New(t)
	data := w.DemoData()
	made := w.Subscribe(data, "https://hooks.partner.example/x")
	w.FailedDeliveries(data, made.UID, 5)
	s := w.Serve()
	browser := newBrowser(t)
	h := &userInput{T: t, browser: browser}
	do(t, browser, chromedp.EmulateViewport(wide, 900))
	signIn(t, browser, s.URL, data.Users[1])
	do(t, browser, chromedp.Navigate(s.URL+"/console/deliveries?state=failed"),
		chromedp.WaitVisible(chromedp.CSS(`live-status button[data-state=live]`)))
	h.loaded()
	row := func(n int) string { return fmt.Sprintf(`main tbody tr:nth-child(%d)`, n) }
	shows := func(n int) {
		t.Helper()
		h.until(fmt.Sprintf(`(() => {
			const shown = document.querySelector(".drawer-head a")?.href;
			const said = document.querySelector("#drawer-body h1")?.textContent;
			return said && shown === document.querySelector(%q).href ? %%s : "";
		})()`, row(n)+" a.lead"), fmt.Sprintf("row %d beside the list", n))
	}
	h.key("j")
	h.key("o")
	shows(1)
	h.key("j")
	shows(2)
	h.key("j")
	shows(3)
	h.key("k")
	shows(2)
	// An update of the list keeps the position in it.
	e2e := w.Open(t)
	if _, err := e2e.ExecContext(t.Context(), `UPDATE deliveries SET attempt_count = 2
		WHERE created_at = (SELECT min(created_at) FROM deliveries)`); err != nil {
		t.Fatal(err)
	}
	h.until(`document.querySelector("main tbody tr:last-child .pips")?.textContent === %[1]s ?
		%[1]s : ""`, "2 of 3")
	h.key("j")
	shows(3)
	h.key(kb.Escape)
	if got := evaluate(t, browser, fmt.Sprintf(`document.querySelector(".drawer") ? "open" :
		String(document.activeElement === document.querySelector(%q))`, row(3)+" a.lead",
	)); got != "true" {
		t.Errorf("after Escape the focus is not on the row's link: %s", got)
	}
	h.click(row(4) + " td:nth-child(5)")
	shows(4)
	do(t, browser, press(`.drawer-head button`), chromedp.WaitNotPresent(chromedp.CSS(".drawer")))
	h.click(row(1) + " a.lead")
	do(t, browser, chromedp.WaitVisible(chromedp.CSS(`main h1`)),
		chromedp.WaitVisible(chromedp.Search(`//a[text()="Back to the list"]`)))

	// On a telephone a row opens the page.
	do(t, browser, chromedp.EmulateViewport(narrow, 900),
		chromedp.Navigate(s.URL+"/console/deliveries?state=failed"),
		chromedp.WaitVisible(chromedp.CSS(row(2))))
	h.loaded()
	do(t, browser, press(row(2)+" td:last-child"),
		chromedp.WaitVisible(chromedp.CSS(`main [data-open=resend]`)))
}
