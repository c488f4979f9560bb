package console

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"drawbridge/cmd/e2e/e2etest"
)

// chromium is the browser that all tests share. Each test has a separate window in it, with its
// own cookies and storage.
var chromium = sync.OnceValues(startChromium)

// closeChromium ends Chromium if it was started.
var closeChromium = func() {}

// startChromium starts headless Chromium: if it is installed, Debian's build without a user
// interface, which needs half as much processor time for the same pages.
func startChromium() (context.Context, error) {
	path, err := exec.LookPath("chromium-headless-shell")
	if err != nil {
		path, err = exec.LookPath("chromium")
	}
	if err != nil {
		return nil, fmt.Errorf("tests need Chromium; make test installs it: %w", err)
	}
	profile, err := os.MkdirTemp("", "drawbridge-chromium")
	if err != nil {
		return nil, err
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path), chromedp.DisableGPU, chromedp.UserDataDir(profile),
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-background-networking", true),
		chromedp.Flag("disable-component-update", true),
		// Scripts get no separate threads, which only cost time with few processors.
		chromedp.Flag("js-flags", "--single-threaded"))
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox)
	}
	allocator, stop := chromedp.NewExecAllocator(context.Background(), options...)
	browser, closeBrowser := chromedp.NewContext(allocator)
	closeChromium = func() {
		closeBrowser()
		stop()
		_ = os.RemoveAll(profile)
	}
	return browser, chromedp.Do(browser)
}

// newBrowser opens a window in Chromium.
func newBrowser(t *testing.T) context.Context {
	t.Helper()
	return newBrowserWithin(t, 10*time.Minute)
}

// newBrowserWithin is newBrowser with a deadline for everything done in the window.
func newBrowserWithin(t *testing.T, limit time.Duration) context.Context {
	t.Helper()
	browser, err := chromium()
	if err != nil {
		t.Fatalf("starting Chromium: %v", err)
	}
	window, closeWindow := chromedp.NewContext(browser, chromedp.WithNewBrowserContext())
	t.Cleanup(closeWindow)
	// The first call opens the window and must not use the deadline.
	if err := chromedp.Do(window, onEveryPage(diary+unhurried), focused()); err != nil {
		t.Fatalf("opening a window: %v", err)
	}
	limited, cancel := context.WithTimeout(window, limit)
	t.Cleanup(cancel)
	return limited
}

// focused makes a page behave as if focused, whichever window has the focus.
func focused() chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, emulation.SetFocusEmulationEnabled,
			emulation.SetFocusEmulationEnabledParams{Enabled: true})
		return err
	})
}

// diary records in each page what its script and its live stream did last, to explain why
// a test waited in vain.
const diary = `
	window.diary = [];
	const note = (text) => {
		diary.push(Math.round(performance.now()) + " " + text);
		diary.splice(0, diary.length - 30);
	};
	addEventListener("error", (event) => note("error " + event.message));
	addEventListener("unhandledrejection", (event) => note("rejected " + event.reason));
	for (const name of ["before:request", "after:request", "before:swap", "after:swap", "error",
		"sse:after:connection", "sse:error", "sse:close"]) {
		addEventListener("htmx:" + name, (event) => note(name + " " + (event.detail?.error ?? "")));
	}
	document.addEventListener("visibilitychange", () => note(document.visibilityState));`

// unhurried makes pages wait for longer before they say that the server cannot be reached: a busy
// machine is not what the tests are about.
const unhurried = `
	const bounded = AbortSignal.timeout.bind(AbortSignal);
	AbortSignal.timeout = (ms) => bounded(5 * ms);`

// stepPatience limits one step in a browser, so that a test which waits in vain reports what it
// sees before the whole run times out.
const stepPatience = 2 * time.Minute

// do runs actions in the browser and reports the page's text if one fails.
func do(t *testing.T, browser context.Context, actions ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	step, end := context.WithTimeout(browser, stepPatience)
	defer end()
	if err := chromedp.Do(step, actions...); err != nil {
		after, cancel := context.WithTimeout(context.WithoutCancel(browser), 5*time.Second)
		defer cancel()
		location, _ := chromedp.Run(after, chromedp.Location())
		text, _ := chromedp.Run(after, chromedp.Text(chromedp.CSS("body")))
		notes, _ := chromedp.Run(after,
			chromedp.Evaluate[string](`(window.diary ?? []).join("\n")`))
		t.Fatalf("%v at %s, which did:\n%s\nand shows:\n%s", err, location, notes, text)
	}
}

