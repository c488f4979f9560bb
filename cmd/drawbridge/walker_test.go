//go:build walks

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// patience is how long a walker waits for what a page should show.
const patience = 2 * time.Minute

// walker does the tasks of the console as somebody does who has no mouse: by
// keys that go through the browser like those of a keyboard, never by a click
// that a script makes. Script in these files only looks.
type walker struct {
	*testing.T
	browser context.Context
	url     string
	// name tells this walker's things from those of others.
	name string
	// plain is a browser without script: a control is then focused at once,
	// since the order of the controls is what the other walker tries.
	plain bool
	// known are values that were read off a page.
	known map[string]string
}

// finder finds the control that a person would name so: by its label or its text,
// by their beginning before "…", or, when it holds a bracket or begins with "#",
// by a selector. What a dialog covers cannot be reached, and the page comes
// before its frame.
const finder = `
	const squeeze = (text) => (text ?? "").replace(/\s+/g, " ").trim();
	const labels = (e) => [...(e.labels ?? [])].map((label) => label.innerText).join(" ");
	const nameOf = (e) => [e.getAttribute("aria-label"), labels(e),
		e.matches("select, textarea") ? "" : e.innerText, e.value, e.title].map(squeeze).find(Boolean);
	const controls = (root) => [...root.querySelectorAll(
		"a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex='0']")].filter(
		(e) => e.checkVisibility({visibilityProperty: true}) && !e.disabled && e.tabIndex >= 0);
	const roots = () => {
		const modal = [...document.querySelectorAll("dialog:modal")].pop();
		if (modal) return [modal];
		const over = [...document.querySelectorAll(":popover-open")];
		return [...over, document.querySelector("main"), document.body];
	};
	const find = (wanted) => {
		for (const root of roots()) {
			const all = controls(root ?? document.body);
			const found = all.find((e) => /^#|\[/.test(wanted) ? e.matches(wanted) :
				wanted.endsWith("…") ? nameOf(e)?.startsWith(wanted.slice(0, -1)) : nameOf(e) === wanted);
			if (found) return found;
		}
	};`

// stop is what a walker knows of where it stands.
type stop struct {
	// Found tells that the control is on the page, There that it has the focus.
	Found, There bool
	// Back tells that it lies before what has the focus, Out that nothing of the
	// page has the focus.
	Back, Out bool
	// Inside tells that both lie in the page's main part or in one dialog.
	Inside bool
	// Fault is what is wrong with the focus that is shown.
	Fault string
}

// stand looks where the walker stands on the way to a control.
const stand = `(() => {` + finder + `
	if (document.readyState === "loading") return "";
	const at = document.activeElement, wanted = find(%s), out = !at || at === document.body;
	const marked = (e) => {
		const style = getComputedStyle(e);
		return style.boxShadow !== "none" ||
			style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0;
	};
	const fault = () => {
		if (out || at.matches("main, dialog")) return "";
		const near = [at, ...(at.labels ?? []), at.parentElement,
			at.closest("label, summary, .field, tr, th, form")];
		const host = at.shadowRoot?.activeElement ?? at;
		if (![host, ...near].filter(Boolean).some(marked)) return "does not show its focus";
		const box = near.filter(Boolean).map((e) => e.getBoundingClientRect()).find(
			(b) => b.width > 8 && b.height > 8);
		if (!box) return "has no size";
		if (box.bottom < 1 || box.top > innerHeight - 1 || box.right < 1 || box.left > innerWidth - 1)
			return "is outside of the window";
		const points = [[.5, .5], [.1, .2], [.9, .2], [.1, .8], [.9, .8]];
		const seen = points.some(([x, y]) => {
			const top = document.elementFromPoint(box.left + box.width * x, box.top + box.height * y);
			return top && (at.contains(top) || top.contains(at) || near.includes(top.closest("label")));
		});
		return seen ? "" : "is covered";
	};
	const part = (e) => e?.closest("dialog, main");
	return JSON.stringify({
		Found: Boolean(wanted), Out: out,
		There: Boolean(wanted) && (at === wanted || wanted.contains(at)),
		Back: Boolean(wanted) && !out &&
			Boolean(at.compareDocumentPosition(wanted) & Node.DOCUMENT_POSITION_PRECEDING),
		Inside: Boolean(wanted) && !out && part(at) === part(wanted) && Boolean(part(at)),
		Fault: fault() && (at.outerHTML.slice(0, 120) + " " + fault()),
	});
})()`

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

func (w *walker) stand(control string) stop {
	w.Helper()
	var at stop
	// What is not JSON is no page yet.
	_ = json.Unmarshal([]byte(w.look(fmt.Sprintf(stand, quoted(control)))), &at)
	return at
}

func quoted(text string) string {
	encoded, _ := json.Marshal(text) // a string can always be written
	return string(encoded)
}

// key presses keys as they are on a keyboard.
func (w *walker) key(keys string, options ...chromedp.KeyOption) {
	w.Helper()
	do(w.T, w.browser, chromedp.KeyEvent(keys, append(options, raw)...))
}

// raw makes a key go down as a keyboard's does. Otherwise the browser would give
// the character of a key that has done its work, such as Enter on a link that
// opened a dialog, to whatever has the focus then.
func raw(event *input.DispatchKeyEventParams) {
	if event.Type == kb.KeyDown {
		event.Type = kb.KeyRawDown
	}
}

