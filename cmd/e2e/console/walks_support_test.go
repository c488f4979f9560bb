//go:build walks

package console

import (
	"github.com/chromedp/chromedp/kb"
)

func supportTasks() []task {
	return []task{{
		name: "finding a delivery from anywhere", start: "/console/partners",
		end: "All attempts are used up",
		do: func(w *walker) {
			if w.plain {
				w.fill("#find", "{delivery}")
			} else {
				w.key("/")
				w.fill("#palette-q", "{delivery}")
			}
			w.key(kb.Enter)
		},
	}, {
		name: "re-sending a delivery with a reason", start: "/console/deliveries/{delivery}",
		end: "asked by {me}",
		do: func(w *walker) {
			w.press("Re-send")
			w.fill("Reason", "asked by {me}")
			w.press(`form[action$="/resend"] [type=submit]`)
		},
	}, {
		name: "examining a signature", start: "/console/deliveries/{delivery}", end: "Next: ",
		do: func(w *walker) {
			w.send("Signature doctor")
			w.fills("Body, exactly as received", `{"n":1}`, "Signature", "0f1e2d3c")
			w.send("Look into it")
		},
	}, {
		name: "filtering deliveries", start: "/console/deliveries",
		do: func(w *walker) {
			w.press("Filters")
			w.pick("Subscription", "{host}")
			w.fill("HTTP answer…", "503")
			w.send("Apply filters")
			w.at("code=503")
			w.sees("Clear all")
		},
	}, {
		name: "exporting deliveries", start: "/console/deliveries?code=503",
		do: func(w *walker) { w.downloads("Export CSV", 100, "task.created") },
	}, {
		name: "keeping a view under a name", start: "/console/deliveries?code=503",
		do: func(w *walker) {
			w.press("Save this view")
			w.fill("Name for these filters", "Mine, {me}")
			w.send("Save")
			w.send("Mine, {me}")
			w.at("code=503")
			w.press("Save or remove views")
			w.send("Remove Mine, {me}")
			w.lacks("Mine, {me}")
		},
	}, {
		name: "moving by single keys", start: "/console", script: true, end: "Keyboard shortcuts",
		do: func(w *walker) {
			w.heads("Overview")
			w.key("gd")
			w.heads("Deliveries")
			w.key("jjx")
			w.sees("(1)")
			w.key(kb.Enter)
			w.at("/console/deliveries/")
			w.sees("Signature doctor")
			w.key("?")
			w.sees("Single-key shortcuts are on")
			w.key(kb.Escape)
			w.keepsFocus("the list of keys")
			w.key("r")
			w.reach("Cancel")
			w.key(kb.Escape)
			w.keepsFocus("a dialog")
			w.key("?")
		},
	}}
}

// alertTasks are about items that need attention: a re-sent delivery has used up its
// attempts.
func alertTasks() []task {
	return []task{{
		name: "taking, snoozing and waking what needs attention",
		do: func(w *walker) {
			w.finds("item", `SELECT item_uid FROM attention_items WHERE closed_at IS NULL
				AND kind = 'delivery_used_up' AND subscription_uid = '{subscription}'`)
			w.goes("/console/attention/{item}")
			w.send("Assign to me")
			w.sees("Assigned to you.")
			w.send("Give it back")
			w.sees("No longer assigned to anybody.")
			w.pick("Snooze for", "an hour")
			w.send("Snooze")
			w.sees("Snoozed.")
			w.send("Show it again")
			w.sees("No longer snoozed.")
		},
	}, {
		name: "resolving it where it is found", end: "Resolved.",
		do: func(w *walker) {
			w.finds("again", `SELECT delivery_uid FROM deliveries
				WHERE resend_of IS NOT NULL AND state = 'failed' LIMIT 1`)
			w.goes("/console/deliveries/{again}")
			w.fill("Note", "fixed by {me}")
			w.send("Resolve with this note")
		},
	}}
}

func bulkTasks() []task {
	return []task{{
		name:  "re-sending in bulk",
		start: "/console/deliveries?state=failed&subscription={subscription}", end: "Cancelled: ",
		do: func(w *walker) {
			w.send("Re-send all that match")
			w.sees("To send")
			w.fill("Pace…", "1")
			w.send("Apply and count again")
			w.sees("at most 1 a second")
			w.press("Re-send 1…")
			w.fill("Reason", "the endpoint is back")
			w.send(`form[action$="/confirm"] .button-main`)
			w.sees("Sending")
			w.press("Pause")
			w.sees("Paused: ")
			w.keepsFocus("pausing")
			w.press("Resume")
			w.sees("of sending left")
			w.keepsFocus("resuming")
			w.press("Cancel the rest")
			w.send(`form[action$="/cancel"] .button-danger`)
		},
	}, {
		name: "taking the results along",
		do:   func(w *walker) { w.downloads("Export CSV", 100, "cancelled") },
	}, {
		name: "recovering what failed", start: "/console/subscriptions/{subscription}",
		do: func(w *walker) {
			w.send("Recover failed")
			w.choose(`[name=kind][value=replay]`)
			w.choose(`[name=kind][value=recover]`)
			w.send("Show the plan")
			w.sees("Before you confirm")
			w.send("Discard")
			w.lacks("Before you confirm")
		},
	}, {
		name: "choosing deliveries one by one", start: "/console/deliveries?state=failed", end: "To send",
		do: func(w *walker) {
			w.tick(`[name=delivery]`)
			w.press("Re-send selected…")
		},
	}}
}
