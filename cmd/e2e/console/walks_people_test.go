//go:build walks

package console

import (
	"drawbridge/cmd/e2e/e2etest"
)

// Passwords that the person chooses.
const (
	ownPassword   = "a password of my own choice"
	otherPassword = "another one that nobody knows"
)

// accountTasks are the tasks of a new user whom an admin has invited.
func accountTasks() []task {
	return []task{{
		name: "inviting somebody, long after the sign-in", start: "/console/people",
		do: func(w *walker) {
			w.changes(`UPDATE user_sessions SET proved_at = now() - interval '1 hour'`)
			w.send("Invite somebody")
			w.fill("Your password", w.known["password"])
			w.send("Confirm")
			w.sees("you can do it now")
			w.fills("E-mail", "pat.{me}@lender.example", "Name", "Pat {me}")
			w.pick("Role", "Operator")
			w.send("Invite")
			w.reads("one-time password", "main code")
			w.send("Done")
			w.heads("Pat {me}")
			w.marks("person")
		},
	}, {
		name: "signing out by the menu", end: "Sign in to the console",
		do: func(w *walker) { w.leaves() },
	}, {
		name: "choosing a password at the first sign-in", end: "Your password is changed.",
		do: func(w *walker) {
			w.enters("pat.{me}@lender.example", "{one-time password}")
			w.sees("Choose a password of your own first")
			w.fills("Current password", "{one-time password}", "New password", ownPassword,
				"New password again", ownPassword)
			w.send("Change password")
		},
	}, {
		name: "signing out elsewhere", end: "You are signed out everywhere else.",
		do: func(w *walker) {
			w.elsewhere(ownPassword)
			w.elsewhere(ownPassword)
			w.goes("/console/account")
			w.send(`[aria-label^="Sign out "]`)
			w.sees("That session has ended.")
			w.send("Sign out everywhere else")
		},
	}, {
		name: "setting up a second factor", start: "/console/account", end: "Make new recovery codes",
		do: func(w *walker) {
			w.setsUp()
			w.send("Make new recovery codes")
			w.reads("recovery code", ".codes code")
			w.send("I have kept them")
		},
	}, {
		name: "signing in with a recovery code", end: "You used a recovery code",
		do: func(w *walker) {
			w.leaves()
			w.enters("pat.{me}@lender.example", ownPassword)
			w.fill("Code from your authenticator app", "{recovery code}")
			w.send("Sign in")
		},
	}, {
		name: "turning the second factor off, and on again", start: "/console/account",
		do: func(w *walker) {
			w.send("Turn off")
			w.sees("The second factor is off.")
			w.setsUp()
		},
	}}
}

// setsUp sets a second factor up, with an app that has its secret.
func (w *walker) setsUp() {
	w.Helper()
	w.send("Set up")
	w.fill("Enter the code…", factorCode(w.T, w.reads("factor", ".steps code")))
	w.send("Turn on")
	w.sees("Your recovery codes")
	w.send("I have kept them")
}

// elsewhere signs the new person in on another device.
func (w *walker) elsewhere(password string) {
	w.Helper()
	user := e2etest.DemoUser{Email: w.named("pat.{me}@lender.example"), Password: password}
	if !e2etest.SignsIn(w.T, w.stage.server.URL, user) {
		w.Fatalf("%s: the new person is not let in elsewhere", w.name)
	}
}

// peopleTasks are an admin's tasks for a user.
func peopleTasks() []task {
	return []task{{
		name: "changing somebody's role", end: "The role is Support now.",
		do: func(w *walker) {
			w.leaves()
			w.enters(w.known["admin"], w.known["password"])
			w.goes("{person}")
			w.pick("Role", "Support")
			w.send("Change role")
		},
	}, {
		name: "resetting somebody's second factor", start: "{person}",
		end: "Their second factor is off and they are signed out.",
		do:  func(w *walker) { w.send("Reset second factor") },
	}, {
		name: "signing somebody out", end: "They are signed out everywhere.",
		do: func(w *walker) {
			w.elsewhere(ownPassword)
			w.elsewhere(ownPassword)
			w.goes("{person}")
			w.send(`[aria-label^="Sign out "]`)
			w.sees("That session has ended.")
			w.send("Sign out everywhere")
		},
	}, {
		name: "resetting somebody's password", start: "{person}", end: "Give access back",
		do: func(w *walker) {
			w.send("Reset password")
			w.reads("reset password", "main code")
			w.send("Done")
			w.send("End access")
			w.sees("Their access has ended.")
		},
	}, {
		name: "giving access back", start: "{person}", end: "They may sign in again.",
		do: func(w *walker) { w.send("Give access back") },
	}, {
		name: "changing a password that was reset", end: "Your password is changed.",
		do: func(w *walker) {
			w.leaves()
			w.enters("pat.{me}@lender.example", "{reset password}")
			w.fills("Current password", "{reset password}", "New password", otherPassword,
				"New password again", otherPassword)
			w.send("Change password")
		},
	}}
}

// lastTasks end things permanently.
func lastTasks() []task {
	return []task{{
		name: "deleting a subscription", end: "Its log is kept",
		do: func(w *walker) {
			w.leaves()
			w.enters(w.known["admin"], w.known["password"])
			w.goes("/console/subscriptions/{subscription}?tab=configuration")
			w.send("Delete the subscription")
			w.fills("Type …", "{host}/hook", "Reason", "they left")
			w.send(`form[action$="/delete"] [type=submit]`)
		},
	}}
}
