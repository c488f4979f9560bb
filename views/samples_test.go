package views

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/PuerkitoBio/goquery"
	"github.com/a-h/templ"
)

// Samples of every page, with the word that a hostile test plants everywhere.

var sampleTime = time.Date(2026, 11, 21, 9, 30, 0, 123456000, time.UTC)

const (
	sampleUID          = "0199a6b3-0000-7000-8000-000000000001"
	sampleApplication  = "0199a6b2-7c1e-7d35-9a44-3f0c51b8e6d2"
	sampleSubscription = "0199a001-11aa-7bbb-8ccc-0a1b2c3d4e5f"
)

func sampleFrame(word string) Frame {
	return Frame{
		Title: "Deliveries", Section: SectionDeliveries,
		Crumbs: []Crumb{{Label: "Deliveries", Href: PathDeliveries}, {Label: word}},
		User:   User{Name: word, Email: word, Role: "support"}, Environment: "Development",
		Path: PathDeliveries, Query: word, Failing: 3, Live: true, Version: "0.1.0",
		Notice: &Notice{Tone: Bad, Title: word, Text: word},
	}
}

func sampleRow(word string) DeliveryRow {
	return DeliveryRow{
		UID: sampleUID, Event: "application.status.update", Status: word,
		Application: sampleApplication, Subscription: sampleSubscription, Partner: word,
		URL: "https://hooks.example/" + word, State: StateRetrying, Attempts: 2, HTTPStatus: 503,
		ErrorClass: "http_5xx", Duration: 222 * time.Millisecond,
		NextAttempt: sampleTime.Add(time.Minute), Created: sampleTime, Resend: true, Test: true,
	}
}

func sampleList(word string) DeliveryList {
	return DeliveryList{
		Frame: sampleFrame(word), Rows: []DeliveryRow{sampleRow(word)}, Summary: "1 delivery",
		Filter: DeliveryFilter{Values: map[string]string{"application": word, "since": word}},
		Query:  word,
		Views: NamedFilters{
			Path: PathDeliveries, Query: word,
			Links: []ViewLink{{Label: word, Href: PathDeliveries, UID: word}},
		},
		TailHref: PathDeliveries, MayCancel: true,
		Tabs:    []Tab{{Label: "All", Href: PathDeliveries, Current: true}},
		Active:  []ActiveFilter{{Label: word, Href: PathDeliveries}},
		Choices: map[string][]Option{"event": {{Value: word, Label: word}}},
		Older:   DeliveriesOf("cursor", word), News: 3, NewsHref: PathDeliveries,
		StreamURL: PathDeliveriesLive, PollURL: PathDeliveries,
	}
}

func sampleDelivery(word string) DeliveryPage {
	headers := []HeaderView{
		{Name: word, Value: word},
		{Name: "x-hmac-signature", Value: "••••3f2a", Masked: true},
	}
	ms := time.Millisecond
	return DeliveryPage{
		Frame: sampleFrame(word), Delivery: sampleRow(word), SubscriptionState: "active",
		EventUID: sampleUID, Occurred: sampleTime, Merchant: word, Body: []byte(word), SHA256: "5f70",
		Attempts: []AttemptView{
			{
				Number: 1, Started: sampleTime, ErrorClass: "timeout", Error: word, URL: word,
				Phases: Phases{DNS: 12 * ms, Connect: 34 * ms, Total: 900 * ms}, RequestHeaders: headers,
			},
			{
				Number: 2, Started: sampleTime.Add(time.Minute), HTTPStatus: 503, ErrorClass: "http_5xx",
				Note: word, Address: word, URL: word, Version: 2, RequestHeaders: headers,
				Phases: Phases{
					DNS: 3 * ms, Connect: 28 * ms, TLS: 49 * ms, FirstByte: 138 * ms,
					Total: 222 * ms,
				},
				ResponseHeaders: headers, ResponseBody: []byte(word), Expanded: true,
			},
		},
		Diagnosis: Diagnosis{
			Tone: Warn, Title: "Unavailable", Text: word, Owner: "partner",
			Next: "Wait.",
		},
		Origin: &ResendView{
			UID: sampleUID, State: StateFailed, By: word, Reason: word,
			Created: sampleTime,
		},
		Resends: []ResendView{{
			UID: sampleUID, State: StateDelivered, By: word, Reason: word,
			Created: sampleTime,
		}},
		Resend: sampleForm(word), Curl: word, StreamURL: DeliveryLivePath(sampleUID),
		PollURL: DeliveryPath(sampleUID),
	}
}

func sampleForm(word string) *ResendForm {
	return &ResendForm{
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
		"deliveries":  DeliveryListPage(sampleList(word)),
		"unavailable": DeliveryListPage(unavailable),
		"unmatched":   DeliveryListPage(unmatched),
		"wrong":       DeliveryListPage(wrong),
		"delivery":    DeliveryDetailPage(sampleDelivery(word)),
		"resend":      ResendPage(sampleFrame(word), *sampleForm(word)),
		"sign-in": SignInPage(SignIn{
			Environment: "Development", Email: word, Next: word, Fault: word, Provider: word,
		}),
		"fault": FaultPage(Fault{Status: 404, Title: "Not here", Text: word, RequestID: word}),
	}
	maps.Copy(pages, emailSamplePages(word))
	maps.Copy(pages, healthSamplePages(word))
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
