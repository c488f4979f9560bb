package views_test

import (
	"strings"
	"testing"
	"time"

	"github.com/a-h/templ"

	"drawbridge/views/paths"
	"drawbridge/views/subscriptions"
	"drawbridge/views/ui"
)

func sampleSubscriptionList(word string) subscriptions.SubscriptionList {
	return subscriptions.SubscriptionList{
		Frame: sampleFrame(word), Summary: "1 subscription", MayChange: true,
		Filter:   subscriptions.SubscriptionFilter{Host: word, State: "failing", Partner: word},
		Tabs:     []ui.Tab{{Label: "All", Href: paths.Subscriptions, Current: true}},
		Active:   []ui.ActiveFilter{{Label: word, Href: paths.Subscriptions}},
		Partners: []ui.Option{{Value: word, Label: word}},
		Events:   []ui.Option{{Value: word, Label: word}},
		Rows: []subscriptions.SubscriptionRow{{
			UID: sampleSubscription, Partner: word, URL: word, State: "failing", Auth: "hmac",
			Events: []string{"task.created", word}, Merchants: 2, Created: sampleTime, MayChange: true,
		}, {
			UID: sampleUID, Partner: word, URL: "https://" + word, State: "paused", Auth: "none",
			Events: []string{"all"}, Created: sampleTime, MayChange: true,
		}},
	}
}

func sampleAttempt(word string) ui.AttemptView {
	return ui.AttemptView{
		Number: 1, Started: sampleTime, HTTPStatus: 503, ErrorClass: "http_5xx", Error: word,
		URL: word, Address: word, Phases: ui.Phases{Total: time.Second, FirstByte: time.Second},
		RequestHeaders:  []ui.HeaderView{{Name: word, Value: word}},
		ResponseHeaders: []ui.HeaderView{{Name: word, Value: word}}, ResponseBody: []byte(word),
	}
}

func sampleSubscriptionForm(word string) subscriptions.SubscriptionForm {
	return subscriptions.SubscriptionForm{
		Frame: sampleFrame(word), UID: sampleSubscription, Version: 3, Partner: sampleUID,
		PartnerName: word, URL: word, Auth: "hmac", StoredAuth: "hmac", SecretMode: "keep",
		Secret: word, Reason: word, TestEvent: "task.created",
		Merchants: []subscriptions.Choice{{Value: sampleUID, Label: word, Checked: true}},
		Events: []subscriptions.EventChoice{{
			Kind: "task.created", Title: "Task created", Meaning: "Something is to be done.",
			Sample: []byte(`{"task_title":"x"}`), Checked: true,
		}},
		Headers: []subscriptions.HeaderField{
			{Key: 1, Name: word, Value: word, Note: word}, {Key: 4, Name: "x-api-key", Kept: true},
		},
		Check: &subscriptions.URLCheck{Items: []subscriptions.CheckItem{{
			Tone: ui.Bad, Title: word,
			Text: word,
		}}},
		Trial: &subscriptions.TrialView{
			Event: "task.created", Attempt: sampleAttempt(word), Body: []byte(word),
			Diagnosis: ui.Diagnosis{Tone: ui.Bad, Title: word, Text: word, Owner: "partner"},
		},
		Conflict: &subscriptions.Conflict{
			Versions: []subscriptions.VersionRow{{Number: 3, By: word, At: sampleTime, Change: word}},
			Changes: []subscriptions.ConflictChange{{
				Setting: "URL", Base: word, Theirs: word,
				Yours: word,
			}},
		},
		Faults:     map[string]string{"url": word, "header-1-name": word, "secret": word},
		FaultOrder: []string{"url", "secret", "header-1-name"},
	}
}

func sampleSubscriptionPage(word, tab string) subscriptions.SubscriptionPage {
	return subscriptions.SubscriptionPage{
		Frame: sampleFrame(word), UID: sampleSubscription, PartnerUID: sampleUID, PartnerName: word,
		URL: word, State: "failing", Version: 3, Tab: tab, MayChange: true,
		Tabs: []ui.Tab{{
			Label: "Activity", Href: paths.SubscriptionTab(sampleSubscription, tab),
			Current: true,
		}},
		Banner: ui.Diagnosis{Tone: ui.Bad, Title: word, Text: word},
		Activity: subscriptions.SubscriptionActivity{
			Rows: []ui.DeliveryRow{sampleRow(word)},
			Groups: []subscriptions.ErrorGroup{{
				HTTPStatus: 503, ErrorClass: "http_5xx", Count: 84, First: sampleTime, Last: sampleTime,
				Href: paths.Deliveries,
			}},
		},
		Configuration: subscriptions.Configuration{
			Auth: "hmac", Merchants: []string{word}, Created: sampleTime, Updated: sampleTime,
			Events: []subscriptions.EventChoice{{
				Kind: "task.created", Title: "Task created",
				Meaning: "Soon.",
			}},
			Headers: []ui.HeaderView{
				{Name: word, Value: word},
				{Name: "x", Value: "[hidden]", Masked: true},
			},
		},
		Health: subscriptions.HealthTab{
			HealthView: subscriptions.HealthView{
				Rate: "98.4 %", P50: time.Second, P95: time.Second, Attempts: 3, LastSuccess: sampleTime,
				Hours: []subscriptions.HealthHour{{
					Start: sampleTime, Succeeded: 2, Failed: 1,
					P95: time.Second,
				}},
			},
			Probe: subscriptions.ProbeView{
				At: sampleTime, Next: sampleTime, Address: word, Expires: sampleTime, Issuer: word,
				TLS: word, Took: time.Second,
				Check: subscriptions.URLCheck{Items: []subscriptions.CheckItem{{
					Tone: ui.Warn, Title: word,
					Text: word,
				}}},
				Changes: []subscriptions.ProbeChange{{At: sampleTime, Finding: word}},
			},
		},
		Secret: subscriptions.SecretTab{
			Auth: "hmac", PreviousUntil: sampleTime, New: word,
			Snippets: []subscriptions.Snippet{{Language: "Go", Code: word}},
			Match:    &ui.Notice{Tone: ui.Good, Title: word}, Fault: word,
		},
		Versions: subscriptions.VersionsTab{
			Rows: []subscriptions.VersionRow{{
				Number: 3, By: word, At: sampleTime, Change: word, Current: true,
			}, {
				Number: 2, By: word, At: sampleTime, Change: word,
				Restore: paths.Where(paths.To(paths.SubscriptionRestore, sampleSubscription), "version", "2"),
			}},
			From: 2, To: 3, Diff: []subscriptions.DiffRow{{Setting: "URL", Before: word, After: word}},
			Options: []ui.Option{{Value: "3", Label: word}, {Value: "2", Label: word}},
		},
	}
}

