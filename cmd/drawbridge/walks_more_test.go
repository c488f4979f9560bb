//go:build walks

package main

func applicationTasks() []task {
	return []task{{
		name: "creating an application", start: "/console/applications/new",
		end: "The welcome e-mail is on its way",
		do: func(w *walker) {
			w.pick("Merchant", "Mesa {me}")
			for label, value := range map[string]string{
				"Requested amount": "12500.00", "First name": "Ana", "Last name": "Lima {me}",
				"E-mail address": "ana.{me}@example.com", `[name="project.name"]`: "New roof",
			} {
				w.fill(label, value)
			}
			w.press("Create and welcome the borrower")
			w.heads("Ana Lima {me}")
			w.known["application"] = w.look(`location.pathname`)
		},
	}, {
		name: "leading an application to its loan", start: "{application}", end: "left to draw",
		do: func(w *walker) {
			w.confirms("Run the decision", "The decision has run.")
			w.confirms("Accept an offer", "Accepted.")
			w.confirms("Hard Pull", "Moved to Hard Pull.")
			w.confirms("Approved", "Moved to Approved.")
		},
	}, {
		name: "recording the documents", start: "{application}", end: "Recorded.",
		do: func(w *walker) {
			w.confirms("Sent for signature", "Recorded.")
			w.goes(w.named("{application}"))
			w.confirms("Signed by the borrower", "Recorded.")
		},
	}, {
		name: "giving and completing a task", start: "{application}", end: "Recorded.",
		do: func(w *walker) {
			w.press("New task")
			w.fill("Title", "Send the photos")
			w.press("Create task")
			w.sees("Task created.")
			w.confirms("Complete “Send the photos”", "Recorded.")
		},
	}, {
		name: "changing the amount", start: "{application}", end: "9,000.00",
		do: func(w *walker) {
			w.press("Change the amount")
			w.fill("Approved amount", "9000.00")
			w.press(`form[action*="/change/amount"] [type=submit]`)
		},
	}}
}

// confirms opens a form by its link, sends it and waits for what is said then.
func (w *walker) confirms(link, said string) {
	w.Helper()
	w.press(link)
	w.press(`form.dialog-form[action*="/change/"] [type=submit]`)
	w.sees(said)
}
