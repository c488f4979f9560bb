package console

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"drawbridge/cmd/e2e/e2etest"
	"drawbridge/internal/waittest"
	"drawbridge/views/paths"
)

// delayingProxy is the console behind a proxy that passes requests on at once and delays the
// responses as the test wants.
func delayingProxy(t *testing.T, server string, late func(method, path string)) string {
	t.Helper()
	target, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(target)
	proxy.ModifyResponse = func(answer *http.Response) error {
		late(answer.Request.Method, answer.Request.URL.Path)
		return nil
	}
	s := httptest.NewServer(proxy)
	t.Cleanup(s.Close)
	return s.URL
}

// A double click opens a dialog like a single one, and a dialog stays open while text in it is
// selected with the mouse, wherever the button is released.
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

// A user who presses again before the response has arrived sees the response to the first press: a
// secret that is shown only once.
func TestASecondPressKeepsTheSecret(t *testing.T) {
	t.Parallel()
	w := e2etest.New(t)
	data := w.DemoData()
	form := paths.To(paths.ClientNew, data.Partners[0].UID.String())
	sent := make(chan struct{}, 8)
	address := delayingProxy(t, w.Serve("--roles", "console").URL, func(method, path string) {
		if method != http.MethodPost || path != form {
			return
		}
		sent <- struct{}{}
		// The time that the second press may take to arrive here.
		after := time.NewTimer(2 * time.Second)
		defer after.Stop()
		for len(sent) < 2 {
			select {
			case <-after.C:
				return
			case <-time.After(20 * time.Millisecond):
			}
		}
	})
	browser := newBrowser(t)
	h := &userInput{T: t, browser: browser}
	do(t, browser, chromedp.EmulateViewport(wide, 1400))
	signIn(t, browser, address, data.Users[0])
	do(t, browser, chromedp.Navigate(address+form))
	at := h.spot(`main form .dialog-acts [type=submit]`)
	do(t, browser, chromedp.MouseClickXY(at.X, at.Y))
	waittest.Until(t, "the form to be sent", func() bool { return len(sent) > 0 })
	do(t, browser, chromedp.MouseClickXY(at.X, at.Y),
		seen(`//h1[text()="Credentials issued"]`))
}

// Text typed while a partner's merchants are being loaded is kept.
func TestWhatIsTypedMeanwhileStays(t *testing.T) {
	t.Parallel()
	w := e2etest.New(t)
	data := w.DemoData()
	typed := make(chan struct{})
	address := delayingProxy(t, w.Serve("--roles", "console").URL, func(method, path string) {
		if method == http.MethodPost && path == paths.SubscriptionNew {
			<-typed
		}
	})
	browser := newBrowser(t)
	signIn(t, browser, address, data.Users[0])
	do(t, browser,
		chromedp.Navigate(address+paths.SubscriptionNew),
		typeInto("#name", "Led"),
		chromedp.Evaluate[chromedp.Void](fmt.Sprintf(`(() => {
			const partner = document.getElementById("partner");
			partner.value = %q;
			partner.dispatchEvent(new Event("change", { bubbles: true }));
		})()`, data.Partners[0].UID)),
		typeInto("#name", "ger"),
		typeInto("#alert_email", "a"),
	)
	close(typed)
	(&userInput{T: t, browser: browser}).until(
		`document.querySelector("[name=merchant]") ? %s : ""`, "the partner's merchants")
	if got := evaluate(t, browser, `document.getElementById("name").value`); got != "Ledger" {
		t.Errorf("after the answer the name is %q", got)
	}
}

// While the next delivery is loading, the previous one beside the list is removed, with the buttons
// that act on it, and a user whose session has ended is told so there.
func TestTheNextDeliveryIsAwaited(t *testing.T) {
	t.Parallel()
	w := e2etest.New(t)
	data := w.DemoData()
	made := w.Subscribe(data, "https://hooks.partner.example/x")
	w.FailedDeliveries(data, made.UID, 2)
	db := w.Open(t)
	var second string
	if err := db.Get(&second, `SELECT delivery_uid FROM deliveries
		ORDER BY created_at LIMIT 1`); err != nil {
		t.Fatal(err)
	}
	shown := make(chan struct{})
	address := delayingProxy(t, w.Serve("--roles", "console").URL, func(_, path string) {
		if path == paths.To(paths.Delivery, second) {
			<-shown
		}
	})
	browser := newBrowser(t)
	h := &userInput{T: t, browser: browser}
	do(t, browser, chromedp.EmulateViewport(wide, 900))
	signIn(t, browser, address, data.Users[1])
	do(t, browser, chromedp.Navigate(address+paths.Deliveries+"?state=failed"),
		chromedp.WaitVisible(chromedp.CSS(`main tbody tr:nth-child(2)`)))
	h.loaded()
	h.key("j")
	h.key("o")
	do(t, browser, seen(`//*[@id="drawer-body"]//h1`))
	h.key("j")
	do(t, browser, seen(`//*[@id="drawer-body"]/p[text()="Loading the delivery"]`))
	close(shown)
	do(t, browser, seen(`//*[@id="drawer-body"]//h1`))
	w.Execute(db, `DELETE FROM user_sessions`)
	h.key("k")
	do(t, browser, seen(`//*[@id="drawer-body"]/p[contains(., "You are signed out.")]`))
}
