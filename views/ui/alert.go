package ui

import (
	"strings"
	"time"

	"drawbridge/internal/webhook/delivery"

	"drawbridge/internal/alert"
	"drawbridge/views/paths"
)

// AlertRowOf is an alert as pages show it.
func AlertRowOf(item alert.Item, now time.Time) AlertRow {
	row := AlertRow{
		UID: item.UID.String(), Kind: string(item.Kind), Subject: item.Subject,
		Partner: item.Partner, Endpoint: item.Endpoint,
		Severity: string(item.Severity), Detail: item.Detail, Count: item.Count,
		Opened: item.OpenedAt, LastSeen: item.LastSeenAt, Owner: item.Owner,
		ClosedBy: item.ClosedBy, Note: item.Note,
	}
	if item.Snoozed(now) {
		row.SnoozedUntil = *item.SnoozedUntil
	}
	if item.ClosedAt != nil {
		row.Closed = *item.ClosedAt
	}
	since := item.OpenedAt.Add(-time.Hour).UTC().Format(time.RFC3339)
	subscription := item.Subscription.UUID.String()
	switch item.Kind {
	case alert.KindUsedUp, alert.KindFailing, alert.KindNeverSucceeded:
		row.Look, row.LookHref = "Show what fails", paths.To(paths.Failures, subscription)
	case alert.KindUnknown:
		row.Look, row.LookHref = "Show the deliveries",
			paths.Where(paths.Deliveries, "subscription", subscription, "since", since)
	case alert.KindOverdue:
		row.Look, row.LookHref = "Show what waits",
			paths.Where(paths.Deliveries, "state", string(delivery.StatePending))
	case alert.KindMailFailed:
		row.Look, row.LookHref = "Show the e-mails", paths.Where(paths.Emails, "state", "failed")
	case alert.KindMailRefused:
		row.Look, row.LookHref = "Show what waits", paths.Where(paths.Emails, "state", "queued")
	case alert.KindDrawOverdue:
		row.Look, row.LookHref = "Open the draw desk", paths.Where(paths.Desk, "overdue", "yes")
	case alert.KindUndecided:
		row.Look, row.LookHref = "Show the applications", paths.Applications
	case alert.KindCertificate, alert.KindProbe, alert.KindUnopened:
		row.Look, row.LookHref = "Open the subscription", paths.To(paths.Subscription, subscription)
	}
	return row
}

// About is what the alert is about.
func (r AlertRow) About() string {
	if r.URL != "" {
		return r.Label() + " · " + r.Partner
	}
	switch alert.Kind(r.Kind) {
	case alert.KindDrawOverdue:
		return "Draws due on " + r.Subject
	case alert.KindUndecided:
		return "Applicants who need notice by " + strings.TrimSuffix(r.Subject, ", urgent")
	case alert.KindMailFailed, alert.KindMailRefused:
		return "E-mails"
	case alert.KindOverdue:
		return "All subscriptions"
	case alert.KindUsedUp, alert.KindUnknown, alert.KindFailing,
		alert.KindCertificate, alert.KindProbe, alert.KindNeverSucceeded,
		alert.KindUnopened: // of a subscription
	}
	return "Drawbridge itself"
}
