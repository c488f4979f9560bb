package console

import (
	"testing"

	"github.com/chromedp/chromedp"

	"drawbridge/cmd/e2e/e2etest"
)

// TestLivePageNoticesSilence sets the clock of a page forward, as if nothing had
// been heard for long, and has htmx give its stream up: the page connects again
// by itself, and never says that it is live while it is not.
func TestLivePageNoticesSilence(t *testing.T) {
	t.Parallel()
	w := e2etest.New(t)
	data := w.DemoData()
	s := w.Serve()
	browser := newBrowser(t)
	signIn(t, browser, s.URL, data.Users[1])
	const (
		live    = `live-status button[data-state=live]`
		polling = `live-status button[data-state=polling]`
	)
	do(t, browser,
		chromedp.Navigate(s.URL+"/console/deliveries"),
		chromedp.WaitVisible(chromedp.CSS(live)),
	)
	if moving := evaluate(t, browser, `document.getAnimations().filter((animation) =>
		animation.effect.getComputedTiming().endTime === Infinity).map(
		(animation) => animation.animationName).join(" ")`); moving != "" {
		t.Errorf("a page that waits for news moves without end, which costs those who leave it open: %s",
			moving)
	}
	do(t, browser,
		chromedp.Evaluate[chromedp.Void](`
			document.addEventListener("htmx:sse:after:connection",
				() => document.body.dataset.again = "yes");
			const now = Date.now;
			let ahead = 60000;
			Date.now = () => now() + ahead;
			document.addEventListener("htmx:sse:after:connection", () => ahead = 0)`),
		chromedp.WaitVisible(chromedp.CSS(`body[data-again=yes]`)),
	)
	do(t, browser,
		chromedp.WaitVisible(chromedp.CSS(live)),
		chromedp.Evaluate[chromedp.Void](`
			delete document.body.dataset.again;
			document.getElementById("live")._htmx.sse.reader.cancel();
			document.addEventListener("htmx:sse:before:connection",
				(event) => event.detail.connection.cancelled = true, { once: true })`),
		chromedp.WaitVisible(chromedp.CSS(polling)),
		// Its polls say that they are some.
		chromedp.Evaluate[chromedp.Void](`
			document.addEventListener("htmx:before:request", (event) => {
				document.body.dataset.asks = event.detail.ctx.request.headers["X-Poll"];
			})`),
		chromedp.WaitVisible(chromedp.CSS(`body[data-asks=true]`)),
	)
}
