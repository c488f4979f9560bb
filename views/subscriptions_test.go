package views

import (
	"strings"
	"testing"
	"time"

	"github.com/a-h/templ"
)

func sampleSubscriptionList(word string) SubscriptionList {
	return SubscriptionList{
		Frame: sampleFrame(word), Summary: "1 subscription", MayChange: true,
		Filter:   SubscriptionFilter{Host: word, State: "failing", Partner: word},
		Tabs:     []Tab{{Label: "All", Href: PathSubscriptions, Current: true}},
		Active:   []ActiveFilter{{Label: word, Href: PathSubscriptions}},
		Partners: []Option{{Value: word, Label: word}}, Events: []Option{{Value: word, Label: word}},
		Rows: []SubscriptionRow{{
			UID: sampleSubscription, Partner: word, URL: word, State: "failing", Auth: "hmac",
			Events: []string{"task.created", word}, Merchants: 2, Created: sampleTime, MayChange: true,
		}, {
			UID: sampleUID, Partner: word, URL: "https://" + word, State: "paused", Auth: "none",
			Events: []string{"all"}, Created: sampleTime, MayChange: true,
		}},
	}
}

func sampleAttempt(word string) AttemptView {
	return AttemptView{
		Number: 1, Started: sampleTime, HTTPStatus: 503, ErrorClass: "http_5xx", Error: word,
		URL: word, Address: word, Phases: Phases{Total: time.Second, FirstByte: time.Second},
		RequestHeaders:  []HeaderView{{Name: word, Value: word}},
		ResponseHeaders: []HeaderView{{Name: word, Value: word}}, ResponseBody: []byte(word),
	}
}

func sampleSubscriptionForm(word string) SubscriptionForm {
	return SubscriptionForm{
		Frame: sampleFrame(word), UID: sampleSubscription, Version: 3, Partner: sampleUID,
		PartnerName: word, URL: word, Auth: "hmac", StoredAuth: "hmac", SecretMode: "keep",
		Secret: word, Reason: word, TestEvent: "task.created",
		Merchants: []Choice{{Value: sampleUID, Label: word, Checked: true}},
		Events: []EventChoice{{
			Kind: "task.created", Title: "Task created", Meaning: "Something is to be done.",
			Sample: []byte(`{"task_title":"x"}`), Checked: true,
		}},
		Headers: []HeaderField{
			{Key: 1, Name: word, Value: word, Note: word}, {Key: 4, Name: "x-api-key", Kept: true},
		},
		Check: &URLCheck{Items: []CheckItem{{Tone: Bad, Title: word, Text: word}}},
		Trial: &TrialView{
			Event: "task.created", Attempt: sampleAttempt(word), Body: []byte(word),
			Diagnosis: Diagnosis{Tone: Bad, Title: word, Text: word, Owner: "partner"},
		},
		Conflict: &Conflict{
			Versions: []VersionRow{{Number: 3, By: word, At: sampleTime, Change: word}},
			Changes:  []ConflictChange{{Setting: "URL", Base: word, Theirs: word, Yours: word}},
		},
		Faults:     map[string]string{"url": word, "header-1-name": word, "secret": word},
		FaultOrder: []string{"url", "secret", "header-1-name"},
	}
}

