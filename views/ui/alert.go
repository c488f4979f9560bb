package ui

import (
	"strings"
	"time"

	"drawbridge/internal/webhook/delivery"

	"drawbridge/internal/attention"
	"drawbridge/views/paths"
)

// AttentionRowOf is an alert as pages show it.
func AttentionRowOf(item attention.Item, now time.Time) AttentionRow {
	row := AttentionRow{
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
	case attention.KindUsedUp, attention.KindFailing, attention.KindNeverSucceeded:
		row.Look, row.LookHref = "Show what fails", paths.To(paths.Failures, subscription)
	case attention.KindUnknown:
		row.Look, row.LookHref = "Show the deliveries",
			paths.Where(paths.Deliveries, "subscription", subscription, "since", since)
	case attention.KindOverdue:
		row.Look, row.LookHref = "Show what waits",
			paths.Where(paths.Deliveries, "state", string(delivery.StatePending))
	case attention.KindMailFailed:
		row.Look, row.LookHref = "Show the e-mails", paths.Where(paths.Emails, "state", "failed")
	case attention.KindMailRefused:
		row.Look, row.LookHref = "Show what waits", paths.Where(paths.Emails, "state", "queued")
	case attention.KindDrawOverdue:
		row.Look, row.LookHref = "Open the draw desk", paths.Where(paths.Desk, "overdue", "yes")
	case attention.KindUndecided:
		row.Look, row.LookHref = "Show the applications", paths.Applications
	case attention.KindCertificate, attention.KindProbe, attention.KindUnopened:
		row.Look, row.LookHref = "Open the subscription", paths.To(paths.Subscription, subscription)
	}
	return row
}

// About is what the alert is about.
func (r AttentionRow) About() string {
	if r.URL != "" {
		return r.Label() + " · " + r.Partner
	}
	switch attention.Kind(r.Kind) {
	case attention.KindDrawOverdue:
		return "Draws due on " + r.Subject
	case attention.KindUndecided:
		return "Applicants who need notice by " + strings.TrimSuffix(r.Subject, ", urgent")
	case attention.KindMailFailed, attention.KindMailRefused:
		return "E-mails"
	case attention.KindOverdue:
		return "All subscriptions"
	case attention.KindUsedUp, attention.KindUnknown, attention.KindFailing,
		attention.KindCertificate, attention.KindProbe, attention.KindNeverSucceeded,
		attention.KindUnopened: // of a subscription
	}
	return "Drawbridge itself"
}
