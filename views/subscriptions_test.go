package views_test

import (
	"maps"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/a-h/templ"
	"github.com/google/uuid"

	"drawbridge/internal/webhook/delivery"
	"drawbridge/internal/webhook/health"
	"drawbridge/internal/webhook/sender"
	"drawbridge/internal/webhook/subscription"
	"drawbridge/views/paths"
	"drawbridge/views/subscriptions"
	"drawbridge/views/ui"
)

// sampleSubscribed returns a subscription with the word in all texts.
func sampleSubscribed(word string) subscription.Subscription {
	return subscription.Subscription{
		UID: uuid.MustParse(sampleSubscription), PartnerUID: uuid.MustParse(sampleUID), URL: word,
		Auth: sender.AuthHMAC, Events: []string{"task.created"}, State: subscription.StateFailing,
		Merchants: []uuid.UUID{uuid.MustParse(sampleUID)}, Version: 3, CreatedAt: sampleTime,
		Headers: []sender.Header{
			{Name: word, Value: word, Plain: true}, {Name: "x", Value: "secret"},
		},
		UpdatedAt: sampleTime,
	}
}

func sampleHealth() health.Health {
	hour := health.Hour{Start: sampleTime}
	hour.Attempts, hour.Succeeded = 3, 2
	hour.Latency.Observe(time.Second, 2)
	return health.Health{
		Hours: []health.Hour{hour}, Counts: hour.Counts, LastSuccess: &sampleTime,
	}
}

// subscriptionLists returns the list with and without rows.
func subscriptionLists(word string) map[string]templ.Component {
	failing, paused := subscription.Summary{
		UID: uuid.MustParse(sampleSubscription), PartnerName: word, State: "failing",
		Endpoint: subscription.Endpoint{URL: word},
		Events:   []string{"task.created", word}, Merchants: 2, CreatedAt: sampleTime,
	}, subscription.Summary{
		UID: uuid.MustParse(sampleUID), PartnerName: word, State: "paused",
		Endpoint: subscription.Endpoint{URL: "https://" + word},
		Events:   []string{"all"}, CreatedAt: sampleTime,
	}
	full := ui.ListProps{Region: ui.ListRegion{
		Path: paths.Subscriptions, Rows: 2, Summary: "2 subscriptions", Order: "Newest first",
		Table: ui.Table(subscriptions.Table([]subscriptions.Listed{
			{Summary: failing, Health: sampleHealth()}, {Summary: paused},
		})),
	}, Buttons: subscriptions.NewButton()}
	empty := ui.ListProps{Region: ui.ListRegion{EmptyBody: subscriptions.None()}}
	return map[string]templ.Component{
		"subscriptions":    ui.Framed(sampleFrame(word), ui.List(full)),
		"no subscriptions": ui.Framed(sampleFrame(word), ui.List(empty)),
	}
}

func sampleAttempt(word string) ui.AttemptView {
	return ui.AttemptView{Attempt: delivery.Attempt{
		Number: 1, StartedAt: sampleTime, HTTPStatus: 503, ErrorClass: "http_5xx", Error: word,
		URL: word, Address: word, Duration: time.Second, FirstByte: time.Second,
		RequestHeaders:  []sender.Header{{Name: word, Value: word}},
		ResponseHeaders: []sender.Header{{Name: word, Value: word}}, ResponseBody: []byte(word),
	}}
}

func sampleSubscriptionForm(word string) subscriptions.Form {
	return subscriptions.Form{
		Timeout: 30 * time.Second,
		UID:     sampleSubscription, Version: 3, Partner: sampleUID,
		PartnerName: word, URL: word, Auth: "hmac", StoredAuth: "hmac", SecretMode: "keep",
		Secret: word, Reason: word, TestEvent: "task.created",
		Merchants: []subscriptions.Choice{{Value: sampleUID, Label: word, Checked: true}},
		Events: []subscriptions.EventChoice{{
			Kind: "task.created", Sample: []byte(`{"task_title":"x"}`), Checked: true,
		}},
		Headers: []subscriptions.HeaderField{
			{Key: 1, Name: word, Value: word, Note: word}, {Key: 4, Name: "x-api-key", Kept: true},
		},
		Check: []subscriptions.CheckItem{{Tone: ui.Bad, Title: word, Text: word}},
		Trial: &subscriptions.Trial{
			Event: "task.created", Attempt: sampleAttempt(word), Body: []byte(word),
			Diagnosis: ui.Diagnosis{Tone: ui.Bad, Title: word, Text: word, Owner: "partner"},
		},
		Conflict: &subscriptions.Conflict{
			Versions: sampleVersions(word)[:1],
			Changes: []subscriptions.ConflictChange{{
				Setting: "URL", Base: word, Theirs: word, Yours: word,
			}},
		},
		Errors:     map[string]string{"url": word, "header-1-name": word, "secret": word},
		ErrorOrder: []string{"url", "secret", "header-1-name"},
	}
}

func sampleVersions(word string) []subscription.Version {
	return []subscription.Version{
		{Number: 3, ChangedBy: word, ChangedAt: sampleTime, Change: word},
		{Number: 2, ChangedBy: word, ChangedAt: sampleTime, Change: word, Reason: word},
	}
}

