package views_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/PuerkitoBio/goquery"
	"github.com/a-h/templ"

	"drawbridge/views/account"
	"drawbridge/views/deliveries"
	"drawbridge/views/paths"
	"drawbridge/views/ui"
)

// Samples of every page, with the word that a hostile test plants everywhere.

var sampleTime = time.Date(2026, 11, 21, 9, 30, 0, 123456000, time.UTC)

const (
	sampleUID          = "0199a6b3-0000-7000-8000-000000000001"
	sampleApplication  = "0199a6b2-7c1e-7d35-9a44-3f0c51b8e6d2"
	sampleSubscription = "0199a001-11aa-7bbb-8ccc-0a1b2c3d4e5f"
)

func sampleFrame(word string) ui.Frame {
	return ui.Frame{
		Title: "Deliveries", Section: ui.SectionDeliveries,
		Crumbs: []ui.Crumb{{Label: "Deliveries", Href: paths.Deliveries}, {Label: word}},
		User:   ui.User{Name: word, Email: word, Role: "support"}, Environment: "Development",
		Path: paths.Deliveries, Query: word, Failing: 3, Live: true, Version: "0.1.0",
		Notice: &ui.Notice{Tone: ui.Bad, Title: word, Text: word},
	}
}

func sampleRow(word string) ui.DeliveryRow {
	return ui.DeliveryRow{
		UID: sampleUID, Event: "application.status.update", Status: word,
		Application: sampleApplication, Subscription: sampleSubscription, Partner: word,
		URL: "https://hooks.example/" + word, State: ui.StateRetrying, Attempts: 2, HTTPStatus: 503,
		ErrorClass: "http_5xx", Duration: 222 * time.Millisecond,
		NextAttempt: sampleTime.Add(time.Minute), Created: sampleTime, Resend: true, Test: true,
	}
}

func sampleList(word string) deliveries.DeliveryList {
	return deliveries.DeliveryList{
		Frame: sampleFrame(word), Rows: []ui.DeliveryRow{sampleRow(word)}, Summary: "1 delivery",
		Filter: deliveries.DeliveryFilter{Values: map[string]string{"application": word, "since": word}},
		Query:  word,
		Views: ui.NamedFilters{
			Path: paths.Deliveries, Query: word,
			Links: []ui.ViewLink{{Label: word, Href: paths.Deliveries, UID: word}},
		},
		TailHref: paths.Deliveries, MayCancel: true,
		Tabs:    []ui.Tab{{Label: "All", Href: paths.Deliveries, Current: true}},
		Active:  []ui.ActiveFilter{{Label: word, Href: paths.Deliveries}},
		Choices: map[string][]ui.Option{"event": {{Value: word, Label: word}}},
		Older:   paths.Where(paths.Deliveries, "cursor", word), News: 3, NewsHref: paths.Deliveries,
		StreamURL: paths.DeliveriesLive, PollURL: paths.Deliveries,
	}
}

func sampleDelivery(word string) deliveries.DeliveryPage {
	headers := []ui.HeaderView{
		{Name: word, Value: word},
		{Name: "x-hmac-signature", Value: "••••3f2a", Masked: true},
	}
	ms := time.Millisecond
	return deliveries.DeliveryPage{
		Frame: sampleFrame(word), Delivery: sampleRow(word), SubscriptionState: "active",
		EventUID: sampleUID, Occurred: sampleTime, Merchant: word, Body: []byte(word), SHA256: "5f70",
		Attempts: []ui.AttemptView{
			{
				Number: 1, Started: sampleTime, ErrorClass: "timeout", Error: word, URL: word,
				Phases: ui.Phases{DNS: 12 * ms, Connect: 34 * ms, Total: 900 * ms}, RequestHeaders: headers,
			},
			{
				Number: 2, Started: sampleTime.Add(time.Minute), HTTPStatus: 503, ErrorClass: "http_5xx",
				Note: word, Address: word, URL: word, Version: 2, RequestHeaders: headers,
				Phases: ui.Phases{
					DNS: 3 * ms, Connect: 28 * ms, TLS: 49 * ms, FirstByte: 138 * ms,
					Total: 222 * ms,
				},
				ResponseHeaders: headers, ResponseBody: []byte(word), Expanded: true,
			},
		},
		Diagnosis: ui.Diagnosis{
			Tone: ui.Warn, Title: "Unavailable", Text: word, Owner: "partner",
			Next: "Wait.",
		},
		Origin: &deliveries.ResendView{
			UID: sampleUID, State: ui.StateFailed, By: word, Reason: word,
			Created: sampleTime,
		},
		Resends: []deliveries.ResendView{{
			UID: sampleUID, State: ui.StateDelivered, By: word, Reason: word,
			Created: sampleTime,
		}},
		Resend: sampleForm(word), Curl: word, StreamURL: paths.To(paths.DeliveryLive, sampleUID),
		PollURL: paths.To(paths.Delivery, sampleUID),
	}
}

func sampleForm(word string) *deliveries.ResendForm {
	return &deliveries.ResendForm{
		UID: sampleUID, Event: "application.status.update", Partner: word, URL: word,
		Risks: []string{word}, Reason: word, Fault: word,
	}
}

func samplePages(word string) map[string]templ.Component {
	unavailable := sampleList(word)
	unavailable.Unavailable = true
	unmatched := sampleList(word)
	unmatched.Rows = nil
	wrong := sampleList(word)
	wrong.Filter.Faults = map[string]string{"since": word, "state": word}
	pages := map[string]templ.Component{
		"deliveries":  deliveries.DeliveryListPage(sampleList(word)),
		"unavailable": deliveries.DeliveryListPage(unavailable),
		"unmatched":   deliveries.DeliveryListPage(unmatched),
		"wrong":       deliveries.DeliveryListPage(wrong),
		"delivery":    deliveries.DeliveryDetailPage(sampleDelivery(word)),
		"resend":      deliveries.ResendPage(sampleFrame(word), *sampleForm(word)),
		"sign-in": account.SignInPage(account.SignIn{
			Environment: "Development", Email: word, Next: word, Fault: word, Provider: word,
		}),
		"fault": ui.FaultPage(ui.Fault{Status: 404, Title: "Not here", Text: word, RequestID: word}),
	}
	maps.Copy(pages, emailSamplePages(word))
	maps.Copy(pages, healthSamplePages(word))
	maps.Copy(pages, developmentSamplePages(word))
	maps.Copy(pages, subscriptionSamplePages(word))
	return pages
}

func render(t *testing.T, component templ.Component) *goquery.Document {
	t.Helper()
	var out strings.Builder
	if err := component.Render(t.Context(), &out); err != nil {
		t.Fatal(err)
	}
	document, err := goquery.NewDocumentFromReader(strings.NewReader(out.String()))
	if err != nil {
		t.Fatal(err)
	}
	return document
}

// text is an element's text with white space collapsed.
func text(selection *goquery.Selection) string {
	return strings.Join(strings.Fields(selection.Text()), " ")
}

// eachPage runs check on every sample page as a parallel subtest.
func eachPage(t *testing.T, word string, check func(t *testing.T, page *goquery.Document)) {
	t.Helper()
	for name, component := range samplePages(word) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check(t, render(t, component))
		})
	}
}

func describe(selection *goquery.Selection) string {
	html, err := goquery.OuterHtml(selection)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%.160s", html)
}
