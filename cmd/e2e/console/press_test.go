package console

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"syscall"
	"testing"

	"github.com/chromedp/chromedp"

	"drawbridge/cmd/e2e/e2etest"
)

// outage is a console in a browser whose server and database can be taken away.
type outage struct {
	*e2etest.Harness
	server  *e2etest.Server
	browser context.Context
	user    e2etest.DemoUser
	data    e2etest.Demo
}

func newOutage(t *testing.T) *outage {
	t.Helper()
	w := e2etest.New(t)
	o := &outage{Harness: w, data: w.DemoData()}
	o.user = o.data.Users[0]
	o.server = w.Serve()
	// A restarted server listens at the same address.
	w.Env["DRAWBRIDGE_LISTEN"] = strings.TrimPrefix(o.server.URL, "http://")
	o.browser = newBrowser(t)
	do(t, o.browser, chromedp.EmulateViewport(1280, 900))
	signIn(t, o.browser, o.server.URL, o.user)
	return o
}

// database makes the database reachable or unreachable.
func (o *outage) database(reachable bool) {
	o.T.Helper()
	address, err := url.Parse(o.Env["DATABASE_URL"])
	if err != nil {
		o.T.Fatal(err)
	}
	name := strings.TrimPrefix(address.Path, "/")
	address.Path = "/postgres"
	o.Tool("psql", "--dbname", address.String(),
		"-c", fmt.Sprintf(`ALTER DATABASE %q ALLOW_CONNECTIONS %t`, name, reachable),
		"-c", fmt.Sprintf(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity
		                    WHERE datname = '%s' AND NOT %t`, name, reachable))
}

func (o *outage) signal(signal syscall.Signal) {
	o.T.Helper()
	if err := o.server.Command.Process.Signal(signal); err != nil {
		o.T.Fatal(err)
	}
}

// mostPresses is how often a button is pressed until the server's state is reported correctly: a
// busy server that answers too late looks like an unreachable one.
const mostPresses = 20

// refused presses a button and checks that a reason with this beginning appears, with the focus.
func (o *outage) refused(button, reason string) {
	o.T.Helper()
	var text string
	for range mostPresses {
		do(o.T, o.browser, press(button), chromedp.WaitVisible(chromedp.CSS(".press-fault")))
		text = evaluate(o.T, o.browser, `document.activeElement.textContent`)
		if strings.HasPrefix(text, reason) {
			break
		}
	}
	if !strings.HasPrefix(text, reason) {
		o.T.Errorf("the focus is on %q, want it on the reason %q", text, reason)
	}
	if next := evaluate(o.T, o.browser, fmt.Sprintf(
		`String(document.querySelectorAll(".press-fault").length) + " " +
		 String(document.querySelector(".press-fault").previousElementSibling?.contains(
			document.querySelector(%q)))`, button)); next != "1 true" {
		o.T.Errorf("the reason does not stand at the button: %s", next)
	}
}

// Pressing a button has a visible result while the session is over, the database is down and the
// server hangs or is unreachable; typed text is kept, and the same form is sent in the end.
func TestAPressedButtonIsAlwaysAnswered(t *testing.T) {
	t.Parallel()
	o := newOutage(t)
	const (
		button = `form.subscription-form .dialog-acts button[value=save]`
		typed  = `document.getElementById("name").value + " " + document.getElementById("url").value`
	)
	do(t, o.browser,
		chromedp.Navigate(o.server.URL+"/console/subscriptions/new?partner="+
			o.data.Partners[0].UID.String()),
		typeInto("#name", "Ledger"),
		typeInto("#url", "https://hooks.example.com/ledger"),
	)
	keeps := func(when string) {
		t.Helper()
		if got := evaluate(t, o.browser, typed); got != "Ledger https://hooks.example.com/ledger" {
			t.Errorf("%s the form has %q", when, got)
		}
	}
	o.database(false)
	o.refused(button, "The server cannot use its database.")
	keeps("without its database")
	o.database(true)

	o.signal(syscall.SIGSTOP)
	o.refused(button, "The server cannot be reached.")
	keeps("with a server that hangs")
	o.signal(syscall.SIGCONT)

	o.server.Kill()
	o.refused(button, "The server cannot be reached.")
	keeps("without a server")
	o.server = o.Serve()

	db := o.Open(t)
	o.Execute(db, `DELETE FROM user_sessions`)
	o.refused(button, "You are signed out.")
	keeps("signed out")
	o.elsewhere("/console/sign-in")
	do(t, o.browser,
		press(button),
		seen(`//main[contains(., "Ledger")]//*[contains(., "hooks.example.com")]`),
	)
	e2etest.WaitForCount(t, db, 1,
		`SELECT count(*) FROM subscriptions WHERE url = 'https://hooks.example.com/ledger'`)
}

// elsewhere sends the account's password to a page, as another tab with the same cookies would.
func (o *outage) elsewhere(path string) {
	o.T.Helper()
	do(o.T, o.browser, chromedp.Evaluate[chromedp.Void](fmt.Sprintf(`
		fetch(%q, { method: "POST", redirect: "manual",
			body: new URLSearchParams({ email: %q, password: %q }) })
			.then(() => document.body.dataset.back = "yes")`, path, o.user.Email, o.user.Password)),
		chromedp.WaitVisible(chromedp.CSS(`body[data-back=yes]`)),
	)
}

// A user who must prove their identity again after typing does not have to type again.
func TestAnOldProofKeepsTheForm(t *testing.T) {
	t.Parallel()
	o := newOutage(t)
	const button = `form.dialog-form [type=submit]`
	db := o.Open(t)
	o.Execute(db, `UPDATE users SET role = 'admin'`)
	do(t, o.browser,
		chromedp.Navigate(o.server.URL+"/console/people/new"),
		typeInto("#ask-email", "bo@lender.example"),
		typeInto("#ask-name", "Bo Berg"),
	)
	o.Execute(db, `UPDATE user_sessions SET proved_at = proved_at - interval '1 hour'`)
	o.refused(button, "Confirm your identity first.")
	if got := evaluate(t, o.browser, `document.getElementById("ask-email").value + " " +
		document.getElementById("ask-name").value + " " +
		document.querySelector(".press-fault a[target=_blank]").getAttribute("href")`); got !=
		"bo@lender.example Bo Berg /console/account/confirm" {
		t.Errorf("the form and the way on are %q", got)
	}
	o.elsewhere("/console/account/confirm")
	do(t, o.browser, press(button), seen(`//h1[contains(., "One-time password")]`))
	e2etest.WaitForCount(t, db, 1, `SELECT count(*) FROM users WHERE email = 'bo@lender.example'`)
}

// Typed text survives the choice of a partner by a user whose session has ended, who is told so at
// the choice.
func TestAChoiceWhileSignedOutKeepsTheForm(t *testing.T) {
	t.Parallel()
	o := newOutage(t)
	do(t, o.browser,
		chromedp.Navigate(o.server.URL+"/console/subscriptions/new"),
		typeInto("#name", "Ledger"),
	)
	o.Execute(o.Open(t), `DELETE FROM user_sessions`)
	const choose = `(() => {
		const partner = document.getElementById("partner");
		partner.value = %q;
		partner.dispatchEvent(new Event("change", { bubbles: true }));
	})()`
	do(t, o.browser,
		chromedp.Evaluate[chromedp.Void](fmt.Sprintf(choose, o.data.Partners[0].UID)),
		seen(`//select[@id="partner"]/following-sibling::*[contains(., "You are signed out.")]`),
	)
	if got := evaluate(t, o.browser, `document.getElementById("name").value + " " +
		document.getElementById("partner").value`); got != "Ledger "+o.data.Partners[0].UID.String() {
		t.Errorf("the form has %q", got)
	}
}

// A live page shows since when it has been disconnected, and a page that could not be loaded
// appears by itself.
func TestPagesComeBackByThemselves(t *testing.T) {
	t.Parallel()
	o := newOutage(t)
	do(t, o.browser,
		chromedp.Navigate(o.server.URL+"/console/deliveries"),
		chromedp.WaitVisible(chromedp.CSS(`live-status button[data-state=live]`)),
	)
	o.server.Kill()
	do(t, o.browser, chromedp.WaitVisible(chromedp.CSS(`live-status button[data-state=away]`)))
	if word := evaluate(t, o.browser,
		`document.querySelector(".live-word").textContent`); !strings.HasPrefix(
		word, "Not connected since ") {
		t.Errorf("the live page says %q", word)
	}
	o.server = o.Serve()
	do(t, o.browser, chromedp.WaitVisible(
		chromedp.CSS(`live-status button:is([data-state=live], [data-state=polling])`)))

	o.database(false)
	do(t, o.browser,
		chromedp.Navigate(o.server.URL+"/console/subscriptions"),
		seen(`//h1[text()="The database does not answer"]`),
		seen(`//retry-page`),
	)
	o.database(true)
	do(t, o.browser, seen(`//h1[text()="Subscriptions"]`))
}