// evaluate returns the text that a script or its promise yields.
func evaluate(t *testing.T, browser context.Context, script string) string {
	t.Helper()
	text, err := chromedp.Run(browser, chromedp.Evaluate[string](script, chromedp.EvalAwaitPromise))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// signIn signs a demo user in and ends on the overview.
func signIn(t *testing.T, browser context.Context, url string, user e2etest.DemoUser) {
	t.Helper()
	do(t, browser,
		chromedp.Navigate(url+"/console"),
		typeInto(`input[type=email]`, user.Email),
		typeInto(`input[type=password]`, user.Password),
		chromedp.Submit(chromedp.CSS(`input[type=password]`)),
		chromedp.WaitVisible(chromedp.Search(`//h1[text()="Overview"]`)),
	)
	// A navigation that began earlier would mistake the end of this one's loading for its own.
	(&userInput{T: t, browser: browser}).loaded()
}

// press activates a visible link or button by its click method. A mouse click goes to a
// position on the page, where the element may move while fonts and updates arrive.
func press(selector string) chromedp.Action[chromedp.Void] {
	return chromedp.Steps(
		chromedp.WaitVisible(chromedp.CSS(selector)),
		chromedp.Evaluate[chromedp.Void](fmt.Sprintf(`document.querySelector(%q).click()`, selector)),
	)
}

// typeInto focuses a field and types. The library's own method reads the field's node
// while the browser's events change it.
func typeInto(selector, text string) chromedp.Action[chromedp.Void] {
	return chromedp.Steps(
		chromedp.WaitVisible(chromedp.CSS(selector)),
		chromedp.Evaluate[chromedp.Void](fmt.Sprintf(`document.querySelector(%q).focus()`, selector)),
		keyed(text),
	)
}

// keyed presses keys as a keyboard does: a key's character is sent with its key-down event. A
// separate character event could arrive after the key has taken effect, such as Enter on a link,
// and go to whatever has the focus then, even on the next page.
func keyed(keys string, options ...chromedp.KeyOption) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		for _, key := range keys {
			events := kb.Encode(key)
			down, up := events[0], events[len(events)-1]
			for _, option := range options {
				option(down)
				option(up)
			}
			if len(events) > 2 && down.Modifiers&^int64(chromedp.ModifierShift) == 0 {
				down.Text, down.UnmodifiedText = events[1].Text, events[1].UnmodifiedText
			} else {
				down.Type = kb.KeyRawDown
			}
			for _, event := range []*input.DispatchKeyEventParams{down, up} {
				if _, err := cdp.Call(ctx, target, input.DispatchKeyEvent, *event); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// withoutScript turns JavaScript off for all further pages.
func withoutScript() chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, emulation.SetScriptExecutionDisabled,
			emulation.SetScriptExecutionDisabledParams{Value: true})
		return err
	})
}

