package views_test

import (
	"context"
	"fmt"
	"io"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/PuerkitoBio/goquery"
	"github.com/a-h/templ"
	"github.com/google/uuid"

	"drawbridge/internal/alert"
	"drawbridge/internal/operator"
	"drawbridge/internal/webhook/delivery"
	"drawbridge/internal/webhook/sender"
	"drawbridge/internal/webhook/subscription"
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
		User:   operator.User{Name: word, Email: word, Role: "support"}, Environment: "Development",
		May:  func(string) bool { return true },
		Path: paths.Deliveries, Query: word, Failing: 3, Live: true, Version: "0.1.0",
		Notice: &ui.Notice{Tone: ui.Bad, Title: word, Text: word},
	}
}

func sampleRow(word string) delivery.Delivery {
	due := sampleTime.Add(time.Minute)
	uid := uuid.MustParse(sampleUID)
	return delivery.Delivery{
		UID: uid, Event: "application.status.update", Status: word,
		ApplicationUID:  uuid.MustParse(sampleApplication),
		SubscriptionUID: uuid.MustParse(sampleSubscription), PartnerName: word,
		Endpoint: subscription.Endpoint{URL: "https://hooks.example/" + word},
		State:    delivery.StateRetrying, AttemptCount: 2,
		LastHTTPStatus: new(503), LastErrorClass: new("http_5xx"), LastDurationUS: new(int64(222_000)),
		NextAttemptAt: &due, CreatedAt: sampleTime, EventAt: sampleTime, Test: true,
		ResendOf: &uid, ResentBy: &word, ResendReason: &word,
	}
}

func sampleList(word string) ui.ListProps {
	rows := []delivery.Delivery{sampleRow(word)}
	return ui.ListProps{
		Path: paths.Deliveries, Intro: word,
		Views: &ui.NamedFilters{
			Path: paths.Deliveries, Query: word,
			Links: []ui.ViewLink{{Label: word, Href: paths.Deliveries, UID: word}},
		},
		Tabs:   []ui.Tab{{Label: "All", Href: paths.Deliveries, Current: true}},
		Active: []ui.ActiveFilter{{Label: word, Href: paths.Deliveries}},
		Fields: []ui.Control{
			{
				ID: "filter-event", Label: "Event", Error: word,
				Name: "event", Value: word,
				Options: []ui.Option{{Value: word, Label: word}},
			},
			{
				ID: "filter-since", Label: "From", Error: word,
				Name: "since", Value: word, Type: "datetime-local",
			},
		},
		Hidden: []ui.HiddenField{{Name: "state", Value: word}},
		Region: ui.ListRegion{
			Path: paths.Deliveries, Rows: 1, Table: ui.Table(deliveries.Table(rows)),
			Summary: "1 delivery", Order: "Newest first",
			Older: paths.Where(paths.Deliveries, "cursor", word),
			Empty: ui.EmptyProps{Icon: "search-x", Title: "No delivery matches these filters"},
			Pick:  &ui.Pick{Action: paths.BulkNew, Filter: word, Buttons: deliveries.PickButtons()},
			Live: &ui.LiveList{
				StreamURL: paths.DeliveriesLive, PollURL: paths.Deliveries,
				News: "3 new deliveries", NewsHref: paths.Deliveries,
			},
		},
	}
}

func sampleDelivery(word string) deliveries.Page {
	headers := []sender.Header{
		{Name: word, Value: word},
		{Name: "x-hmac-signature", Value: "[hidden]3f2a"},
	}
	ms := time.Millisecond
	row := sampleRow(word)
	return deliveries.Page{
		Resend: deliveries.Resend{
			Delivery: delivery.Detail{
				Delivery: row, Body: []byte(word),
				Attempts: []delivery.Attempt{
					{
						Number: 1, StartedAt: sampleTime, ErrorClass: "timeout", Error: word, URL: word,
						DNS: 12 * ms, Connect: 34 * ms, Duration: 900 * ms, RequestHeaders: headers,
					},
					{
						Number: 2, StartedAt: sampleTime.Add(time.Minute), HTTPStatus: 503,
						ErrorClass: "http_5xx", Note: word, Address: word, URL: word,
						SubscriptionVersion: 2, RequestHeaders: headers,
						DNS: 3 * ms, Connect: 28 * ms, TLS: 49 * ms, FirstByte: 138 * ms,
						Duration: 222 * ms, ResponseHeaders: headers, ResponseBody: []byte(word),
					},
				},
			},
			Subscription: subscription.Subscription{
				UID: uuid.MustParse(sampleSubscription), State: subscription.StateActive, URL: word,
				Version: 3, Auth: sender.AuthHMAC,
			},
			NewerDelivered: true, Resends: []delivery.Delivery{row}, Reason: word, Error: word,
		},
		Alert:   &alert.Item{Kind: alert.KindUsedUp, Owner: word, OpenedAt: sampleTime},
		Related: []delivery.Delivery{row},
		Ledger: []delivery.LedgerLine{{
			SubscriptionUID: uuid.MustParse(sampleSubscription),
			Endpoint:        subscription.Endpoint{SubscriptionName: word, URL: word},
			Verdict:         delivery.Verdict(word),
		}},
		Changed: []string{word},
	}
}

func samplePages(word string) map[string]templ.Component {
	unavailable := sampleList(word)
	unavailable.Region.Unavailable = &ui.EmptyProps{Icon: "cloud-off", Title: word, Text: word}
	unmatched := sampleList(word)
	unmatched.Region.Rows = 0
	wrong := sampleList(word)
	wrong.Region.Wrong = []ui.FieldError{
		{Href: "#filter-since", Text: word}, {Text: word},
	}
	framed := func(body templ.Component) templ.Component {
		return ui.Framed(sampleFrame(word), body)
	}
	pages := map[string]templ.Component{
		"deliveries":  framed(ui.List(sampleList(word))),
		"unavailable": framed(ui.List(unavailable)),
		"unmatched":   framed(ui.List(unmatched)),
		"wrong":       framed(ui.List(wrong)),
		"delivery":    framed(deliveries.Detail(sampleDelivery(word))),
		"resend":      framed(deliveries.ResendForm(sampleDelivery(word).Resend)),
		"sign-in": alone(account.SignIn(account.SignInForm{
			Email: word, Next: word, Problem: word, Provider: word,
		})),
		"code": alone(account.SignInCode(word, word)),
		"fault": ui.ErrorPage(ui.ErrorPageProps{
			Status: 404, Title: "Not here", Text: word, RequestID: word,
		}),
	}
	maps.Copy(pages, emailSamplePages(word))
	maps.Copy(pages, healthSamplePages(word))
	maps.Copy(pages, developmentSamplePages(word))
	maps.Copy(pages, subscriptionSamplePages(word))
	return pages
}

// alone returns a page for guests.
func alone(body templ.Component) templ.Component {
	return templ.ComponentFunc(func(ctx context.Context, w io.Writer) error {
		return ui.AuthLayout("Sign in", "Development", "").Render(templ.WithChildren(ctx, body), w)
	})
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