func subscriptionSamplePages(word string) map[string]templ.Component {
	empty, lost, unmatched := sampleSubscriptionList(word), sampleSubscriptionList(word),
		sampleSubscriptionList(word)
	empty.Rows, empty.Filter, empty.Active = nil, subscriptions.SubscriptionFilter{}, nil
	lost.Unavailable = true
	unmatched.Rows = nil
	wrong := sampleSubscriptionList(word)
	wrong.Filter.Faults = map[string]string{"partner": word}
	made := sampleSubscriptionForm(word)
	made.UID, made.Partners = "", []ui.Option{{Label: "Choose"}, {Value: sampleUID, Label: word}}
	return map[string]templ.Component{
		"subscriptions":             subscriptions.SubscriptionListPage(sampleSubscriptionList(word)),
		"no subscriptions":          subscriptions.SubscriptionListPage(empty),
		"lost subscriptions":        subscriptions.SubscriptionListPage(lost),
		"unmatched subscriptions":   subscriptions.SubscriptionListPage(unmatched),
		"wrong subscription filter": subscriptions.SubscriptionListPage(wrong),
		"subscription form":         subscriptions.SubscriptionFormPage(sampleSubscriptionForm(word)),
		"new subscription":          subscriptions.SubscriptionFormPage(made),
		"subscription activity": subscriptions.SubscriptionDetailPage(sampleSubscriptionPage(word,
			subscriptions.TabActivity)),
		"subscription configuration": subscriptions.SubscriptionDetailPage(
			sampleSubscriptionPage(word, subscriptions.TabConfiguration)),
		"subscription secret": subscriptions.SubscriptionDetailPage(sampleSubscriptionPage(word,
			subscriptions.TabSecret)),
		"subscription versions": subscriptions.SubscriptionDetailPage(sampleSubscriptionPage(word,
			subscriptions.TabVersions)),
		"subscription health": subscriptions.SubscriptionDetailPage(sampleSubscriptionPage(word,
			subscriptions.TabHealth)),
		"subscription action": subscriptions.ActionPage(subscriptions.ActionForm{
			Frame: sampleFrame(word), UID: sampleSubscription, URL: word, Partner: word, Action: "restore",
			Consequences: []string{word}, Confirm: word, Typed: word, Reason: word, Fault: word,
			Danger: true, Button: "Restore", Icon: "history", Version: 2,
			Diff: []subscriptions.DiffRow{{Setting: "URL", Before: word, After: word}},
		}),
		"subscription rotation": subscriptions.RotatePage(subscriptions.RotateForm{
			Frame: sampleFrame(word), UID: sampleSubscription, URL: word, Partner: word,
			Auth: "hmac", Mode: "paste",
			Secret: word, Overlap: word, Overlaps: []ui.Option{{Value: "1h", Label: "1 hour"}},
			Reason: word, Faults: map[string]string{"secret": word},
		}),
		"subscription test": subscriptions.TestPage(subscriptions.TestForm{
			Frame: sampleFrame(word), UID: sampleSubscription, URL: word, Partner: word,
			Event: word, Fault: word,
			Events: []ui.Option{{Value: word, Label: word}},
			Result: &subscriptions.TestResult{
				Delivery: sampleRow(word), Attempts: []ui.AttemptView{sampleAttempt(word)},
				Diagnosis: ui.Diagnosis{Tone: ui.Bad, Title: word, Text: word}, Body: []byte(word),
				StreamURL: "/console/x", PollURL: "/console/y",
			},
		}),
	}
}

func TestStoredSecretsNeverStandInTheForm(t *testing.T) {
	t.Parallel()
	form := sampleSubscriptionForm("Sunvolt")
	form.Headers = []subscriptions.HeaderField{{Key: 1, Name: "x-api-key", Kept: true}}
	page := render(t, subscriptions.SubscriptionFormPage(form))
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
	page := render(t, subscriptions.SubscriptionFormPage(sampleSubscriptionForm("Sunvolt")))
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
