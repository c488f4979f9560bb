//go:build walks

package console

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// finder finds a control by the name that a person would use: its label or text, or their
// beginning before "…". A name that contains a bracket or begins with "#" is a selector.
// Controls covered by a dialog cannot be reached, and the page's main part is searched
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

// stop describes the walker's position relative to a control.
type stop struct {
	// Found says that the control is on the page, There that it has the focus.
	Found, There bool
	// Back says that it comes before the focused element, Out that no element of the
	// page has the focus.
	Back, Out bool
	// Inside says that both are in the page's main part or in one dialog.
	Inside bool
	// Skip says that the focus is on the link that skips the frame.
	Skip bool
	// Fault is what is wrong with the visible focus.
	Fault string
}

// stand determines the stop on the way to a control. The focus must be visible as an
// outline of the control or of an element that represents it: its label, its field, its
// row.
const stand = `(() => {` + finder + `
	if (document.readyState !== "complete") return "";
	const at = document.activeElement, wanted = find(%s), out = !at || at === document.body;
	const marked = (e) => [null, "::before", "::after"].some((part) => {
		const style = getComputedStyle(e, part);
		return style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0;
	});
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
		Skip: at?.getAttribute("href") === "#main",
		Fault: fault() && (at.outerHTML.slice(0, 120) + " " + fault()),
	});
})()`

func (w *walker) stand(control string) stop {
	w.Helper()
	var at stop
	// The result is not JSON while the page is loading.
	_ = json.Unmarshal([]byte(w.look(fmt.Sprintf(stand, quoted(control)))), &at)
	return at
}

// key presses keys as on a keyboard.
func (w *walker) key(keys string, options ...chromedp.KeyOption) {
	w.Helper()
	do(w.T, w.browser, keyed(keys, options...))
}

// reach moves the focus to a control. A walker with script uses only the Tab key, and
// checks the focus at each stop.
func (w *walker) reach(control string) {
	w.Helper()
	control = w.named(control)
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
			at = w.recheckFocus(control)
		}
		switch {
		case at.There:
			return
		case at.Back:
			w.key(kb.Tab, chromedp.KeyModifiers(chromedp.ModifierShift))
		case !at.Inside && at.Skip:
			w.key(kb.Enter) // on the link that skips the frame, the first of every page
		default:
			w.key(kb.Tab)
		}
		at = w.stand(control)
	}
	w.Fatalf("%s: the Tab key does not lead to %s at %s", w.name, control, w.look(`location.href`))
}

// recheckFocus checks a badly visible focus again after the page has settled: it may just
// have been updated.
func (w *walker) recheckFocus(control string) stop {
	w.Helper()
	again := time.NewTicker(100 * time.Millisecond)
	defer again.Stop()
	at := w.stand(control)
	for tries := 0; at.Fault != "" && tries < 50; tries++ {
		<-again.C
		at = w.stand(control)
	}
	if at.Fault != "" {
		w.Errorf("%s at %s: %s", w.name, w.look(`location.pathname`), at.Fault)
	}
	return at
}

// loses waits until a control is gone.
func (w *walker) loses(control string) {
	w.Helper()
	w.until(control+" is still there", func() bool {
		return w.page(fmt.Sprintf(`(() => {`+finder+`return !find(%s);})()`, quoted(control))) == "true"
	})
}

// press activates a link or a button.
func (w *walker) press(control string) {
	w.Helper()
	w.reach(control)
	w.key(kb.Enter)
}

// send presses a control that opens another page, and waits for that page.
func (w *walker) send(control string) {
	w.Helper()
	w.reach(control)
	w.look(`window.left = "not yet"`)
	w.key(kb.Enter)
	w.until(control+" leads nowhere", func() bool { return w.page(`window.left`) == "undefined" })
}

// tick toggles a checkbox.
func (w *walker) tick(control string) {
	w.Helper()
	w.reach(control)
	w.key(" ")
}

// choose selects one button of a radio group, by the arrow keys.
func (w *walker) choose(control string) {
	w.Helper()
	control = w.named(control)
	var group string
	w.until("there is no "+control, func() bool {
		group = w.page(fmt.Sprintf(`(() => {`+finder+`return find(%s)?.name ?? "";})()`, quoted(control)))
		return group != ""
	})
	w.reach(fmt.Sprintf(`[name=%q]:checked`, group))
	const most = 20
	for range most {
		if w.stand(control).There {
			return
		}
		w.key(kb.ArrowDown)
	}
	w.Fatalf("%s: the arrow keys do not lead to %s", w.name, control)
}

// fill replaces the content of a field.
func (w *walker) fill(control, text string) {
	w.Helper()
	w.reach(control)
	w.key("a", chromedp.KeyModifiers(chromedp.ModifierCtrl))
	w.key(w.named(text))
}

// fills is fill for pairs of a control and its text, in order.
func (w *walker) fills(pairs ...string) {
	w.Helper()
	for i := 0; i+1 < len(pairs); i += 2 {
		w.fill(pairs[i], pairs[i+1])
	}
}

// chosen is the selected option of the focused list.
const chosen = `document.activeElement.selectedOptions?.[0]?.text`

// pick selects the first option that contains a text, by the arrow keys.
func (w *walker) pick(control, option string) {
	w.Helper()
	option = w.named(option)
	w.reach(control)
	const steps = `(() => {
		const list = document.activeElement, all = [...list.options];
		const to = all.findIndex((o) => o.text.includes(%s));
		return to < 0 ? "none of " + all.map((o) => o.text).join(" | ") : String(to - list.selectedIndex);
	})()`
	var by int
	answer := w.look(fmt.Sprintf(steps, quoted(option)))
	if _, err := fmt.Sscanf(answer, "%d", &by); err != nil {
		w.Fatalf("%s: %s has no %s: %s", w.name, control, option, answer)
	}
	for ; by > 0; by-- {
		w.key(kb.ArrowDown)
	}
	for ; by < 0; by++ {
		w.key(kb.ArrowUp)
	}
	if got := w.page(chosen); !strings.Contains(got, option) {
		w.Errorf("%s: %s shows %q after %s was chosen", w.name, control, got, option)
	}
}

// downloads presses a control that downloads a file, and waits until there is one with a
// number of lines and a word.
func (w *walker) downloads(control string, lines int, word string) {
	w.Helper()
	w.press(control)
	w.until(control+" gives no such file", func() bool {
		files, err := filepath.Glob(filepath.Join(w.folder, "*.csv"))
		if err != nil {
			w.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				w.Fatal(err)
			}
			if bytes.Count(text, []byte("\n")) >= lines && bytes.Contains(text, []byte(word)) {
				return os.Remove(file) == nil
			}
		}
		return false
	})
}
