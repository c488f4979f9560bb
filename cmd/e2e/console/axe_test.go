package console

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

const (
	wide   = 1440
	narrow = 360
	// mostShift is the largest cumulative layout shift that nobody notices.
	mostShift = 0.05
)

// look is a width and a theme in which pages are checked.
type look struct {
	name   string
	width  int64
	scheme string
	// rules are the axe-core rules to run, nil for all.
	rules []string
}

// looks are the looks of make test: each width and each theme once. The first runs every rule.
// The page does not change afterwards, so the other runs only rules that another theme or width
// can break. The build tag walks adds the remaining two.
var looks = []look{
	{"1440-light", wide, "light", nil},
	{"360-dark", narrow, "dark", slices.Concat(ofTheme, ofWidth)},
}

// The rules about colours, and those that depend on what is shown, hidden and placed side
// by side at a width.
var (
	ofTheme = []string{"color-contrast", "link-in-text-block"}
	ofWidth = []string{
		"aria-command-name", "aria-hidden-focus", "button-name", "image-alt", "label", "link-name",
		"nested-interactive", "scrollable-region-focusable", "select-name", "summary-name",
		"target-size",
	}
)

// picturesIn is the folder for screenshots, empty for none.
func picturesIn() string { return os.Getenv("DRAWBRIDGE_TEST_SCREENSHOTS") }

// TestEveryPageIsAccessibleAndInert sends payloads through every input that is open to outsiders
// and visits every page: no payload runs, makes a request to another server, becomes an element
// of the page or makes it wider, and axe-core finds nothing in any look. With
// DRAWBRIDGE_TEST_SCREENSHOTS there are no payloads, each look runs every rule, and a screenshot
// of it is saved in that folder.
func TestEveryPageIsAccessibleAndInert(t *testing.T) {
	t.Parallel()
	c, r := newCanary(t), newCrawler(t)
	axe, err := os.ReadFile("../../../static/node_modules/axe-core/axe.min.js")
	if err != nil {
		t.Fatalf("tests need axe-core; make test fetches it: %v", err)
	}
	var entered []string
	if picturesIn() == "" {
		r.inject(hostile(c.Listener.Addr().String()))
		entered = append(r.injected(), reflections(c)...)
	} else {
		r.browser = newBrowserWithin(t, time.Hour)
	}
	do(t, r.browser, onEveryPage(guards), onEveryPage(string(axe)), emulate(looks[0]),
		chromedp.Navigate(r.server.URL+"/console/sign-in"))
	r.inspect("/console/sign-in")
	stops := r.stops()
	signIn(t, r.browser, r.server.URL, r.data.Users[2])
	for _, path := range stops {
		do(t, r.browser, emulate(looks[0]))
		r.visit(path)
		r.inert(path)
		r.inspect(path)
	}
	for _, path := range entered { // the window is now as narrow as a telephone
		r.visit(path)
		r.inert(path)
		r.reflows(path)
	}
	if len(entered) > 0 {
		r.mails()
		r.downloads()
	}
	if asked := c.asked.Load(); asked > 0 {
		t.Errorf("the pages asked the canary for %d things", asked)
	}
	r.pagesAreLight(stops)
	r.readingChangesNothing()
	r.unlinked()
	t.Logf("%d pages", len(stops)+len(entered)+1)
}

// inspect checks the open page in every look.
func (r *crawler) inspect(path string) {
	r.T.Helper()
	if shift := r.shift(); shift > mostShift {
		r.T.Errorf("%s: what is read moves while it loads: layout shift %.3f", path, shift)
	}
	for _, look := range looks {
		do(r.T, r.browser, emulate(look))
		if picturesIn() != "" {
			look.rules = nil
		}
		for _, found := range r.violations(look.rules) {
			r.T.Errorf("%s, %s: %s", path, look.name, found)
		}
		if look.width == narrow {
			r.reflows(path)
		}
		if folder := picturesIn(); folder != "" {
			r.picture(filepath.Join(folder, file(path)+"-"+look.name+".png"))
		}
	}
}

// violations runs axe-core rules on the open page, nil for all of them. In a long table, whose rows
// are all alike, it checks the first dozen.
func (r *crawler) violations(rules []string) []string {
	r.T.Helper()
	only := `["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]`
	if rules != nil {
		only = `{type: "rule", values: ["` + strings.Join(rules, `", "`) + `"]}`
	}
	text, err := chromedp.Run(r.browser, chromedp.Evaluate[string](`(async () => {
		await document.fonts.ready;
		const found = await axe.run({exclude: ["tbody tr:nth-child(n+13)"]},
			{resultTypes: ["violations"], runOnly: `+only+`});
		return JSON.stringify(found.violations.flatMap(({id, nodes}) => nodes.map(
			({target, failureSummary, html}) =>
				[id, target.join(" "), html.slice(0, 160), failureSummary].join("\n  "))));
	})()`, chromedp.EvalAwaitPromise))
	if err != nil {
		r.T.Fatal(err)
	}
	var found []string
	if err := json.Unmarshal([]byte(text), &found); err != nil {
		r.T.Fatal(err)
	}
	return found
}