func TestOperatorSeesTheDeliveryAndResendsIt(t *testing.T) {
	t.Parallel()
	w, e := e2etest.New(t), e2etest.NewEndpoint(t, "200 OK")
	w.Env["SSL_CERT_FILE"] = e.CAFile
	data := w.DemoData()
	s := w.Serve()
	w.Subscribe(data, e.URL)
	e2etest.WantDraw(t, s.URL, data, "first_regular")
	first := e.Next(t)
	uid, _ := first.Value("x-drawbridge-delivery")
	w.WaitForState(uid, "delivered")
	browser := newBrowser(t)
	signIn(t, browser, s.URL, data.Users[1])
	const stamp = `document.documentElement.dataset.loaded ||= String(performance.timeOrigin)`
	do(t, browser,
		chromedp.Navigate(s.URL+"/console/deliveries"),
		press(fmt.Sprintf(`a[href="/console/deliveries/%s"]`, uid)),
		chromedp.WaitVisible(chromedp.Search(`//main[contains(., "Attempt 1: 200 OK")]`)),
	)
	loadedAt := evaluate(t, browser, stamp)
	do(t, browser,
		chromedp.Evaluate[chromedp.Void](
			`void (window.before = document.getElementById("live").innerHTML)`),
		press(`[data-open=resend]`),
		chromedp.WaitVisible(chromedp.CSS(`dialog #reason`)),
		typeInto(`dialog #reason`, "partner asked"),
		press(`dialog .dialog-form button[type=submit]`),
	)
	again := e.Next(t)
	if !bytes.Equal(first.Body, again.Body) {
		t.Errorf("the re-send's body is %s, the first was %s", again.Body, first.Body)
	}
	newUID, _ := again.Value("x-drawbridge-delivery")
	// The page shows that the new delivery arrived, and it is still the same page.
	const panel = `section[aria-labelledby=resends-title] `
	link := fmt.Sprintf(panel+`a[href="/console/deliveries/%s"]`, newUID)
	row := `//section[@aria-labelledby="resends-title"]//tr[.//a[contains(@href, "` + newUID + `")]]`
	do(t, browser,
		chromedp.WaitVisible(chromedp.CSS(link)),
		chromedp.WaitVisible(chromedp.Search(row+`//*[text()="Delivered"]`)),
	)
	// A late response shows an earlier state, and is replaced.
	if gone := evaluate(t, browser, `(async () => {
		await htmx.swap({
			sourceElement: document.querySelector("dialog .dialog-form"), text: before,
			target: document.getElementById("live"), swap: "innerMorph",
		});
		return String(!document.getElementById("live").innerHTML.includes("`+newUID+`"));
	})()`); gone != "true" {
		t.Error("the page did not show the answer that came late")
	}
	do(t, browser, chromedp.WaitVisible(chromedp.Search(row+`//*[text()="Delivered"]`)))
	if evaluate(t, browser, stamp) != loadedAt {
		t.Error("the page was reloaded")
	}
	// The same dialog, opened again, is another form.
	do(t, browser,
		press(`[data-open=resend]`),
		chromedp.WaitVisible(chromedp.CSS(`dialog #reason`)),
		typeInto(`dialog #reason`, "once more"),
		press(`dialog .dialog-form button[type=submit]`),
	)
	if more, _ := e.Next(t).Value("x-drawbridge-delivery"); more == newUID {
		t.Errorf("the second re-send is %s again", more)
	}
	do(t, browser,
		press(link),
		chromedp.WaitVisible(chromedp.Search(`//main[contains(., "partner asked")]`)),
	)
	var audited int
	if err := w.Open(t).Get(&audited, `SELECT count(*) FROM audit_log
		WHERE action = 'delivery.resend' AND reason = 'partner asked'
		  AND actor = 'support@drawbridge.example'`); err != nil || audited != 1 {
		t.Errorf("the audit log holds %d entries, %v", audited, err)
	}
}

func TestConsoleWorksWithoutScript(t *testing.T) {
	t.Parallel()
	w, e := e2etest.New(t), e2etest.NewEndpoint(t, "500 Internal Server Error")
	w.Env["SSL_CERT_FILE"] = e.CAFile
	data := w.DemoData()
	s := w.Serve()
	w.Subscribe(data, e.URL)
	e2etest.RequestDraw(t, s.URL, data, "first_regular")
	uid, _ := e.Next(t).Value("x-drawbridge-delivery")
	w.WaitForState(uid, "failed")
	form := fmt.Sprintf("/console/deliveries/%s/resend", uid)
	browser := newBrowser(t)
	do(t, browser, withoutScript())
	signIn(t, browser, s.URL, data.Users[1])
	do(t, browser,
		chromedp.Navigate(s.URL+"/console/deliveries?state=failed"),
		chromedp.WaitVisible(chromedp.CSS(fmt.Sprintf(`a[href="/console/deliveries/%s"]`, uid))),
		chromedp.Navigate(s.URL+"/console/deliveries/"+uid),
		chromedp.WaitVisible(chromedp.Search(`//main[contains(., "Attempt 3")]`)),
		chromedp.WaitVisible(chromedp.CSS(`a[href="`+form+`"]`)),
		chromedp.Navigate(s.URL+form),
		chromedp.WaitVisible(chromedp.CSS(`#reason`)),
		typeInto(`#reason`, "without script"),
		chromedp.Submit(chromedp.CSS(`#reason`)),
		chromedp.WaitVisible(chromedp.Search(`//main[contains(., "without script")]`)),
	)
	text, err := chromedp.Run(browser, chromedp.Text(chromedp.CSS("main")))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(text, "support@drawbridge.example") {
		t.Errorf("the page does not say who re-sent it:\n%s", text)
	}
}