// subscriptionTabs returns the tabs of a subscription's page.
func subscriptionTabs(word string) map[string]templ.Component {
	s := sampleSubscribed(word)
	probe := health.ProbeRecord{At: sampleTime, NextAt: sampleTime}
	probe.Class, probe.Error, probe.Issuer, probe.TLSVersion = "tls", word, word, word
	probe.Address, probe.Expires = netip.MustParseAddrPort("192.0.2.7:443"), sampleTime
	probe.Timings.Total = time.Second
	return map[string]templ.Component{
		subscriptions.TabActivity: subscriptions.Activity(s, []delivery.Delivery{{
			UID: uuid.MustParse(sampleUID), Event: "task.created", PartnerName: word,
			Endpoint: subscription.Endpoint{SubscriptionName: word, URL: word},
			State:    delivery.StateFailed, CreatedAt: sampleTime,
		}}, []health.ErrorGroup{{
			Status: 503, Class: "http_5xx", Count: 84, First: sampleTime, Last: sampleTime,
		}}),
		subscriptions.TabConfiguration: subscriptions.Configuration(s, word, []string{word}),
		subscriptions.TabSecret: subscriptions.Secret(s, subscriptions.SecretTab{
			PreviousUntil: sampleTime, New: word, Problem: word,
			Snippets: []subscriptions.Snippet{{Language: "Go", Code: word}},
			Match:    &ui.Notice{Tone: ui.Good, Title: word},
		}),
		subscriptions.TabVersions: subscriptions.Versions(s, sampleVersions(word),
			subscriptions.Comparison{
				From: 2, To: 3,
				Rows: []subscriptions.Difference{{Setting: "URL", Before: word, After: word}},
			}),
		subscriptions.TabHealth: subscriptions.Health(sampleHealth(), probe,
			[]health.ProbeChange{{At: sampleTime, Finding: word}}, sampleTime),
	}
}

func subscriptionSamplePages(word string) map[string]templ.Component {
	frame, s := sampleFrame(word), sampleSubscribed(word)
	made := sampleSubscriptionForm(word)
	made.UID, made.Partners = "", []ui.Option{{Label: "Choose"}, {Value: sampleUID, Label: word}}
	confirm := ui.Confirmation{
		Title: word, Effects: []string{word}, Reason: word, Error: word, Danger: true, Submit: "Delete",
		Action: paths.Subscriptions, Cancel: paths.Subscriptions,
		Controls: []ui.Control{{Name: "confirm", Label: word, Value: word, Error: word}},
	}
	restore := confirm
	restore.Controls = []ui.Control{
		{Name: "secret", Label: word, Error: word},
		{Name: "headers[0].value", Label: word, Error: word},
		{Name: "no_headers", Label: word},
	}
	rotate := confirm
	rotate.Controls = []ui.Control{
		{Name: "secret_mode", Label: word, Value: "paste"},
		{Name: "secret", Label: word, Value: word, Error: word},
		{Name: "overlap", Label: word, Value: word, Options: []ui.Option{{Value: "1h", Label: word}}},
	}
	test := confirm
	test.Controls = []ui.Control{{
		Name: "event", Label: "Event", Value: word, Error: word,
		Options: []ui.Option{{Value: word, Label: word}},
	}}
	result := delivery.Detail{
		Delivery: delivery.Delivery{
			UID: uuid.MustParse(sampleUID), SubscriptionUID: s.UID, Event: "task.created",
			State: delivery.StateRetrying,
		},
		Body: []byte(word), Attempts: []delivery.Attempt{{
			Number: 1, StartedAt: sampleTime, Duration: time.Second, HTTPStatus: 503,
			ErrorClass: "http_5xx", Error: word, URL: word, ResponseBody: []byte(word),
		}},
	}
	pages := subscriptionLists(word)
	for tab, body := range subscriptionTabs(word) {
		pages["subscription "+tab] = ui.Framed(frame, subscriptions.Detail(subscriptions.Page{
			Subscription: s, PartnerName: word, Tab: tab, Body: body,
			Banner: ui.Diagnosis{Tone: ui.Bad, Title: word, Text: word},
		}))
	}
	maps.Copy(pages, map[string]templ.Component{
		"subscription form":   ui.Framed(frame, subscriptions.FormPage(sampleSubscriptionForm(word))),
		"new subscription":    ui.Framed(frame, subscriptions.FormPage(made)),
		"subscription action": ui.Framed(frame, subscriptions.Confirm(confirm, s, word, "history")),
		"subscription restore": ui.Framed(frame, subscriptions.Restore(restore, s, word,
			[]subscriptions.Difference{{Setting: "URL", Before: word, After: word}})),
		"subscription rotation": ui.Framed(frame, subscriptions.Rotate(rotate, s, word)),
		"subscription test":     ui.Framed(frame, subscriptions.Test(test, s, word, &result)),
	})
	return pages
}

func TestStoredSecretsNeverStandInTheForm(t *testing.T) {
	t.Parallel()
	form := sampleSubscriptionForm("Sunvolt")
	form.Headers = []subscriptions.HeaderField{{Key: 1, Name: "x-api-key", Kept: true}}
	page := render(t, subscriptions.FormPage(form))
	row := page.Find("#header-1-row")
	if value, _ := row.Find("input[name=header_value]").Attr("value"); value != "" {
		t.Errorf("the form shows %q", value)
	}
	if hint, _ := row.Find("input[name=header_value]").Attr("placeholder"); hint == "" {
		t.Error("nothing says that the stored value is kept")
	}
}

func TestErrorsOfTheFormLeadToTheirFields(t *testing.T) {
	t.Parallel()
	page := render(t, subscriptions.FormPage(sampleSubscriptionForm("Sunvolt")))
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

func TestTheCheckOfAnAddressCallsItAsTheFormDoes(t *testing.T) {
	t.Parallel()
	items := subscriptions.Checked(subscription.URLCheck{Steps: []subscription.CheckStep{{
		Name: "url", Verdict: subscription.CheckRefused, Text: `"url" must begin with https://.`,
	}}})
	if len(items) != 1 || items[0].Title != "Format" ||
		items[0].Text != "The URL must begin with https://." {
		t.Errorf("it says %+v", items)
	}
}