// shift is the page's cumulative layout shift while it loaded.
func (r *crawler) shift() float64 {
	r.T.Helper()
	text, err := chromedp.Run(r.browser, chromedp.Evaluate[string](`new Promise((done) => {
		let sum = 0;
		new PerformanceObserver((list) => {
			for (const entry of list.getEntries()) if (!entry.hadRecentInput) sum += entry.value;
		}).observe({type: "layout-shift", buffered: true});
		setTimeout(() => done(String(sum)), 60);
	})`, chromedp.EvalAwaitPromise))
	if err != nil {
		r.T.Fatal(err)
	}
	sum, err := strconv.ParseFloat(text, 64)
	if err != nil {
		r.T.Fatal(err)
	}
	return sum
}

// reflows fails the test if a narrow page needs horizontal scrolling, breaks a number, or leaves
// the name of a row no room.
func (r *crawler) reflows(path string) {
	r.T.Helper()
	const beyond = `document.documentElement.scrollWidth <= innerWidth ? "" : (() => {
		const scrolls = (e) => e && e !== document.body &&
			(getComputedStyle(e).overflowX !== "visible" || scrolls(e.parentElement));
		return [...document.querySelectorAll("body *")].filter((e) => !scrolls(e.parentElement) &&
			Math.max(e.getBoundingClientRect().right,
				e.getBoundingClientRect().left + e.scrollWidth) > innerWidth + 1).slice(-4).map(
			(e) => e.outerHTML.slice(0, 300) + " of " + e.scrollWidth + " px").join("\n  ") ||
			"a hidden part";
	})()`
	if over := evaluate(r.T, r.browser, beyond); over != "" {
		r.T.Errorf("%s is wider than the window by\n  %s", path, over)
	}
	const broken = `[...document.querySelectorAll(".sums dd")].filter((e) => {
		const figure = document.createRange();
		figure.selectNode(e.firstChild);
		return !e.firstChild.textContent.trim().includes(" ") && figure.getClientRects().length > 1;
	}).map((e) => e.textContent.trim()).join(", ")`
	if figures := evaluate(r.T, r.browser, broken); figures != "" {
		r.T.Errorf("%s breaks the figures %s", path, figures)
	}
	const squeezed = `[...document.querySelectorAll(".cards > tbody > tr > th")].filter((e) =>
		getComputedStyle(e).display === "block" && e.offsetWidth < e.parentElement.clientWidth / 3
	).map((e) => e.textContent.trim()).slice(0, 3).join(", ")`
	if names := evaluate(r.T, r.browser, squeezed); names != "" {
		r.T.Errorf("%s leaves no room for the names %s", path, names)
	}
}

// windowHeight is the height of the window in which pages are checked, in pixels.
const windowHeight = 900

// picture saves a screenshot of the whole page. Meanwhile the window is as high as the page,
// since frames outside the window are not painted.
func (r *crawler) picture(name string) {
	r.T.Helper()
	size, err := chromedp.Run(r.browser, chromedp.Evaluate[[]int64](
		`[innerWidth, document.documentElement.scrollHeight]`))
	if err != nil {
		r.T.Fatal(err)
	}
	do(r.T, r.browser, chromedp.EmulateViewport(size[0], size[1]))
	content, err := chromedp.Run(r.browser, chromedp.FullScreenshot(100))
	do(r.T, r.browser, chromedp.EmulateViewport(size[0], windowHeight))
	if err == nil {
		err = os.WriteFile(name, content, 0o600)
	}
	if err != nil {
		r.T.Fatal(err)
	}
}

// emulate sets the width of the window and the scheme that the system prefers.
func emulate(look look) chromedp.Action[chromedp.Void] {
	return chromedp.Steps(
		chromedp.EmulateViewport(look.width, windowHeight),
		chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
			_, err := cdp.Call(ctx, target, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
				Features: []*emulation.MediaFeature{
					{Name: "prefers-color-scheme", Value: look.scheme},
					{Name: "prefers-reduced-motion", Value: "reduce"},
				},
			})
			return err
		}),
	)
}

// onEveryPage runs a script at the start of every page to come.
func onEveryPage(script string) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, page.AddScriptToEvaluateOnNewDocument,
			page.AddScriptToEvaluateOnNewDocumentParams{Source: script})
		return err
	})
}