func sampleSubscriptionPage(word, tab string) SubscriptionPage {
	return SubscriptionPage{
		Frame: sampleFrame(word), UID: sampleSubscription, PartnerUID: sampleUID, PartnerName: word,
		URL: word, State: "failing", Version: 3, Tab: tab, MayChange: true,
		Tabs:   []Tab{{Label: "Activity", Href: SubscriptionTab(sampleSubscription, tab), Current: true}},
		Banner: Diagnosis{Tone: Bad, Title: word, Text: word},
		Activity: SubscriptionActivity{
			Rows: []DeliveryRow{sampleRow(word)},
			Groups: []ErrorGroup{{
				HTTPStatus: 503, ErrorClass: "http_5xx", Count: 84, First: sampleTime, Last: sampleTime,
				Href: PathDeliveries,
			}},
		},
		Configuration: Configuration{
			Auth: "hmac", Merchants: []string{word}, Created: sampleTime, Updated: sampleTime,
			Events:  []EventChoice{{Kind: "task.created", Title: "Task created", Meaning: "Soon."}},
			Headers: []HeaderView{{Name: word, Value: word}, {Name: "x", Value: "[hidden]", Masked: true}},
		},
		Health: HealthTab{
			HealthView: HealthView{
				Rate: "98.4 %", P50: time.Second, P95: time.Second, Attempts: 3, LastSuccess: sampleTime,
				Hours: []HealthHour{{Start: sampleTime, Succeeded: 2, Failed: 1, P95: time.Second}},
			},
			Probe: ProbeView{
				At: sampleTime, Next: sampleTime, Address: word, Expires: sampleTime, Issuer: word,
				TLS: word, Took: time.Second,
				Check:   URLCheck{Items: []CheckItem{{Tone: Warn, Title: word, Text: word}}},
				Changes: []ProbeChange{{At: sampleTime, Finding: word}},
			},
		},
		Secret: SecretTab{
			Auth: "hmac", PreviousUntil: sampleTime, New: word,
			Snippets: []Snippet{{Language: "Go", Code: word}},
			Match:    &Notice{Tone: Good, Title: word}, Fault: word,
		},
		Versions: VersionsTab{
			Rows: []VersionRow{{
				Number: 3, By: word, At: sampleTime, Change: word, Current: true,
			}, {
				Number: 2, By: word, At: sampleTime, Change: word,
				Restore: RestorePath(sampleSubscription, "2"),
			}},
			From: 2, To: 3, Diff: []DiffRow{{Setting: "URL", Before: word, After: word}},
			Options: []Option{{Value: "3", Label: word}, {Value: "2", Label: word}},
		},
	}
}

func sampleReceiver(word string) ReceiverPage {
	return ReceiverPage{
		Frame: sampleFrame(word), URL: word, WrongURL: word, Mode: "accept", Verify: true,
		Partners: []Option{{Value: sampleUID, Label: word}}, MayChange: true, Fault: word,
		Received: []ReceivedView{
			{
				Number: 2, At: sampleTime, Delivery: word, Event: word, Attempt: word, Test: true,
				Check: word, Duplicate: word, Answer: 401, Body: []byte(word),
			},
			{Number: 1, At: sampleTime, Delivery: sampleUID, Genuine: true, Answer: 204},
		},
	}
}

