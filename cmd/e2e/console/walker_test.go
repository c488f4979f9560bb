//go:build walks

package console

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// patience is how long a walker waits for what a page should show. It is there
// for what never comes.
const patience = time.Minute

// walker does the tasks of the console as somebody does who has no mouse: by
// keys that go through the browser like those of a keyboard, never by a click
// that a script makes. Script in these files only looks.
type walker struct {
	*testing.T
	stage   *stage
	browser context.Context
	// name tells this walker's things from those of others.
	name string
	// plain is a browser without script: a control is then focused at once,
	// since the order of the controls is what the other walker tries.
	plain bool
	// known are values that were read off a page, for {name} in texts to come.
	known map[string]string
	// calls are what the browser has asked the server to change.
	calls *calls
	// folder is where the browser keeps what it downloads.
	folder string
}

// shownText is the beginning of what a page or its dialog says.
const shownText = `(document.querySelector("dialog:modal, main") ?? document.body).innerText.
	slice(0, 1500)`

// look evaluates a script; a page that is just being left answers nothing.
func (w *walker) look(script string) string {
	w.Helper()
	text, err := chromedp.Run(w.browser, chromedp.Evaluate[string](script))
	if err != nil && w.browser.Err() != nil {
		w.Fatalf("%v", err)
	}
	return text
}

// page evaluates an expression on a page that is there as a whole, its script
// included; until then the answer is empty.
func (w *walker) page(expression string) string {
	w.Helper()
	return w.look(`document.readyState === "complete" ? String(` + expression + `) : ""`)
}

// until waits for a condition and tells what the page showed when it never came.
func (w *walker) until(what string, holds func() bool) {
	w.Helper()
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for deadline := time.Now().Add(patience); !holds(); <-again.C {
		if time.Now().After(deadline) {
			w.Fatalf("%s: %s; the page at %s shows:\n%s\nits controls are:\n%s", w.name, what,
				w.look(`location.href`), w.look(shownText), w.look(`(() => {`+finder+`
					return roots().flatMap((root) => root ? controls(root) : []).map(nameOf).join(" | ");
				})()`))
		}
	}
}

// sees waits until the page shows a text, in whatever case.
func (w *walker) sees(text string) {
	w.Helper()
	w.until(fmt.Sprintf("%q is not to be seen", w.named(text)), func() bool { return w.shows(text) })
}

// shows tells whether the page shows a text now.
func (w *walker) shows(text string) bool {
	w.Helper()
	return w.page(fmt.Sprintf(`(() => {
		const squeeze = (text) => text.replace(/\s+/g, " ").toLowerCase();
		return squeeze(document.body.innerText).includes(squeeze(%s));
	})()`, quoted(w.named(text)))) == "true"
}

// lacks waits until the page shows a text no more.
func (w *walker) lacks(text string) {
	w.Helper()
	text = w.named(text)
	w.until(fmt.Sprintf("%q is still to be seen", text), func() bool {
		shown := w.page(`document.body.innerText`)
		return shown != "" && !strings.Contains(shown, text)
	})
}

// heads waits for the page with a heading.
func (w *walker) heads(heading string) {
	w.Helper()
	heading = w.named(heading)
	w.until(fmt.Sprintf("there is no page %q", heading), func() bool {
		return w.page(`document.querySelector("main h1")?.innerText.trim() ?? ""`) == heading
	})
}

// at waits for an address that contains a part.
func (w *walker) at(part string) {
	w.Helper()
	w.until("the address never contains "+part, func() bool {
		return strings.Contains(w.page(`location.href`), w.named(part))
	})
}

// keepsFocus fails the test when the page that the walker stood on has dropped
// the focus; a page that was opened since begins at its beginning.
func (w *walker) keepsFocus(after string) {
	w.Helper()
	if w.plain || w.look(`window.walked ?? ""`) == "" {
		return
	}
	// A button that waits for its answer is out of use until then.
	again := time.NewTicker(100 * time.Millisecond)
	defer again.Stop()
	for tries := 0; w.stand("#main").Out && tries < 50; tries++ {
		<-again.C
	}
	if w.stand("#main").Out {
		w.Errorf("%s: the focus is lost after %s at %s", w.name, after, w.look(`location.pathname`))
	}
}

// goes opens an address, as from a bookmark.
func (w *walker) goes(path string) {
	w.Helper()
	do(w.T, w.browser, chromedp.Navigate(w.stage.server.URL+w.named(path)))
}

// reads keeps what an element says under a name.
func (w *walker) reads(name, selector string) string {
	w.Helper()
	script := fmt.Sprintf(`document.querySelector(%s)?.textContent.trim() ?? ""`, quoted(selector))
	w.until("there is no "+selector, func() bool {
		w.known[name] = w.page(script)
		return w.known[name] != ""
	})
	return w.known[name]
}

// marks keeps the address of the page under a name.
func (w *walker) marks(name string) { w.known[name] = w.look(`location.pathname`) }

// unknown is the name of what no task has found out.
var unknown = regexp.MustCompile(`\{[a-z ]+\}`)

// named puts what is known into a text: {me} is the walker's name.
func (w *walker) named(text string) string {
	w.Helper()
	text = strings.ReplaceAll(text, "{me}", w.name)
	for name, value := range w.known {
		text = strings.ReplaceAll(text, "{"+name+"}", value)
	}
	if missing := unknown.FindString(text); missing != "" {
		w.Fatalf("%s: the task that finds out %s has failed", w.name, missing)
	}
	return text
}

func quoted(text string) string {
	encoded, _ := json.Marshal(text) // a string can always be written
	return string(encoded)
}

// enters signs somebody in by the form.
func (w *walker) enters(email, password string) {
	w.Helper()
	w.goes("/console/sign-in")
	w.fill("E-mail", email)
	w.fill("Password", password)
	w.send("Sign in")
}

// leaves signs out by the menu of the account.
func (w *walker) leaves() {
	w.Helper()
	w.press(`[popovertarget=who]`)
	w.send("Sign out")
	w.heads("Sign in to the console")
}
