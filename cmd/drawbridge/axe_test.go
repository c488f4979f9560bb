package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

const (
	wide   = 1440
	narrow = 360
	// mostShift is the cumulative layout shift that nobody notices.
	mostShift = 0.05
)

// look is a way to look at a page.
type look struct {
	name   string
	width  int64
	scheme string
}

// looks are all ways; the first two have each width and each theme among them.
var looks = []look{
	{"1440-light", wide, "light"},
	{"360-dark", narrow, "dark"},
	{"360-light", narrow, "light"},
	{"1440-dark", wide, "dark"},
}

// picturesIn is the folder that screenshots go to, empty for none.
func picturesIn() string { return os.Getenv("DRAWBRIDGE_SCREENSHOTS") }

// TestEveryPageIsAccessible walks every page with axe-core: wide and light,
// narrow and dark. With DRAWBRIDGE_SCREENSHOTS it looks in all four ways, and
// keeps a picture of each in that folder.
func TestEveryPageIsAccessible(t *testing.T) {
	t.Parallel()
	r := newTour(t)
	axe, err := os.ReadFile("../../static/node_modules/axe-core/axe.min.js")
	if err != nil {
		t.Fatalf("tests need axe-core; make test fetches it: %v", err)
	}
	do(t, r.browser, onEveryPage(string(axe)), emulate(looks[0]),
		chromedp.Navigate(r.server.url+"/console/sign-in"))
	r.inspect("/console/sign-in")
	stops := r.stops()
	signIn(t, r.browser, r.server.url, r.data.Users[2])
	for _, path := range stops {
		do(t, r.browser, emulate(looks[0]))
		r.visit(path)
		r.inspect(path)
	}
	t.Logf("%d pages", len(stops)+1)
}

// inspect looks at the page that is open in every way.
func (r *tour) inspect(path string) {
	r.t.Helper()
	if shift := r.shift(); shift > mostShift {
		r.t.Errorf("%s: what is read moves while it loads: layout shift %.3f", path, shift)
	}
	ways := looks[:2]
	if picturesIn() != "" {
		ways = looks
	}
	for _, look := range ways {
		do(r.t, r.browser, emulate(look))
		for _, found := range r.violations() {
			r.t.Errorf("%s, %s: %s", path, look.name, found)
		}
		if look.width == narrow {
			r.reflows(path)
		}
		if folder := picturesIn(); folder != "" {
			r.picture(filepath.Join(folder, file(path)+"-"+look.name+".png"))
		}
	}
}

// violations runs axe-core on the page that is open.
func (r *tour) violations() []string {
	r.t.Helper()
	text, err := chromedp.Run(r.browser, chromedp.Evaluate[string](`(async () => {
		await document.fonts.ready;
		const found = await axe.run(document, {resultTypes: ["violations"],
			runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]});
		return JSON.stringify(found.violations.flatMap(({id, nodes}) => nodes.map(
			({target, failureSummary, html}) =>
				[id, target.join(" "), html.slice(0, 160), failureSummary].join("\n  "))));
	})()`, chromedp.EvalAwaitPromise))
	if err != nil {
		r.t.Fatal(err)
	}
	var found []string
	if err := json.Unmarshal([]byte(text), &found); err != nil {
		r.t.Fatal(err)
	}
	return found
}

// shift is how far the page's parts moved while it loaded.
func (r *tour) shift() float64 {
	r.t.Helper()
	text, err := chromedp.Run(r.browser, chromedp.Evaluate[string](`new Promise((done) => {
		let sum = 0;
		new PerformanceObserver((list) => {
			for (const entry of list.getEntries()) if (!entry.hadRecentInput) sum += entry.value;
		}).observe({type: "layout-shift", buffered: true});
		setTimeout(() => done(String(sum)), 60);
	})`, chromedp.EvalAwaitPromise))
	if err != nil {
		r.t.Fatal(err)
	}
	sum, err := strconv.ParseFloat(text, 64)
	if err != nil {
		r.t.Fatal(err)
	}
	return sum
}

// reflows fails the test when a narrow page has to be moved sideways.
func (r *tour) reflows(path string) {
	r.t.Helper()
	const beyond = `document.documentElement.scrollWidth <= innerWidth ? "" :
		[...document.querySelectorAll("body *")].filter(
			(element) => element.getBoundingClientRect().right > innerWidth + 1).slice(0, 4).map(
			(element) => element.outerHTML.slice(0, 120) + " of " +
				element.getBoundingClientRect().width + " px").join("\n  ") || "by a hidden part"`
	if over := evaluate(r.t, r.browser, beyond); over != "" {
		r.t.Errorf("%s is wider than the window by\n  %s", path, over)
	}
}

func (r *tour) picture(name string) {
	r.t.Helper()
	content, err := chromedp.Run(r.browser, chromedp.FullScreenshot(100))
	if err == nil {
		err = os.WriteFile(name, content, 0o600)
	}
	if err != nil {
		r.t.Fatal(err)
	}
}

// emulate sets the width of the window and the scheme that the system prefers.
func emulate(look look) chromedp.Action[chromedp.Void] {
	return chromedp.Steps(
		chromedp.EmulateViewport(look.width, 900),
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
