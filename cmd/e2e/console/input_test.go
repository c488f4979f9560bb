package console

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
)

// userInput is a user with a keyboard and a mouse. Its actions reach the page as the browser's
// own input events; scripts here only read the page.
type userInput struct {
	*testing.T
	browser context.Context
	// acts counts keys and clicks.
	acts int
}

// key presses one key.
func (h *userInput) key(key string) {
	h.Helper()
	h.acts++
	h.types(key)
}

// types writes a text key by key, which does not count as an act.
func (h *userInput) types(text string) {
	h.Helper()
	do(h.T, h.browser, keyed(text))
}

// paste inserts a text at the focus, as from the clipboard.
func (h *userInput) paste(text string) {
	h.Helper()
	do(h.T, h.browser, chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, input.InsertText, input.InsertTextParams{Text: text})
		return err
	}))
}

// click presses the mouse button over the element of a selector, which must be visible in
// the window without scrolling.
func (h *userInput) click(selector string) {
	h.Helper()
	at := h.spot(selector)
	if at.Outside {
		h.Fatalf("%s is not in the window", selector)
	}
	h.acts++
	do(h.T, h.browser, chromedp.MouseClickXY(at.X, at.Y))
}

// spot is a position in the window, in CSS pixels.
type spot struct {
	X, Y float64
	// Outside says that the position is beyond the window's edge.
	Outside bool
}

// rests waits until the page is loaded, with its fonts, and an element has not moved for
// some frames, with nothing over it.
const rests = `(async () => {
	const frame = () => new Promise(requestAnimationFrame);
	while (document.readyState !== "complete") await frame();
	await document.fonts.ready;
	for (let before = "", same = 0;; await frame()) {
		const wanted = document.querySelector(%s), box = wanted?.getBoundingClientRect();
		const now = box ? JSON.stringify(box) : "";
		same = now && now === before ? same + 1 : 0;
		before = now;
		if (same < 4) continue;
		const x = box.left + box.width / 2, y = box.top + box.height / 2;
		const top = document.elementFromPoint(x, y), out = !(y > 0 && y < innerHeight);
		if (out || wanted.contains(top)) return JSON.stringify({X: x, Y: y, Outside: out});
	}
})()`

// spot returns the position of the element of a selector.
func (h *userInput) spot(selector string) spot {
	h.Helper()
	do(h.T, h.browser, chromedp.WaitVisible(chromedp.CSS(selector)))
	text := h.until(rests, selector)
	var found spot
	if err := json.Unmarshal([]byte(text), &found); err != nil {
		h.Fatal(err)
	}
	return found
}

// until evaluates a script about a text until it returns something, whatever page is open
// then: a page that is being left returns nothing.
func (h *userInput) until(script, about string) string {
	h.Helper()
	quoted, err := json.Marshal(about)
	if err != nil {
		h.Fatal(err)
	}
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	for {
		answer, err := chromedp.Run(h.browser, chromedp.Evaluate[string](
			fmt.Sprintf(script, quoted), chromedp.EvalAwaitPromise))
		if err == nil && answer != "" {
			return answer
		}
		select {
		case <-h.browser.Done():
			h.Fatalf("waiting for %s: %v, %v", about, h.browser.Err(), err)
		case <-again.C:
		}
	}
}

// loaded waits until the page has run its scripts, so that it handles keys.
func (h *userInput) loaded() {
	h.Helper()
	h.until(`document.readyState === "complete" ? %s : ""`, "the page")
}

// reads waits until the page shows a text inside the window.
func (h *userInput) reads(text string) {
	h.Helper()
	h.until(`(() => {
		const wanted = %s;
		return [...document.querySelectorAll("main *")].some((e) => {
			const box = e.getBoundingClientRect();
			return e.innerText?.replace(/\s+/g, " ").includes(wanted) &&
				box.height > 0 && box.top >= 0 && box.bottom <= innerHeight;
		}) ? wanted : "";
	})()`, text)
}
