//go:build walks

package console

import (
	"slices"

	"github.com/chromedp/chromedp/kb"

	"drawbridge/cmd/e2e/e2etest"
)

func partnerTasks() []task {
	return []task{{
		name: "creating a partner", start: "/console/partners", end: "What is left to do for its first",
		do: func(w *walker) {
			w.press("New partner")
			w.fills("Name", "Sunvolt {me}", "First merchant", "Phoenix {me}")
			w.send("Create partner")
			w.heads("Sunvolt {me}")
			w.marks("partner")
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
			w.send(`form[action$="/rename"] [type=submit]`)
			w.heads("Sunvolt Energy {me}")
		},
	}, {
		name: "saying whom to write to at a partner", start: "{partner}", end: "ops.{me}@example.com",
		do: func(w *walker) {
			w.press(`[href$="/contact"]`)
			w.fill("Contact", "ops.{me}@example.com")
			w.send(`form[action$="/contact"] [type=submit]`)
		},
	}, {
		name: "adding a merchant", start: "{partner}",
		do: func(w *walker) {
			w.press("New merchant")
			w.fill("Name", "Mesa {me}")
			w.send("Create merchant")
			w.heads("Mesa {me}")
		},
	}, {
		name: "renaming a merchant", start: "{partner}",
		do: func(w *walker) {
			w.send("Mesa {me}")
			w.press("Rename")
			w.fill("Name", "Mesa Verde {me}")
			w.send(`form[action$="/rename"] [type=submit]`)
			w.heads("Mesa Verde {me}")
		},
	}}
}

func clientTasks() []task {
	issued := func(w *walker) {
		w.send("Issue client id and secret")
		w.reads("client secret", "#secret")
		w.send("I have copied it")
	}
	return slices.Concat([]task{{
		name: "issuing credentials", start: "{partner}", end: "Rotate secret",
		do: func(w *walker) {
			w.send("Issue credentials")
			w.tick("Mesa Verde {me}")
			issued(w)
			w.marks("client")
		},
	}}, credentialTasks("credentials", "client"), []task{{
		name: "issuing credentials for a system of the lender", start: "/console/lender",
		end: "Rotate secret",
		do: func(w *walker) {
			w.send("Issue credentials")
			w.fill("Name", "payments of {me}")
			w.tick("read: see applications and disbursements")
			issued(w)
			w.marks("system")
		},
	}}, credentialTasks("a system's credentials", "system"))
}

// credentialTasks are the life of credentials, whose page is known to the walker under a name.
func credentialTasks(of, name string) []task {
	page := "{" + name + "}"
	return []task{{
		name: "limiting the rate of " + of, start: page, end: "20 requests a second, 40 at once",
		do: func(w *walker) {
			w.press("Rate limit")
			w.fills("Requests a second", "20", "Burst", "40")
			w.send("Save")
		},
	}, {
		name: "rotating " + of, start: page, end: "Two secrets work",
		do: func(w *walker) {
			w.press("Rotate secret")
			w.pick("The old secret works on for", "1 hour")
			w.send("Issue a new secret")
			w.send("I have copied it")
		},
	}, {
		name: "revoking " + of, start: page, end: "Revoked",
		do: func(w *walker) {
			w.press("Revoke")
			w.fill("Reason", "nobody uses it any more")
			w.send("Revoke for good")
			w.lacks("Rotate secret")
		},
	}}
}

