//go:build walks

package console

func mailTasks() []task {
	return []task{{
		name: "re-sending an e-mail", end: "This is the new e-mail",
		do: func(w *walker) {
			w.finds("mail", `SELECT email_uid FROM emails WHERE to_address = 'ana.{me}@example.com'
				AND state NOT IN ('queued', 'suppressed') ORDER BY created_at LIMIT 1`)
			w.goes("{application}")
			w.send("E-mails")
			w.send(`th a[href="/console/emails/{mail}"]`)
			w.press("Re-send")
			w.fill("Reason", "they lost it")
			w.send(`form[action$="/resend"] [type=submit]`)
		},
	}, {
		name: "re-sending several e-mails", start: "/console/emails?to=ana.{me}@example.com",
		end: "Re-sent: 1 e-mail.",
		do: func(w *walker) {
			w.tick(`#pick [value="{mail}"]`)
			w.send("Re-send selected…")
			w.fill("Reason", "they lost it again")
			w.send("Re-send 1 e-mail")
		},
	}, {
		name: "naming the lender in e-mails", start: "/console/settings",
		end: "New e-mails use these settings from now on.",
		do: func(w *walker) {
			w.send("E-mail settings")
			w.fill("Lender's name", "Lender of {me}")
			w.send("Save settings")
		},
	}}
}

func settingTasks() []task {
	const page = "/console/settings"
	return []task{{
		name: "keeping things for longer", start: page, end: "The next run keeps things for that long.",
		do: func(w *walker) {
			w.fill("Texts of e-mails: days", "120")
			w.send("See what would go")
			w.heads("What would go")
			w.send("Save these settings")
		},
	}, {
		name: "requiring a second factor", start: page,
		do: func(w *walker) {
			for range 2 { // on, and off again
				w.tick("Operator")
				w.send("Save sign-in")
				w.sees("It holds from everybody's next click on.")
			}
		},
	}, {
		name: "saying when a subscription fails", start: page,
		end: "It holds for every subscription that has no rule of its own.",
		do: func(w *walker) {
			w.press("When subscriptions count as failing")
			w.fill("Minutes without a success", "120")
			w.send("Save")
		},
	}, {
		name: "choosing time zone, rows and theme", start: page,
		do: func(w *walker) {
			w.press(`[popovertarget=who]`)
			w.pick("Time zone", "Europe/Berlin")
			w.send("Set")
			w.prefers("Dark", "data-theme=dark")
			w.prefers("Compact", "data-density=compact")
		},
	}}
}

// prefers presses a button of the account menu, and waits until an attribute of the whole
// page changes.
func (w *walker) prefers(choice, attribute string) {
	w.Helper()
	if w.page(`document.querySelector("#who:popover-open") !== null`) != "true" {
		w.press(`[popovertarget=who]`)
	}
	w.press(choice)
	w.until(choice+" changes nothing", func() bool {
		return w.page(`document.querySelector("html[`+attribute+`]") !== null`) == "true"
	})
}

func queueTasks() []task {
	return []task{{
		name: "pausing and resuming a queue", start: "/console/queues",
		end: "The queue “E-mails” goes on.",
		do: func(w *walker) {
			w.send("Pause queue E-mails")
			w.sees("The queue “E-mails” is paused.")
			w.send("Resume queue E-mails")
		},
	}}
}

// filterTasks filter each list, and download what can be exported.
func filterTasks() []task {
	var all []task
	for _, list := range []struct{ path, label, choice, text, address string }{
		{"/console/subscriptions", "Part of the host", "", "{host}", "host=127.0.0.1"},
		{"/console/applications", "Id, reference…", "", "ana.{me}@example.com", "q=ana"},
		{"/console/emails", "Sent to", "", "ana.{me}@example.com", "to=ana"},
		{"/console/events", "Application id", "", "{undrawn}", "application={undrawn}"},
		{"/console/requests", "Method", "POST", "", "method=POST"},
		{"/console/people", "Name or address…", "", "ada", "q=ada"},
		{"/console/loans", "Product", "ROOF-3", "", "product="},
		{"/console/attention?state=all", "Owner", "Nobody", "", "owner=nobody"},
		{"/console/audit", "Action", "", "partner.", "action=partner."},
	} {
		all = append(all, task{
			name: "narrowing " + list.path, start: list.path,
			do: func(w *walker) {
				w.press("Filters")
				if list.choice != "" {
					w.pick(list.label, list.choice)
				} else {
					w.fill(list.label, list.text)
				}
				w.send("Apply filters")
				w.at(list.address)
				w.lacks("The filter cannot be read")
			},
		})
	}
	return append(all, task{
		name: "finding a partner by its name", start: "/console/partners", end: "Sunvolt Energy {me}",
		do: func(w *walker) {
			w.fill("Name begins with", "sunvolt")
			w.send("Search")
			w.at("name=sunvolt")
		},
	}, task{
		name: "taking lists along",
		do: func(w *walker) {
			for _, list := range []struct{ name, word string }{
				{"requests", "request"},
				{"events", "task.created"},
				{"emails", "welcome"},
				{"applications", "Approved"},
				{"loans", "ready"},
				{"draws?state=CANCELLED", "ordered twice"},
			} {
				w.goes("/console/" + list.name)
				w.downloads("Export CSV", 1, list.word)
			}
			w.goes("/console/audit")
			w.downloads("Export CSV", 10, "partner")
		},
	})
}