// reach moves the focus to a control. A walker with script gets there by the Tab
// key alone, and sees at each stop where it is.
func (w *walker) reach(control string) {
	w.Helper()
	var at stop
	w.until("there is no "+control, func() bool {
		at = w.stand(control)
		return at.Found
	})
	if w.plain {
		w.look(fmt.Sprintf(`(() => {`+finder+`find(%s)?.focus(); return "";})()`, quoted(control)))
		return
	}
	w.look(`window.walked = "here"`)
	const most = 250
	for range most {
		if at.Fault != "" {
			w.Errorf("%s at %s: %s", w.name, w.look(`location.pathname`), at.Fault)
		}
		switch {
		case at.There:
			return
		case at.Back:
			w.key(kb.Tab, chromedp.KeyModifiers(chromedp.ModifierShift))
		case !at.Inside && w.skips():
			// The link that leads past the frame, the first of every page.
			w.key(kb.Enter)
		default:
			w.key(kb.Tab)
		}
		at = w.stand(control)
	}
	w.Fatalf("%s: the Tab key does not lead to %s at %s", w.name, control, w.look(`location.href`))
}

// minds lets the browser treat a window as the one in front, as that is which
// somebody types into.
func minds() chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, emulation.SetFocusEmulationEnabled,
			emulation.SetFocusEmulationEnabledParams{Enabled: true})
		return err
	})
}

// skips tells that the focus is on the link past the frame.
func (w *walker) skips() bool {
	w.Helper()
	return w.look(`document.activeElement?.getAttribute("href") ?? ""`) == "#main"
}

// press activates a link or a button.
func (w *walker) press(control string) {
	w.Helper()
	w.reach(w.named(control))
	w.key(kb.Enter)
}

// tick changes a box or chooses one of several buttons.
func (w *walker) tick(control string) {
	w.Helper()
	w.reach(w.named(control))
	w.key(" ")
}

// fill writes into a field in place of what it holds.
func (w *walker) fill(control, text string) {
	w.Helper()
	w.reach(control)
	w.key("a", chromedp.KeyModifiers(chromedp.ModifierCtrl))
	w.key(w.named(text))
}

// pick chooses the first option that says so, by the arrow keys.
func (w *walker) pick(control, option string) {
	w.Helper()
	w.reach(control)
	const steps = `(() => {
		const list = document.activeElement, all = [...list.options];
		const to = all.findIndex((o) => o.text.includes(%s));
		return to < 0 ? "none of " + all.map((o) => o.text).join(" | ") : String(to - list.selectedIndex);
	})()`
	var by int
	answer := w.look(fmt.Sprintf(steps, quoted(w.named(option))))
	if _, err := fmt.Sscanf(answer, "%d", &by); err != nil {
		w.Fatalf("%s: %s has no %s: %s", w.name, control, option, answer)
	}
	for ; by > 0; by-- {
		w.key(kb.ArrowDown)
	}
	for ; by < 0; by++ {
		w.key(kb.ArrowUp)
	}
}

// sees waits until the page shows a text, in whatever case.
func (w *walker) sees(text string) {
	w.Helper()
	text = w.named(text)
	script := fmt.Sprintf(`(() => {
		const squeeze = (text) => text.replace(/\s+/g, " ").toLowerCase();
		return String(document.readyState !== "loading" &&
			squeeze(document.body.innerText).includes(squeeze(%s)));
	})()`, quoted(text))
	w.until(fmt.Sprintf("%q is not to be seen", text), func() bool { return w.look(script) == "true" })
}

// heads waits for the page with a heading.
func (w *walker) heads(heading string) {
	w.Helper()
	heading = w.named(heading)
	w.until(fmt.Sprintf("there is no page %q", heading), func() bool {
		return w.look(`document.readyState === "loading" ? "" :
			document.querySelector("main h1")?.innerText.trim() ?? ""`) == heading
	})
}

// lacks waits until the page shows a text no more.
func (w *walker) lacks(text string) {
	w.Helper()
	text = w.named(text)
	w.until(fmt.Sprintf("%q is still to be seen", text), func() bool {
		shown := w.look(`document.readyState === "loading" ? "" : document.body.innerText`)
		return shown != "" && !strings.Contains(shown, text)
	})
}

// at waits for an address that contains a part.
func (w *walker) at(part string) {
	w.Helper()
	w.until("the address never contains "+part, func() bool {
		return strings.Contains(w.look(`document.readyState === "loading" ? "" : location.href`), part)
	})
}

// keepsFocus fails the test when the page that the walker stood on has dropped
// the focus; a page that was opened since begins at its beginning.
func (w *walker) keepsFocus(after string) {
	w.Helper()
	if w.look(`window.walked ?? ""`) == "" || w.plain {
		return
	}
	if w.stand("#main").Out {
		w.Errorf("%s: the focus is lost after %s", w.name, after)
	}
}

// goes opens an address, as from a bookmark.
func (w *walker) goes(path string) {
	w.Helper()
	do(w.T, w.browser, chromedp.Navigate(w.url+path))
}

// reads keeps what an element says under a name, for {name} in texts to come.
func (w *walker) reads(name, selector string) string {
	w.Helper()
	script := fmt.Sprintf(`document.querySelector(%s)?.textContent.trim() ?? ""`, quoted(selector))
	w.until("there is no "+selector, func() bool {
		w.known[name] = w.look(script)
		return w.known[name] != ""
	})
	return w.known[name]
}

// named puts what is known into a text: {me} is the walker's name.
func (w *walker) named(text string) string {
	text = strings.ReplaceAll(text, "{me}", w.name)
	for name, value := range w.known {
		text = strings.ReplaceAll(text, "{"+name+"}", value)
	}
	return text
}

// enters signs somebody in by the form.
func (w *walker) enters(email, password string) {
	w.Helper()
	w.goes("/console")
	w.fill("E-mail", email)
	w.fill("Password", password)
	w.press("Sign in")
}
