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

// patience is how long a walker waits for what a page should show; only a failing test waits
// that long.
const patience = time.Minute

// walker does the tasks of the console like a user without a mouse: by keys that go through
// the browser like those of a keyboard, never by a click made by a script. Scripts in these
// files only read the page.
type walker struct {
	*testing.T
	stage   *stage
	browser context.Context
	// name distinguishes this walker's things from those of others.
	name string
	// plain says that the browser runs no script: a control is then focused directly,
	// since the other walker tests the order of the controls.
	plain bool
	// known are values read from pages, for {name} in later texts.
	known map[string]string
	// calls are the changes that the browser has requested.
	calls *calls
	// folder is the browser's folder for downloads.
	folder string
}

// shownText is the beginning of the text of a page or its dialog.
const shownText = `(document.querySelector("dialog:modal, main") ?? document.body).innerText.
	slice(0, 1500)`

// look evaluates a script; the result is empty while a page is being left.
func (w *walker) look(script string) string {
	w.Helper()
	text, err := chromedp.Run(w.browser, chromedp.Evaluate[string](script))
	if err != nil && w.browser.Err() != nil {
		w.Fatalf("%v", err)
	}
	return text
}

// page evaluates an expression on a page that is completely loaded, including its script;
// until then the result is empty.
func (w *walker) page(expression string) string {
	w.Helper()
	return w.look(`document.readyState === "complete" ? String(` + expression + `) : ""`)
}

// until waits for a condition, and reports what the page showed if it never held.
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

// sees waits until the page shows a text, ignoring case.
func (w *walker) sees(text string) {
	w.Helper()
	w.until(fmt.Sprintf("%q is not to be seen", w.named(text)), func() bool { return w.shows(text) })
}

// shows reports whether the page shows a text now.
func (w *walker) shows(text string) bool {
	w.Helper()
	return w.page(fmt.Sprintf(`(() => {
		const squeeze = (text) => text.replace(/\s+/g, " ").toLowerCase();
		return squeeze(document.body.innerText).includes(squeeze(%s));
	})()`, quoted(w.named(text)))) == "true"
}

// lacks waits until the page does not show a text any more.
func (w *walker) lacks(text string) {
	w.Helper()
	text = w.named(text)
	w.until(fmt.Sprintf("%q is still to be seen", text), func() bool {
		shown := w.page(`document.body.innerText`)
		return shown != "" && !strings.Contains(shown, text)
	})
}

// heads waits for a page with a heading.
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

// keepsFocus fails the test if the page that the walker was on has lost the focus; a page
// opened since then begins at its top.
func (w *walker) keepsFocus(after string) {
	w.Helper()
	if w.plain || w.look(`window.walked ?? ""`) == "" {
		return
	}
	// A button that waits for its response is disabled until then.
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

// reads stores the text of an element under a name.
func (w *walker) reads(name, selector string) string {
	w.Helper()
	script := fmt.Sprintf(`document.querySelector(%s)?.textContent.trim() ?? ""`, quoted(selector))
	w.until("there is no "+selector, func() bool {
		w.known[name] = w.page(script)
		return w.known[name] != ""
	})
	return w.known[name]
}

// marks stores the path of the page under a name.
func (w *walker) marks(name string) { w.known[name] = w.look(`location.pathname`) }

// unknown matches a {name} for which no value is known.
var unknown = regexp.MustCompile(`\{[a-z ]+\}`)

// named replaces the {name}s in a text by known values; {me} is the walker's name.
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
	encoded, _ := json.Marshal(text) // a string can always be encoded
	return string(encoded)
}

// enters signs a user in by the form.
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
