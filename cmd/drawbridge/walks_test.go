//go:build walks

package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// task is something that people do in the console.
type task struct {
	name string
	// start is the address that it begins at; {name} is what is known so.
	start string
	do    func(w *walker)
	// end is what the page shows when it is done.
	end string
	// script tells that it is a comfort that only script gives.
	script bool
}

// TestEveryTaskByKeyboard does everything that the console is for with real key
// events alone, and sees at each stop of the Tab key that the focus is shown.
func TestEveryTaskByKeyboard(t *testing.T) {
	t.Parallel()
	walkAll(t, "keys")
}

// TestEveryTaskWithoutScript does the same in a browser that runs no script.
func TestEveryTaskWithoutScript(t *testing.T) {
	t.Parallel()
	walkAll(t, "plain")
}

// walkAll does every task on one server, in one browser.
func walkAll(t *testing.T, name string) {
	t.Helper()
	w := newStage(t, name)
	for _, task := range tasks() {
		if task.script && w.plain {
			continue
		}
		t.Run(task.name, func(t *testing.T) {
			w.T = t
			w.does(task)
		})
	}
}

func (w *walker) does(task task) {
	w.Helper()
	if task.start != "" {
		w.goes(w.named(task.start))
	}
	task.do(w)
	if task.end != "" {
		w.sees(task.end)
	}
	w.keepsFocus(task.name)
}

// stage is what the tasks need to be there before.
type stage struct {
	*world
	data   demoJSON
	server *server
}

// newStage starts a server with an endpoint that fails, whose deliveries are
// used up.
func newStage(t *testing.T, name string) *walker {
	t.Helper()
	w := newWorld(t)
	s := &stage{world: w, data: w.demoData()}
	e := httptest.NewServer(http.HandlerFunc(func(answer http.ResponseWriter, _ *http.Request) {
		answer.WriteHeader(http.StatusServiceUnavailable)
	}))
	t.Cleanup(e.Close)
	var made subscriptionJSON
	w.json(&made, "subscription", "create", "--partner", s.data.Partners[0].UID.String(),
		"--url", e.URL+"/hook", "--event", "all")
	w.failed(t, s.data, made.UID, 120)
	s.server = w.serve()
	walks := &walker{T: t, url: s.server.url, name: name, plain: name == "plain"}
	walks.known = map[string]string{
		"subscription": made.UID.String(), "endpoint": e.URL,
		"host":  strings.TrimPrefix(e.URL, "http://"),
		"admin": s.data.Users[2].Email, "password": s.data.Users[2].Password,
	}
	s.knows(walks, "delivery", `SELECT delivery_uid FROM deliveries ORDER BY created_at LIMIT 1`)
	walks.browser = newBrowserWithin(t, 15*time.Minute)
	do(t, walks.browser, chromedp.EmulateViewport(wide, 900), minds())
	if walks.plain {
		do(t, walks.browser, withoutScript())
	}
	return walks
}

// knows waits until a query finds a value, for {name} in texts to come.
func (s *stage) knows(w *walker, name, query string) {
	s.t.Helper()
	db := s.open(s.t)
	w.until("nothing is found by "+query, func() bool {
		var value string
		if err := db.GetContext(context.Background(), &value, query); err != nil {
			return false
		}
		w.known[name] = value
		return true
	})
}

// tasks lists them in the order of a working day.
func tasks() []task {
	all := []task{{
		name: "signing in", end: "Deliveries",
		do: func(w *walker) { w.enters(w.known["admin"], w.known["password"]) },
	}}
	all = append(all, supportTasks()...)
	all = append(all, bulkTasks()...)
	all = append(all, subscriptionTasks()...)
	all = append(all, partnerTasks()...)
	return append(all, applicationTasks()...)
}

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
		name: "filtering deliveries", start: "/console/deliveries",
		do: func(w *walker) {
			w.press("Filters")
			w.pick("Subscription", "{host}")
			w.fill("HTTP answer…", "503")
			w.press("Apply filters")
			w.at("code=503")
			w.sees("Clear all")
		},
	}, {
		name: "keeping a view under a name", start: "/console/deliveries?code=503",
		do: func(w *walker) {
			w.press("Save or remove views")
			w.fill("Name for these filters", "Mine, {me}")
			w.press("Save")
			w.press("Mine, {me}")
			w.at("code=503")
			w.press("Save or remove views")
			w.press("Remove Mine, {me}")
			w.lacks("Mine, {me}")
		},
	}, {
		name: "moving by single keys", start: "/console", script: true, end: "Keyboard shortcuts",
		do: func(w *walker) {
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
			w.reach("Keep as it is")
			w.key(kb.Escape)
			w.keepsFocus("a dialog")
			w.key("?")
		},
	}}
}

