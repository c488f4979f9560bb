package console

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// first is the entry of the palette that Enter opens.
const first = `#palette-results a.hit[data-here]`

// seeks opens the palette, types, and waits until the entry that Enter would open has a text.
func (h *userInput) seeks(text, want string) {
	h.Helper()
	h.key("/")
	do(h.T, h.browser, chromedp.WaitVisible(chromedp.CSS(`#palette-q:focus`)))
	h.types(text)
	h.until(`[...document.querySelectorAll("#palette-results a.hit")].some(
		(hit) => hit.textContent.includes(%[1]s)) ? %[1]s : ""`, want)
	do(h.T, h.browser, chromedp.WaitVisible(chromedp.CSS(first)))
	if evaluate(h.T, h.browser, `document.getElementById("palette-q")
		.getAttribute("aria-activedescendant") ?? ""`) != evaluate(h.T, h.browser,
		`document.querySelector("#palette-results [data-here]").id || "nothing"`) {
		h.Error("a screen reader does not tell what Enter would open")
	}
}

// The palette finds actions and pages by their words and events by their kinds, offers recently
// opened pages until the user signs out, and says when the server is unreachable.
func TestPalette(t *testing.T) {
	t.Parallel()
	o := newOutage(t)
	h := &userInput{T: t, browser: o.browser}
	h.loaded()
	h.seeks("new subscr", "New subscription")
	h.key(kb.Enter)
	do(t, o.browser, chromedp.WaitVisible(chromedp.Search(`//h1[text()="New subscription"]`)))
	for _, test := range []struct{ typed, found string }{
		{"pause", "Pause a subscription"},
		{"rotate", "Rotate a client secret"},
		{"funding settled", "Deliveries: Funding settled"},
		{"audit", "Audit log"},
	} {
		do(t, o.browser, chromedp.Navigate(o.server.URL+"/console"),
			chromedp.WaitVisible(chromedp.CSS("h1")))
		h.loaded()
		h.seeks(test.typed, test.found)
	}

	partner := o.data.Partners[0]
	do(t, o.browser, chromedp.Navigate(o.server.URL+"/console/partners/"+partner.UID.String()),
		chromedp.WaitVisible(chromedp.CSS("h1")))
	do(t, o.browser, chromedp.Navigate(o.server.URL+"/console"),
		chromedp.WaitVisible(chromedp.CSS("h1")))
	h.loaded()
	kept := evaluate(t, o.browser, `JSON.stringify(localStorage)`)
	if strings.Contains(kept, partner.Name) {
		t.Errorf("the browser keeps on the disk what was opened: %s", kept)
	}
	const recent = `//div[@id="palette-results"]//h2[text()="Recently opened"]`
	h.key("/")
	do(t, o.browser, chromedp.WaitVisible(chromedp.Search(recent)))
	h.key(kb.ArrowDown)
	h.key(kb.Enter)
	do(t, o.browser, chromedp.WaitVisible(chromedp.Search(`//h1[contains(., "`+partner.Name+`")]`)))

	h.loaded()
	o.server.Stop()
	h.key("/")
	do(t, o.browser, chromedp.WaitVisible(chromedp.CSS(`#palette-q:focus`)))
	h.types("sunrise")
	do(t, o.browser, chromedp.WaitVisible(chromedp.Search(
		`//div[@id="palette-results"]//h2[text()="The server cannot be reached"]`)))
	o.server = o.Serve()
	h.key(kb.Escape)

	// The next user to sign in does not see which pages were opened.
	do(t, o.browser, press(`[popovertarget=who]`), press(`form[action="/console/sign-out"] button`),
		chromedp.WaitVisible(chromedp.CSS(`input[type=password]`)))
	kept = evaluate(t, o.browser, `sessionStorage.getItem("drawbridge.recent") ?? ""`)
	if kept != "" {
		t.Errorf("after signing out the browser keeps %s", kept)
	}
	signIn(t, o.browser, o.server.URL, o.user)
	h.key("/")
	do(t, o.browser, chromedp.WaitVisible(chromedp.CSS(`#palette-results a.hit`)))
	if before := evaluate(t, o.browser,
		`[...document.querySelectorAll("#palette-results h2")].map((e) => e.textContent).join()`,
	); strings.Contains(before, "Recently opened") {
		t.Errorf("the palette still offers what was opened before: %s", before)
	}
}

// With forced colours, selected items still differ from the others.
func TestForcedColorsTellWhatIsChosen(t *testing.T) {
	t.Parallel()
	o := newOutage(t)
	h := &userInput{T: t, browser: o.browser}
	do(t, o.browser,
		chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
			_, err := cdp.Call(ctx, target, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
				Features: []*emulation.MediaFeature{{Name: "forced-colors", Value: "active"}},
			})
			return err
		}),
		chromedp.Navigate(o.server.URL+"/console/deliveries?state=failed"),
		chromedp.WaitVisible(chromedp.CSS("h1")),
	)
	h.loaded()
	h.seeks("audit", "Audit log")
	for _, chosen := range []string{
		"main .segment[aria-current]", ".rail a[aria-current]", "#who [aria-pressed=true]", first,
	} {
		// The computed style has the page's colours even where the system overrides them.
		got := evaluate(t, o.browser, fmt.Sprintf(
			`getComputedStyle(document.querySelector(%q)).forcedColorAdjust`, chosen))
		if got != "none" {
			t.Errorf("the system takes the colours of %s away", chosen)
		}
	}
}
