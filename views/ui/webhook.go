package ui

import (
	"fmt"
	"strings"
	"time"

	"drawbridge/internal/lending"
	"drawbridge/internal/webhook"
)

// EventOptions are the kinds of events to choose from, the first one for any.
func EventOptions() []Option {
	options := []Option{{Label: "All events"}}
	for _, kind := range lending.AllEventKinds() {
		options = append(options, Option{Value: string(kind), Label: string(kind)})
	}
	return options
}

// DeliveryRows are deliveries as a table shows them.
func DeliveryRows(deliveries []webhook.Delivery) []DeliveryRow {
	rows := make([]DeliveryRow, 0, len(deliveries))
	for _, delivery := range deliveries {
		rows = append(rows, DeliveryRowOf(delivery))
	}
	return rows
}

// DeliveryRowOf is one delivery as a table shows it.
func DeliveryRowOf(d webhook.Delivery) DeliveryRow {
	row := DeliveryRow{
		UID: d.UID.String(), Event: string(d.Event), Status: d.Status,
		Subscription: d.SubscriptionUID.String(), Partner: d.PartnerName, URL: d.URL,
		State: string(d.State), Attempts: d.AttemptCount, Created: d.CreatedAt,
		Resend: d.ResendOf != nil, Test: d.Test,
	}
	if d.LastHTTPStatus != nil {
		row.HTTPStatus = *d.LastHTTPStatus
	}
	if d.LastErrorClass != nil {
		row.ErrorClass = *d.LastErrorClass
	}
	if d.LastDurationUS != nil {
		row.Duration = time.Duration(*d.LastDurationUS) * time.Microsecond
	}
	if !d.Parked && d.NextAttemptAt != nil {
		row.NextAttempt = *d.NextAttemptAt
	}
	if !d.Test {
		row.Application = d.ApplicationUID.String()
	}
	return row
}

// AttemptsOf are the attempts of a delivery. The last one is opened when it failed: it
// is what the reader came for.
func AttemptsOf(records []webhook.AttemptRecord) []AttemptView {
	attempts := make([]AttemptView, 0, len(records))
	for i, record := range records {
		attempts = append(attempts, AttemptView{
			Number: record.Number, Started: record.StartedAt,
			HTTPStatus: record.HTTPStatus, ErrorClass: string(record.ErrorClass),
			Error: Sentence(record.Error), Note: Sentence(record.Note),
			Address: record.Address, Travelled: travelled(record), URL: record.URL,
			Version: record.SubscriptionVersion,
			Phases: Phases{
				DNS: record.DNS, Connect: record.Connect, TLS: record.TLS,
				FirstByte: record.FirstByte, Total: record.Duration,
			},
			RequestHeaders:  HeadersOf(record.RequestHeaders),
			ResponseHeaders: HeadersOf(record.ResponseHeaders),
			ResponseBody:    record.ResponseBody,
			Expanded:        record.ErrorClass != "" && i == len(records)-1,
		})
	}
	return attempts
}

// travelled says how an attempt's request went: over which protocol, on a new
// connection or one that was open, under which certificate.
func travelled(record webhook.AttemptRecord) string {
	var parts []string
	for _, part := range []string{record.Protocol, record.TLSVersion} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	if record.Reused != nil {
		parts = append(parts, map[bool]string{
			true: "on an open connection", false: "on a new connection",
		}[*record.Reused])
	}
	if at := record.CertificateExpires; at != nil && !at.IsZero() {
		parts = append(parts, "certificate until "+at.UTC().Format("2006-01-02"))
	}
	return strings.Join(parts, ", ")
}

// HeadersOf are header lines to be shown; secret ones must be masked already.
func HeadersOf(headers []webhook.Header) []HeaderView {
	shown := make([]HeaderView, 0, len(headers))
	for _, header := range headers {
		shown = append(shown, HeaderView{
			Name: header.Name, Value: header.Value, Masked: webhook.IsMasked(header.Value),
		})
	}
	return shown
}

// DiagnosisOf explains a delivery's state in plain words; its title is empty where there
// is nothing to explain.
func DiagnosisOf(detail webhook.DeliveryDetail, subscription webhook.State) Diagnosis {
	last := webhook.AttemptRecord{}
	if len(detail.Attempts) > 0 {
		last = detail.Attempts[len(detail.Attempts)-1]
	}
	why := webhook.Diagnose(last)
	explained := Diagnosis{
		Text: why.Summary, Owner: string(why.Owner), Next: strings.TrimSpace(why.Next),
	}
	switch {
	case detail.State == webhook.DeliveryDelivered:
		return Diagnosis{
			Tone: Good, Title: "The partner has received it",
			Text: fmt.Sprintf("The endpoint answered %d to attempt %d.", last.HTTPStatus, last.Number),
		}
	case detail.State == webhook.DeliveryCancelled:
		return Diagnosis{
			Tone: Mute, Title: "It was cancelled and will not be sent",
			Text: "Its subscription was deleted, or an operator cancelled it, before it went out.",
		}
	case subscription == webhook.StatePaused:
		return Diagnosis{
			Tone: Mute, Title: "It waits: the subscription is paused",
			Text: "It goes out when the subscription is resumed.",
		}
	case detail.Parked:
		return Diagnosis{
			Tone: Bad, Title: "It waits: nothing can be sent to its subscription",
			Text: "The subscription's secret or headers do not open; its page says what to do.",
		}
	case detail.State == webhook.DeliveryFailed:
		explained.Tone, explained.Title = Bad, "All attempts are used up"
		return explained
	case detail.State == webhook.DeliveryRetrying:
		explained.Tone, explained.Title = Warn, "It failed and will be tried again by itself"
		return explained
	}
	return Diagnosis{}
}