func bulkTasks() []task {
	return []task{{
		name:  "re-sending in bulk",
		start: "/console/deliveries?state=failed&subscription={subscription}", end: "Cancelled: ",
		do: func(w *walker) {
			w.press("Re-send all that match")
			w.sees("To send")
			w.fill("Pace…", "1")
			w.press("Apply and count again")
			w.sees("at most 1 a second")
			w.press("Re-send 1…")
			w.fill("Reason", "the endpoint is back")
			w.press(`form[action$="/confirm"] .button-main`)
			w.sees("Sending")
			w.press("Pause")
			w.sees("Paused: ")
			w.keepsFocus("pausing")
			w.press("Resume")
			w.sees("of sending left")
			w.keepsFocus("resuming")
			w.press("Cancel the rest")
			w.press(`form[action$="/cancel"] .button-danger`)
		},
	}}
}

func subscriptionTasks() []task {
	return []task{{
		name: "changing a subscription", start: "/console/subscriptions/{subscription}/edit",
		end: "configuration version 2",
		do: func(w *walker) {
			w.fill("URL", "{endpoint}/changed")
			w.press("Save as a new version")
		},
	}, {
		name: "pausing a subscription", start: "/console/subscriptions/{subscription}",
		end: "Deliveries that fall due wait until it is resumed",
		do: func(w *walker) {
			w.press("Pause")
			w.fill("Reason", "they asked")
			w.press(`form[action$="/pause"] [type=submit]`)
		},
	}, {
		name: "resuming a subscription", start: "/console/subscriptions/{subscription}",
		end: "What waited goes out now",
		do: func(w *walker) {
			w.press("Resume")
			w.heads("Resume the subscription")
			w.press(`form[action$="/resume"] [type=submit]`)
		},
	}, {
		name: "rotating a secret", start: "/console/subscriptions/{subscription}?tab=secret",
		end: "it is shown only this once",
		do: func(w *walker) {
			w.press("Rotate")
			w.pick("Overlap", "1 hour")
			w.press(`form[action$="/rotate"] [type=submit]`)
			w.reads("secret", "#new-secret")
		},
	}, {
		name: "comparing a secret", start: "/console/subscriptions/{subscription}?tab=secret",
		end: "It is the current",
		do: func(w *walker) {
			w.fill("Value that the partner uses", "{secret}")
			w.press("Compare")
		},
	}, {
		name: "restoring a version", start: "/console/subscriptions/{subscription}?tab=versions",
		end: "Version 1 is in force once more",
		do: func(w *walker) {
			w.press("Restore version 1")
			w.fill("Reason", "it was better")
			w.press(`form[action$="/restore"] [type=submit]`)
		},
	}}
}

func partnerTasks() []task {
	return []task{{
		name: "creating a partner", start: "/console/partners", end: "Issue credentials next",
		do: func(w *walker) {
			w.press("New partner")
			w.fill("Name", "Sunvolt {me}")
			w.fill("First merchant", "Phoenix {me}")
			w.press("Create partner")
			w.heads("Sunvolt {me}")
			w.known["partner"] = w.look(`location.pathname`)
		},
	}, {
		name: "renaming a partner", start: "{partner}",
		do: func(w *walker) {
			if !w.plain {
				w.press("Rename")
				w.reach("Cancel")
				w.key(kb.Escape)
				w.until("the dialog stays", func() bool { return w.stand("Rename").There })
			}
			w.press("Rename")
			w.fill("Name", "Sunvolt Energy {me}")
			w.press(`form[action$="/rename"] [type=submit]`)
			w.heads("Sunvolt Energy {me}")
		},
	}, {
		name: "adding a merchant", start: "{partner}", end: "Mesa {me}",
		do: func(w *walker) {
			w.press("New merchant")
			w.fill("Name", "Mesa {me}")
			w.press("Create merchant")
		},
	}, {
		name: "issuing credentials", start: "{partner}", end: "Rotate secret",
		do: func(w *walker) {
			w.press("Issue credentials")
			w.tick("Mesa {me}")
			w.press("Issue client id and secret")
			w.reads("client secret", "#secret")
			w.press("I have copied it")
			w.known["client"] = w.reads("client id", "main h1")
			w.known["last six"] = w.known["client"][len(w.known["client"])-6:]
		},
	}, {
		name: "rotating credentials", start: "/console/clients/{client}", end: "Two secrets work",
		do: func(w *walker) {
			w.press("Rotate secret")
			w.press("Issue a new secret")
			w.press("I have copied it")
		},
	}, {
		name: "revoking credentials", start: "/console/clients/{client}", end: "Revoked",
		do: func(w *walker) {
			w.press("Revoke")
			w.fill("Type the last six…", "{last six}")
			w.press("Revoke for good")
			w.lacks("Rotate secret")
		},
	}, {
		name: "offering a product", start: "/console/products", end: "Changed.",
		do: func(w *walker) {
			w.press("New product")
			for label, value := range map[string]string{
				"Code": "P-{me}", "Name": "Product of {me}", "Term in months": "60",
				"Interest rate…": "7.99", "Merchant fee…": "2", "Schedule": "50,50",
				"Lends at least": "1000.00", "Lends at most": "50000.00",
			} {
				w.fill(label, value)
			}
			w.press("Preview the stages")
			w.at("schedule=50")
			w.press("Create and offer it")
			w.heads("Products")
			w.press("Stop offering P-{me}")
			w.press("Stop offering it")
		},
	}}
}
