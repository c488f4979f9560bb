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

// userInput is somebody with a keyboard and a mouse. What it does reaches the page as
// the browser's own input; script here only looks.
type userInput struct {
	*testing.T
	browser context.Context
	// acts counts what was done: keys and clicks.
	acts int
}

// key presses one key.
func (h *userInput) key(key string) {
	h.Helper()
	h.acts++
	h.types(key)
}

// types writes a text key by key, which counts as no act of its own.
func (h *userInput) types(text string) {
	h.Helper()
	do(h.T, h.browser, keyed(text))
}

// paste inserts a text where the focus is, as the clipboard's.
func (h *userInput) paste(text string) {
	h.Helper()
	do(h.T, h.browser, chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, input.InsertText, input.InsertTextParams{Text: text})
		return err
	}))
}

// click presses the mouse's button over what a selector finds, which has to be in
// the window without turning the wheel.
func (h *userInput) click(selector string) {
	h.Helper()
	at := h.spot(selector)
	if at.Outside {
		h.Fatalf("%s is not in the window", selector)
	}
	h.acts++
	do(h.T, h.browser, chromedp.MouseClickXY(at.X, at.Y))
}

// spot is a place in the window, in CSS pixels.
type spot struct {
	X, Y float64
	// Outside tells that the place is beyond the window's edge.
	Outside bool
}

// rests waits until the page is loaded, with its fonts, and a thing has stayed
// where it is for some frames, with nothing over it.
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

// spot finds where the thing is that a selector finds.
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

// until evaluates a script about a text until it answers, whatever page is open
// then: the one that is being left answers nothing.
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

// loaded waits until the page has run its scripts, so that keys mean something.
func (h *userInput) loaded() {
	h.Helper()
	h.until(`document.readyState === "complete" ? %s : ""`, "the page")
}

// reads waits until the page says something inside of the window.
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