func subscriptionSamplePages(word string) map[string]templ.Component {
	empty, lost, unmatched := sampleSubscriptionList(word), sampleSubscriptionList(word),
		sampleSubscriptionList(word)
	empty.Rows, empty.Filter, empty.Active = nil, SubscriptionFilter{}, nil
	lost.Unavailable = true
	unmatched.Rows = nil
	wrong := sampleSubscriptionList(word)
	wrong.Filter.Faults = map[string]string{"partner": word}
	made := sampleSubscriptionForm(word)
	made.UID, made.Partners = "", []Option{{Label: "Choose"}, {Value: sampleUID, Label: word}}
	return map[string]templ.Component{
		"subscriptions":             SubscriptionListPage(sampleSubscriptionList(word)),
		"no subscriptions":          SubscriptionListPage(empty),
		"lost subscriptions":        SubscriptionListPage(lost),
		"unmatched subscriptions":   SubscriptionListPage(unmatched),
		"wrong subscription filter": SubscriptionListPage(wrong),
		"subscription form":         SubscriptionFormPage(sampleSubscriptionForm(word)),
		"new subscription":          SubscriptionFormPage(made),
		"subscription activity":     SubscriptionDetailPage(sampleSubscriptionPage(word, TabActivity)),
		"subscription configuration": SubscriptionDetailPage(
			sampleSubscriptionPage(word, TabConfiguration)),
		"subscription secret":   SubscriptionDetailPage(sampleSubscriptionPage(word, TabSecret)),
		"subscription versions": SubscriptionDetailPage(sampleSubscriptionPage(word, TabVersions)),
		"subscription health":   SubscriptionDetailPage(sampleSubscriptionPage(word, TabHealth)),
		"sample receiver":       ReceiverDetailPage(sampleReceiver(word)),
		"silent receiver":       ReceiverDetailPage(ReceiverPage{Frame: sampleFrame(word), URL: word}),
		"mailbox": MailboxPage(Mailbox{
			Frame: sampleFrame(word), Open: sampleUID, Subject: word, BodyURL: EmailBodyPath(sampleUID),
			Rows: []EmailRow{{UID: sampleUID, Kind: word, To: word, Subject: word, Created: sampleTime}},
		}),
		"empty mailbox": MailboxPage(Mailbox{Frame: sampleFrame(word), Sends: true}),
		"subscription action": ActionPage(ActionForm{
			Frame: sampleFrame(word), UID: sampleSubscription, URL: word, Partner: word, Action: "restore",
			Consequences: []string{word}, Confirm: word, Typed: word, Reason: word, Fault: word,
			Danger: true, Button: "Restore", Icon: "history", Version: 2,
			Diff: []DiffRow{{Setting: "URL", Before: word, After: word}},
		}),
		"subscription rotation": RotatePage(RotateForm{
			Frame: sampleFrame(word), UID: sampleSubscription, URL: word, Partner: word,
			Auth: "hmac", Mode: "paste",
			Secret: word, Overlap: word, Overlaps: []Option{{Value: "1h", Label: "1 hour"}},
			Reason: word, Faults: map[string]string{"secret": word},
		}),
		"subscription test": TestPage(TestForm{
			Frame: sampleFrame(word), UID: sampleSubscription, URL: word, Partner: word,
			Event: word, Fault: word,
			Events: []Option{{Value: word, Label: word}},
			Result: &TestResult{
				Delivery: sampleRow(word), Attempts: []AttemptView{sampleAttempt(word)},
				Diagnosis: Diagnosis{Tone: Bad, Title: word, Text: word}, Body: []byte(word),
				StreamURL: "/console/x", PollURL: "/console/y",
			},
		}),
	}
}

func TestStoredSecretsNeverStandInTheForm(t *testing.T) {
	t.Parallel()
	form := sampleSubscriptionForm("Sunvolt")
	form.Headers = []HeaderField{{Key: 1, Name: "x-api-key", Kept: true}}
	page := render(t, SubscriptionFormPage(form))
	row := page.Find("#header-1-row")
	if value, _ := row.Find("input[name=header_value]").Attr("value"); value != "" {
		t.Errorf("the form shows %q", value)
	}
	if hint, _ := row.Find("input[name=header_value]").Attr("placeholder"); hint == "" {
		t.Error("nothing says that the stored value is kept")
	}
}

func TestFaultsOfTheFormLeadToTheirFields(t *testing.T) {
	t.Parallel()
	page := render(t, SubscriptionFormPage(sampleSubscriptionForm("Sunvolt")))
	links := page.Find("#faults a")
	if links.Length() != 3 {
		t.Fatalf("%d links, want one for each fault", links.Length())
	}
	for _, link := range links.EachIter() {
		href, _ := link.Attr("href")
		field := page.Find(href)
		if invalid, _ := field.Attr("aria-invalid"); invalid != "true" {
			t.Errorf("%s leads to no field that is marked: %s", href, describe(field))
		}
		described, _ := field.Attr("aria-describedby")
		if !strings.Contains(described, strings.TrimPrefix(href, "#")+"-fault") {
			t.Errorf("%s does not name its fault: %q", href, described)
		}
	}
}
