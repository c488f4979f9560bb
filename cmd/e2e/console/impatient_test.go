package console

import (
	"fmt"
	"testing"

	"github.com/chromedp/chromedp"

	"drawbridge/cmd/e2e/e2etest"
	"drawbridge/views/paths"
)

// A dialog opens for a double click as for one, and stays while text in it is selected with the
// mouse, wherever the button is let go.
func TestADialogStaysOpen(t *testing.T) {
	t.Parallel()
	w := e2etest.New(t)
	data := w.DemoData()
	s := w.Serve("--roles", "console")
	browser := newBrowser(t)
	h := &userInput{T: t, browser: browser}
	do(t, browser, chromedp.EmulateViewport(wide, 900))
	signIn(t, browser, s.URL, data.Users[0])
	do(t, browser, chromedp.Navigate(s.URL+paths.Home))
	h.loaded()
	isOpen := func(dialog, when string) {
		t.Helper()
		if evaluate(t, browser, fmt.Sprintf(`String(document.querySelector(%q)?.open)`,
			dialog)) != "true" {
			t.Errorf("%s the dialog is not open", when)
		}
	}
	do(t, browser, press(`.who`))
	const opener = `#who [data-open]`
	at := h.spot(opener)
	for click := range 2 {
		do(t, browser, chromedp.MouseClickXY(at.X, at.Y, chromedp.ClickCount(click+1)))
	}
	isOpen("#keys", "after a double click")

	do(t, browser, chromedp.Navigate(s.URL+paths.Partners), press(`main a[data-ask]`))
	const field = `#ask form input:not([type=hidden])`
	do(t, browser, typeInto(field, "Northwind"))
	at = h.spot(field)
	left, once := chromedp.Button("left"), chromedp.ClickCount(1)
	do(t, browser,
		chromedp.MouseEvent(chromedp.MousePressed, at.X, at.Y, left, once),
		chromedp.MouseEvent(chromedp.MouseMoved, 10, at.Y, left),
		chromedp.MouseEvent(chromedp.MouseReleased, 10, at.Y, left, once))
	isOpen("#ask", "after a selection drawn out of it")
	do(t, browser, chromedp.MouseClickXY(10, 500))
	if evaluate(t, browser, `String(document.querySelector("#ask").open)`) != "false" {
		t.Error("after a click beside it the dialog is open")
	}
}
