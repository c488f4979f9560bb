package console

import (
	"context"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
	"github.com/pquerna/otp/totp"

	"drawbridge/views/paths"
)

// unlinked checks pages that cannot be opened by an address alone: pages after a step, refusals.
// In the end the browser is signed out, and the support user has a second factor.
func (r *crawler) unlinked() {
	r.T.Helper()
	r.prints()
	r.tooLarge()
	r.secondFactor()
	r.forbidden()
	r.noSuchPage()
	r.tooOften()
}

// withoutCookies signs the browser out of everything.
func withoutCookies() chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, network.ClearBrowserCookies, cdp.Empty{})
		return err
	})
}

// cutOnPaper names what a printed page lacks: elements that are cut off or lie outside the paper,
// and rows as long as a sheet.
const cutOnPaper = `[...document.querySelectorAll("main *")].filter((it) =>
	it.getClientRects().length && !it.closest(".visually-hidden") && (
		it.getBoundingClientRect().right > innerWidth + 1 ||
		it.matches("tr") && it.offsetHeight > 1000 ||
		it.matches("td, th, td *, th *") && getComputedStyle(it).overflowX !== "visible" &&
			it.scrollWidth > it.clientWidth + 1)
).map((it) => it.localName + " " + it.innerText.slice(0, 60)).slice(-3).join("; ")`

// prints checks the print layout, and saves a picture of it for people to look at.
func (r *crawler) prints() {
	r.T.Helper()
	onPaper := func(media string) chromedp.Action[chromedp.Void] {
		return chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
			_, err := cdp.Call(ctx, target, emulation.SetEmulatedMedia,
				emulation.SetEmulatedMediaParams{Media: media})
			return err
		})
	}
	for _, path := range []string{
		paths.Application, paths.Delivery, paths.Desk, paths.Deliveries, paths.Audit,
	} {
		const paper = 718 // A4 between the margins, in CSS pixels
		do(r.T, r.browser, emulate(look{width: paper, scheme: "light"}), onPaper("print"),
			chromedp.Navigate(r.server.URL+r.fill(path)))
		if cut := evaluate(r.T, r.browser, cutOnPaper); cut != "" {
			r.T.Errorf("%s is cut on paper: %s", path, cut)
		}
		if picturesIn() != "" {
			r.picture(filepath.Join(picturesIn(), file(path)+"-print.png"))
		}
	}
	do(r.T, r.browser, onPaper(""), emulate(looks[0]))
	if picturesIn() == "" {
		return
	}
	do(r.T, r.browser, chromedp.Navigate(r.server.URL+paths.JobConsole),
		chromedp.WaitVisible(chromedp.CSS(`main, nav`)))
	r.picture(filepath.Join(picturesIn(), "job-console.png"))
}

// tooLarge sends a form that is larger than the console reads.
func (r *crawler) tooLarge() {
	r.T.Helper()
	do(r.T, r.browser, emulate(looks[0]), chromedp.Navigate(r.server.URL+paths.Account),
		chromedp.Evaluate[chromedp.Void](`(() => {
			const form = document.createElement("form"), text = document.createElement("textarea");
			[form.method, form.action] = ["post", "/console/preferences"];
			[text.name, text.value] = ["filler", "x".repeat(1 << 20)];
			form.append(text);
			document.body.append(form);
			form.submit();
		})()`),
		chromedp.WaitVisible(chromedp.Search(`//main[contains(., "is too large")]`)))
	r.inspect("413")
}

// secondFactor sets a second factor up on the pages and signs in with it.
func (r *crawler) secondFactor() {
	r.T.Helper()
	user := r.data.Users[1]
	do(r.T, r.browser, withoutCookies())
	signIn(r.T, r.browser, r.server.URL, user)
	do(r.T, r.browser, chromedp.Navigate(r.server.URL+paths.Account),
		press(`form[action="`+paths.SecondBegin+`"] button`),
		chromedp.WaitVisible(chromedp.CSS(`.qr`)))
	r.inspect(paths.SecondFactor + "?begun")
	secret := evaluate(r.T, r.browser, `document.querySelector(".shown-once code").innerText`)
	do(r.T, r.browser, typeInto(`#code`, factorCode(r.T, secret)),
		chromedp.Submit(chromedp.CSS(`#code`)),
		chromedp.WaitVisible(chromedp.CSS(`.codes`)))
	r.inspect(paths.RecoveryCodes)
	do(r.T, r.browser, withoutCookies(), emulate(looks[0]),
		chromedp.Navigate(r.server.URL+paths.Home),
		typeInto(`#email`, user.Email), typeInto(`#password`, user.Password),
		chromedp.Submit(chromedp.CSS(`#password`)), chromedp.WaitVisible(chromedp.CSS(`#code`)))
	r.inspect(paths.SignInCode)
}

// factorCode is the code that an authenticator app shows for a secret now.
func factorCode(t *testing.T, spaced string) string {
	t.Helper()
	code, err := totp.GenerateCode(strings.ReplaceAll(spaced, " ", ""), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return code
}

// forbidden requests a page as an operator that only an admin may see.
func (r *crawler) forbidden() {
	r.T.Helper()
	do(r.T, r.browser, withoutCookies())
	signIn(r.T, r.browser, r.server.URL, r.data.Users[0])
	do(r.T, r.browser, chromedp.Navigate(r.server.URL+paths.Settings),
		chromedp.WaitVisible(chromedp.Search(`//h1[contains(., "You may not do this")]`)))
	r.inspect("403")
}

// noSuchPage opens an address that does not exist, and checks that the error is a console page.
func (r *crawler) noSuchPage() {
	r.T.Helper()
	do(r.T, r.browser, emulate(looks[0]), chromedp.Navigate(r.server.URL+"/console/nothing"),
		chromedp.WaitVisible(chromedp.CSS(`nav.rail`)),
		chromedp.WaitVisible(chromedp.Search(`//h1[contains(., "There is nothing here")]`)))
	r.inspect("404")
}

// tooOften tries wrong passwords until the sign-in asks to wait.
func (r *crawler) tooOften() {
	r.T.Helper()
	wrong := url.Values{"email": {"nobody@lender.example"}, "password": {"a wrong password"}}
	for status := 0; status != http.StatusTooManyRequests; {
		answer, err := http.PostForm(r.server.URL+paths.SignIn, wrong)
		if err != nil {
			r.T.Fatal(err)
		}
		_ = answer.Body.Close()
		status = answer.StatusCode
	}
	do(r.T, r.browser, withoutCookies(), chromedp.Navigate(r.server.URL+paths.SignIn),
		typeInto(`#email`, wrong.Get("email")), typeInto(`#password`, wrong.Get("password")),
		chromedp.Submit(chromedp.CSS(`#password`)),
		chromedp.WaitVisible(chromedp.CSS(`.notice-bad`)))
	r.inspect("429")
}