func productTasks() []task {
	return []task{{
		name: "offering a product", start: "/console/products", end: "P-{me}",
		do: func(w *walker) {
			w.send("New product")
			w.fills("Code", "P-{me}", "Name", "Product of {me}", "Term in months", "60",
				"Interest rate…", "7.99", "Merchant fee…", "2", "Schedule", "50,50",
				"Lends at least", "1000.00", "Lends at most", "50000.00")
			w.send("Preview the stages")
			w.sees("Stages of a loan of")
			w.send("Create and offer it")
			w.heads("Products")
		},
	}, {
		name: "giving its draws more time", start: "/console/products",
		do: func(w *walker) {
			w.press("Overdue: 16 h P-{me}")
			w.fill("Overdue after", "24")
			w.send("Save")
			w.sees("Saved.")
		},
	}, {
		name: "taking it off the offer, and offering it again", start: "/console/products",
		do: func(w *walker) {
			w.press("Stop offering P-{me}")
			w.send("Stop offering it")
			w.sees("Changed.")
			w.press("Offer P-{me}")
			w.send("Offer it")
			w.sees("Changed.")
		},
	}}
}

// changing is the selector of the button that sends the form of a change.
const changing = `form.dialog-form[action*="/change/"] [type=submit]`

// confirms opens a form by its link, sends it and waits for the resulting message.
func (w *walker) confirms(link, said string) {
	w.Helper()
	w.press(link)
	w.send(changing)
	w.sees(said)
}

func applicationTasks() []task {
	return []task{{
		name: "creating an application", start: "/console/applications",
		end: "The welcome e-mail is on its way",
		do: func(w *walker) {
			w.send("New application")
			w.pick("Merchant", "Mesa Verde {me}")
			w.fills("Requested amount", "12500.00", "First name", "Ana", "Last name", "Lima {me}",
				"E-mail address", "ana.{me}@example.com", `[name="project.name"]`, "New roof")
			w.send("Create and welcome the borrower")
			w.heads("Ana Lima {me}")
			w.marks("application")
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
		name: "changing amount and terms", start: "{application}", end: "The terms are changed.",
		do: func(w *walker) {
			w.press("Change the amount")
			w.fill("Approved amount", "9000.00")
			w.send(`form[action*="/change/amount"] [type=submit]`)
			w.sees("9,000.00")
			w.press("Change the terms")
			w.fill("Term in months", "72")
			w.send(`form[action*="/change/terms"] [type=submit]`)
		},
	}, {
		name: "recording the documents",
		do: func(w *walker) {
			for _, step := range []string{"Mark as sent for signature", "Mark as signed"} {
				w.goes("{application}")
				w.confirms(step, "Recorded.")
			}
		},
	}, {
		name: "giving, completing and cancelling tasks",
		do: func(w *walker) {
			for _, verb := range []string{"Complete", "Cancel"} {
				w.goes("{application}")
				w.press("New task")
				w.fill("Title", verb+" this")
				w.send("Create task")
				w.sees("Task created.")
				w.confirms(verb+" “"+verb+" this”", "Recorded.")
			}
		},
	}, {
		name: "holding an application, and releasing it", start: "{application}",
		end: "The legal hold is released.",
		do: func(w *walker) {
			w.press("Place a legal hold")
			w.fill("Reason", "a court asked {me}")
			w.send("Place the hold")
			w.sees("a court asked {me}")
			w.press("Release the legal hold")
			w.fill("Reason", "it is over")
			w.send("Release the hold")
		},
	}}
}

func loanTasks() []task {
	return []task{{
		name: "finding the draws of a loan and funding one", start: "/console/loans",
		do: func(w *walker) {
			w.send(`main [href="/console/applications/{pending}"]`)
			for _, state := range []string{"processing", "settled"} {
				w.goes("/console/applications/{pending}")
				w.confirms("Mark funding as "+state, "is "+state+".")
			}
		},
	}, {
		name: "cancelling a draw that a partner asked for", end: "is cancelled.",
		do: func(w *walker) {
			e2etest.WantDraw(w.T, w.stage.server.URL, w.stage.data, "first_regular")
			w.goes("/console/applications/{undrawn}")
			w.press("Cancel the draw")
			w.fill("Reason", "ordered twice")
			w.send(changing)
			w.sees("ordered twice")
		},
	}, {
		name: "closing an application for good", start: "{application}", end: "Moved to Closed.",
		do: func(w *walker) { w.confirms("Closed", "Moved to Closed.") },
	}}
}
