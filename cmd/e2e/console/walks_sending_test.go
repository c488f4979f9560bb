//go:build walks

package console

// receiverTasks change the settings of a development server's sample receiver.
func receiverTasks() []task {
	const page = "/console/dev/receiver"
	return []task{{
		name: "telling the sample receiver how to answer", start: page,
		do: func(w *walker) {
			for _, mode := range []string{"#mode-fail", "#mode-accept"} {
				w.choose(mode)
				w.send("Set")
				w.sees("It applies from the next request.")
			}
		},
	}, {
		name: "telling it a secret", start: page, end: "The receiver knows the secret now.",
		do: func(w *walker) {
			w.fill("Tell it a signing secret or token", "agreed-together-by-{me}")
			w.send("Remember the secret")
		},
	}, {
		name: "subscribing it", start: page, end: "Created, and the receiver knows its secret.",
		do: func(w *walker) {
			w.pick("Partner", w.stage.data.Partners[1].Name)
			w.send("Create a subscription to it")
		},
	}}
}

func subscriptionTasks() []task {
	return append([]task{{
		name: "creating a subscription", start: "/console/subscriptions",
		do: func(w *walker) {
			w.send("New subscription")
			w.fill("URL", "{receiver}")
			if w.plain {
				w.send("Check this address now")
			}
			w.reach("Partner")
			w.sees("accepts connections")
			w.pick("Partner", "Sunrise Roofing")
			if w.plain {
				w.send("Show the partner's merchants")
			}
			w.choose("#merchants-some")
			w.tick("Sunrise Roofing") // its merchant has the same name
			// The result of the address check stays.
			if !w.plain {
				w.sees("accepts connections")
			}
			w.choose("#secret_mode-paste")
			w.fill("Agreed secret or token", "agreed-together-by-{me}")
			w.press("Add a header")
			w.fills(`[name="header_name"]`, "x-team", `[name="header_value"]`, "lending")
			w.press("Send a test")
			w.sees("The endpoint confirmed the test")
			w.press("Remove header 1")
			w.loses("Remove header 1")
			w.send("Create the subscription")
			w.reads("made secret", "#new-secret")
			w.marks("made")
		},
	}, {
		name: "sending a test event", start: "{made}",
		do: func(w *walker) {
			w.send("Send a test event")
			w.send("Send the test event")
			for w.plain && !w.shows("The endpoint confirmed the test event") {
				w.send("Look again")
			}
			w.sees("The endpoint confirmed the test event")
		},
	}, {
		name: "looking at what the receiver got", start: "/console/dev/receiver",
		end: "Nothing came in yet",
		do: func(w *walker) {
			w.sees("Verified: the signature belongs")
			w.send("Forget them")
		},
	}, {
		name: "changing a subscription", start: "/console/subscriptions/{subscription}/edit",
		end: "configuration version 2",
		do: func(w *walker) {
			w.fill("URL", "{endpoint}/changed")
			w.send("Save as a new version")
		},
	}}, steeringTasks()...)
}

func steeringTasks() []task {
	return []task{{
		name: "pausing a subscription", start: "/console/subscriptions/{subscription}",
		end: "Deliveries that fall due wait until it is resumed",
		do: func(w *walker) {
			w.send("Pause")
			w.fill("Reason", "they asked")
			w.send(`form[action$="/pause"] [type=submit]`)
		},
	}, {
		name: "cancelling deliveries that wait", end: "Cancelled: 1 delivery.",
		do: func(w *walker) {
			for _, title := range []string{"Call them", "Write to them"} {
				w.goes("/console/applications/{undrawn}")
				w.press("New task")
				w.fill("Title", title)
				w.send("Create task")
				w.sees("Task created.")
			}
			w.goes("/console/deliveries?state=pending&subscription={subscription}")
			w.tick(`[name=delivery]`)
			w.send("Cancel selected")
			w.fill("Reason", "called off by {me}")
			w.send("Cancel 1 delivery")
			w.sees("Cancelled: 1 delivery.")
			w.send(`main tbody a.lead[href^="/console/deliveries/"]`)
			w.send("Cancel this delivery")
			w.fill("Reason", "called off by {me} as well")
			w.send("Cancel 1 delivery")
		},
	}, {
		name: "resuming a subscription", start: "/console/subscriptions/{subscription}",
		end: "What waited goes out now",
		do: func(w *walker) {
			w.send("Resume")
			w.heads("Resume the subscription")
			w.send(`form[action$="/resume"] [type=submit]`)
		},
	}, {
		name: "rotating a secret", start: "/console/subscriptions/{subscription}?tab=secret",
		end: "it is shown only this once",
		do: func(w *walker) {
			w.send("Rotate")
			w.pick("Overlap", "1 hour")
			w.send(`form[action$="/rotate"] [type=submit]`)
			w.reads("secret", "#new-secret")
		},
	}, {
		name: "comparing a secret", start: "/console/subscriptions/{subscription}?tab=secret",
		end: "This is the current secret",
		do: func(w *walker) {
			w.fill("Value that the partner uses", "{secret}")
			w.send("Compare")
		},
	}, {
		name: "comparing two versions", start: "/console/subscriptions/{subscription}?tab=versions",
		end: "Settings that differ between versions 1 and",
		do: func(w *walker) {
			w.pick("From", "1: ")
			w.send("Compare")
		},
	}, {
		name: "restoring a version", start: "/console/subscriptions/{subscription}?tab=versions",
		end: "Version 1 is in force again",
		do: func(w *walker) {
			w.send("Restore version 1")
			w.fill("Reason", "it was better")
			w.send(`form[action$="/restore"] [type=submit]`)
		},
	}}
}
