package ui

import (
	"strings"
	"time"

	"drawbridge/internal/alert"
	"drawbridge/views/paths"
)

// alertWords are the kinds of alerts in words.
var alertWords = map[alert.Kind]string{
	alert.KindUsedUp:         "Deliveries failed",
	alert.KindUnknown:        "Outcome unknown",
	alert.KindFailing:        "Subscription failing",
	alert.KindCertificate:    "Certificate expiring",
	alert.KindProbe:          "Endpoint unreachable",
	alert.KindOverdue:        "Deliveries overdue",
	alert.KindNeverSucceeded: "Nothing arrives",
	alert.KindMailFailed:     "E-mails failed",
	alert.KindUnopened:       "Nothing can be sent",
	alert.KindMailRefused:    "Mail server refuses us",
	alert.KindDrawOverdue:    "Draws overdue",
	alert.KindUndecided:      "Applications undecided",
}

// AlertKind is a kind of alert in words; an unknown kind is shown as it is written.
func AlertKind(kind alert.Kind) string { return wordOf(alertWords, kind) }

// AlertChip is the state of an alert at the given time.
func AlertChip(a alert.Item, now time.Time) ChipProps {
	switch {
	case a.ClosedAt != nil:
		return ChipProps{"circle-check", "Closed", Mute}
	case a.Snoozed(now):
		return ChipProps{"clock", "Snoozed", Calm}
	case a.Severity == alert.Warning:
		return ChipProps{"triangle-alert", "Warning", Warn}
	}
	return ChipProps{"circle-alert", "Problem", Bad}
}

// AlertLink returns the link to the subject of an alert and its label; both are empty if
// the subject has no page.
func AlertLink(a alert.Item) (label, href string) {
	since := a.OpenedAt.Add(-time.Hour).UTC().Format(time.RFC3339)
	subscription := a.Subscription.UUID.String()
	switch a.Kind {
	case alert.KindUsedUp, alert.KindFailing, alert.KindNeverSucceeded:
		return "Show what fails", paths.To(paths.Failures, subscription)
	case alert.KindUnknown:
		return "Show the deliveries",
			paths.Where(paths.Deliveries, "subscription", subscription, "since", since)
	case alert.KindOverdue:
		return "Show what waits", paths.Where(paths.Deliveries, "state", WaitingDeliveries)
	case alert.KindMailFailed:
		return "Show the e-mails", paths.Where(paths.Emails, "state", "failed", "open", "yes")
	case alert.KindMailRefused:
		return "Show what waits", paths.Where(paths.Emails, "state", "queued")
	case alert.KindDrawOverdue:
		return "Open the draw desk", paths.Where(paths.Desk, "overdue", "yes")
	case alert.KindUndecided:
		return "Show the applications", paths.Applications
	case alert.KindCertificate, alert.KindProbe, alert.KindUnopened:
		return "Open the subscription", paths.To(paths.Subscription, subscription)
	}
	return "", ""
}

// AlertAbout names the subject of an alert.
func AlertAbout(a alert.Item) string {
	if a.URL != "" {
		return a.Label() + " · " + a.Partner
	}
	switch a.Kind {
	case alert.KindDrawOverdue:
		return "Draws due on " + a.Subject
	case alert.KindUndecided:
		return "Applicants who need notice by " + strings.TrimSuffix(a.Subject, ", urgent")
	case alert.KindMailFailed, alert.KindMailRefused:
		return "E-mails"
	case alert.KindOverdue:
		return "All subscriptions"
	case alert.KindUsedUp, alert.KindUnknown, alert.KindFailing,
		alert.KindCertificate, alert.KindProbe, alert.KindNeverSucceeded,
		alert.KindUnopened: // concerns a subscription
	}
	return "Drawbridge itself"
}
