package console

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"drawbridge/cmd/e2e/e2etest"
)

// twoMinutes is how long a user may take from an empty server to the first verified test
// event.
const twoMinutes = 2 * time.Minute

// emptyServer is a development server with one partner and one operator, who is signed
// in.
func emptyServer(t *testing.T) (s *e2etest.Server, browser context.Context) {
	t.Helper()
	w := e2etest.New(t)
	s = w.Serve()
	var partner struct {
		UID string `json:"partner_uid"`
	}
	w.JSON(&partner, "partner", "create", "--name", "Sunvolt Energy")
	user := e2etest.DemoUser{Email: "olga@lender.example", Password: "correct horse battery"}
	made := w.Run(user.Password+"\n", "user", "create", "--email", user.Email, "--name", "Olga",
		"--role", "operator")
	if made.Status != 0 {
		t.Fatal(made.Stderr)
	}
	browser = newBrowser(t)
	do(t, browser, chromedp.EmulateViewport(1280, 900)) // wide enough for the rail
	return s, browser
}

func signInOperator(t *testing.T, browser context.Context, url string) {
	t.Helper()
	signIn(t, browser, url, e2etest.DemoUser{
		Email: "olga@lender.example", Password: "correct horse battery",
	})
}

func TestFromNothingToAVerifiedTestEvent(t *testing.T) {
	t.Parallel()
	start := time.Now()
	s, browser := emptyServer(t)
	signInOperator(t, browser, s.URL)
	do(t, browser,
		press(`a[href="/console/dev/receiver"]`),
		press(`form[action$="/subscribe"] button`),
		press(`main a[href$="/test"]`),
		press(`form[action$="/test"] button`),
		seen(`//*[contains(., "The endpoint confirmed the test event")]`),
	)
	do(t, browser,
		chromedp.Navigate(s.URL+"/console/dev/receiver"),
		seen(`//li[contains(., "Verified: the signature belongs")]`),
	)
	if took := time.Since(start); took > twoMinutes {
		t.Errorf("it took %s", took)
	}
}

// tabTo moves the focus with the Tab key until it is on what the selector names.
func tabTo(t *testing.T, browser context.Context, selector string) {
	t.Helper()
	const most = 120
	script := fmt.Sprintf(`String(!!document.activeElement?.matches(%q))`, selector)
	for range most {
		if evaluate(t, browser, script) == "true" {
			return
		}
		do(t, browser, keyed(kb.Tab))
	}
	t.Fatalf("the Tab key does not lead to %s", selector)
}

func TestFromNothingToAVerifiedTestEventByKeyboard(t *testing.T) {
	t.Parallel()
	s, browser := emptyServer(t)
	signInOperator(t, browser, s.URL)
	// The sample receiver, and one click less than with the mouse: g x.
	tabTo(t, browser, `a[href="/console/dev/receiver"]`)
	do(t, browser, keyed(kb.Enter),
		chromedp.WaitVisible(chromedp.CSS(`form[action$="/subscribe"]`)))
	address := evaluate(t, browser, `document.querySelector(".secret-line code").textContent`)
	tabTo(t, browser, `#secret`)
	do(t, browser, keyed("agreed-by-keyboard"), keyed(kb.Enter),
		seen(`//*[contains(., "knows the secret now")]`))
	// The form, from its list.
	tabTo(t, browser, `a[href="/console/subscriptions"]`)
	do(t, browser, keyed(kb.Enter),
		chromedp.WaitVisible(chromedp.CSS(`main a[href="/console/subscriptions/new"]`)))
	tabTo(t, browser, `main a[href="/console/subscriptions/new"]`)
	do(t, browser, keyed(kb.Enter), chromedp.WaitVisible(chromedp.CSS(`#url`)))
	tabTo(t, browser, `#url`)
	do(t, browser, keyed(address), keyed(kb.Tab),
		seen(`//*[@id="url-check"]//*[contains(., "accepts connections")]`))
	tabTo(t, browser, `#partner`)
	do(t, browser, keyed("Sun"))
	tabTo(t, browser, `[name=secret_mode]`)
	do(t, browser, keyed(kb.ArrowDown))
	tabTo(t, browser, `#secret`)
	do(t, browser, keyed("agreed-by-keyboard"))
	// A test before saving, then the subscription itself.
	tabTo(t, browser, `button[value=try]`)
	do(t, browser, keyed(kb.Enter),
		seen(`//*[@id="trial-result"][contains(., "confirmed the test")]`))
	tabTo(t, browser, `.dialog-acts button[value=save]`)
	do(t, browser, keyed(kb.Enter),
		chromedp.WaitVisible(chromedp.CSS(`#new-secret`)))
	tabTo(t, browser, `main a[href$="/test"]`)
	do(t, browser, keyed(kb.Enter), chromedp.WaitVisible(chromedp.CSS(`#event`)))
	tabTo(t, browser, `form[action$="/test"] button`)
	do(t, browser, keyed(kb.Enter),
		seen(`//*[contains(., "The endpoint confirmed the test event")]`))
	tabTo(t, browser, `a[href="/console/dev/receiver"]`)
	do(t, browser, keyed(kb.Enter),
		seen(`//ol/li[2][contains(., "Verified: the signature belongs")]`))
}

