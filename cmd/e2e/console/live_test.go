package console

import (
	"context"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"drawbridge/cmd/e2e/e2etest"
)

// TestLivePageNoticesSilence sets the clock of a page forward, as if it had received nothing
// for long, and makes htmx give the stream up: the page reconnects by itself, and never says
// that it is live while it is not.
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
		// Its polls are marked as polls.
		chromedp.Evaluate[chromedp.Void](`
			document.addEventListener("htmx:before:request", (event) => {
				document.body.dataset.asks = event.detail.ctx.request.headers["X-Poll"];
			})`),
		chromedp.WaitVisible(chromedp.CSS(`body[data-asks=true]`)),
	)
}

// All times on a page are in one zone, even if the browser is in another zone than it has reported;
// the next page uses the browser's zone.
func TestAPageHasOneZone(t *testing.T) {
	t.Parallel()
	w := e2etest.New(t)
	data := w.DemoData()
	s := w.Serve("--roles", "console")
	browser := newBrowser(t)
	do(t, browser, browserZone("America/New_York"))
	signIn(t, browser, s.URL, data.Users[1])
	for _, one := range []struct{ moved, zone, hour string }{
		{"America/New_York", "America/New_York", "04"},
		{"Asia/Tokyo", "America/New_York", "04"},
		{"Asia/Tokyo", "Asia/Tokyo", "18"},
	} {
		do(t, browser,
			browserZone(one.moved),
			chromedp.Navigate(s.URL+"/console/deliveries"),
			chromedp.WaitVisible(chromedp.CSS(`live-status button[data-state=live]`)),
			// The last update was at nine o'clock UTC.
			chromedp.Evaluate[chromedp.Void](`{
				const region = document.getElementById("live");
				Date.now = () => Date.UTC(2026, 0, 15, 9);
				for (const name of ["sse:before:message", "error"]) {
					region.dispatchEvent(new CustomEvent("htmx:" + name, { bubbles: true }));
				}
			}`),
		)
		said := evaluate(t, browser,
			`document.querySelector(".zone").lastChild.textContent + " " +
			document.querySelector(".live-word").textContent`)
		if want := one.zone + " Not connected since " + one.hour + ":00:00"; said != want {
			t.Errorf("in %s a page says %q, want %q", one.moved, said, want)
		}
	}
}

func browserZone(name string) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, emulation.SetTimezoneOverride,
			emulation.SetTimezoneOverrideParams{TimezoneID: name})
		return err
	})
}