func TestTheSubscriptionFormWorksWithoutScript(t *testing.T) {
	t.Parallel()
	s, browser := emptyServer(t)
	do(t, browser, withoutScript())
	signInOperator(t, browser, s.URL)
	do(t, browser,
		chromedp.Navigate(s.URL+"/console/subscriptions/new"),
		chromedp.WaitVisible(chromedp.CSS(`#url`)),
		typeInto(`#url`, s.URL+"/sample-receiver"),
		press(`button[value=check]`),
		seen(`//*[@id="url-check"]//*[contains(., "accepts connections")]`),
		typeInto(`#partner`, "Sun"),
		press(`#add-header`),
		chromedp.WaitVisible(chromedp.CSS(`#header-1-name`)),
		typeInto(`#header-1-name`, "host"),
		press(`.dialog-acts button[value=save]`),
		chromedp.WaitVisible(chromedp.CSS(`#header-1-name-fault`)),
	)
	do(t, browser,
		press(`button[value=remove-1]`),
		chromedp.WaitNotPresent(chromedp.CSS(`#header-1-name`)),
		press(`.dialog-acts button[value=save]`),
		chromedp.WaitVisible(chromedp.CSS(`#new-secret`)),
	)
	value, err := chromedp.Run(browser, chromedp.Text(chromedp.CSS(`#new-secret`)))
	if err != nil || !strings.HasPrefix(strings.TrimSpace(value), "whsec_") {
		t.Fatalf("the secret is %q, %v", value, err)
	}
	do(t, browser,
		chromedp.Navigate(s.URL+"/console/dev/receiver"),
		chromedp.WaitVisible(chromedp.CSS(`#secret`)),
		typeInto(`#secret`, strings.TrimSpace(value)),
		press(`form[action$="/secret"] button`),
		seen(`//*[contains(., "knows the secret now")]`),
		chromedp.Navigate(s.URL+"/console/subscriptions"),
		press(`.table th a.lead`),
		press(`main a[href$="/test"]`),
		press(`form[action$="/test"] button`),
	)
	lookAgainUntil(t, browser, "The endpoint confirmed the test event")
	do(t, browser,
		chromedp.Navigate(s.URL+"/console/dev/receiver"),
		seen(`//li[contains(., "Verified: the signature belongs")]`),
	)
}

// lookAgainUntil follows the reload link of a page that is not live, until the page shows
// a text.
func lookAgainUntil(t *testing.T, browser context.Context, text string) {
	t.Helper()
	const link = `//main//a[text()="Look again"]`
	for {
		do(t, browser, seen(fmt.Sprintf(`//main//*[contains(text(), %q)] | %s`, text, link)))
		if strings.Contains(evaluate(t, browser, `document.querySelector("main").textContent`), text) {
			return
		}
		again := evaluate(t, browser, `document.querySelector("#result p > a").href`)
		do(t, browser, chromedp.Navigate(again))
	}
}

// seen waits for an element by XPath.
func seen(path string) chromedp.Action[chromedp.Void] {
	return chromedp.WaitVisible(chromedp.Search(path))
}
