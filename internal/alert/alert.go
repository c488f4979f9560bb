// Package alert monitors Drawbridge's own work, alerts the operators when something goes wrong,
// and keeps the queue of items that need a person.
//
// [Service.Tally] moves the outcomes of attempts into the summaries, [Service.Watch] updates the
// states of subscriptions and looks for what is missing, [Service.Probe] checks endpoints
// between events. Each may run in several processes at once: what one has done, the others find
// done.
//
// # An item
//
//	             +--(seen again)--+
//	             |                |
//	found --> open ------------> closed   by the system, when the cause is gone
//	             |                        by a person, with a note
//	             +--> snoozed until a time, then open again
//
// There is one open item for each kind and subject, however often the cause is found: an
// endpoint with a thousand failed deliveries is one alert for one person.
package alert

import (
	"context"
	"strconv"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/calendar"
	"drawbridge/internal/email"
	"drawbridge/internal/postgres"
	"drawbridge/internal/webhook"
	"drawbridge/internal/webhook/subscription"
)

// Service keeps the queue. It sends mail and writes audit entries through other services.
type Service struct {
	DB       *postgres.DB
	Webhooks *webhook.Services
	Emails   *email.Service
	// AttemptLimit is the longest that an attempt of a delivery can take.
	AttemptLimit time.Duration
	// Calendar is the lender's; OverdueDraws returns the draws that are overdue by it.
	Calendar     calendar.Calendar
	OverdueDraws func(ctx context.Context) ([]LateDraw, error)
}

// Kind is the kind of problem that an item is about.
type Kind string

// The kinds of items.
const (
	// KindUsedUp: deliveries of a subscription failed for good.
	KindUsedUp Kind = "delivery_used_up"
	// KindUnknown: attempts of a subscription have an unknown outcome.
	KindUnknown Kind = "outcome_unknown"
	// KindFailing: a subscription is failing, or was paused for it.
	KindFailing Kind = "subscription_failing"
	// KindCertificate: an endpoint's certificate ends within 21 days.
	KindCertificate Kind = "certificate_expiring"
	// KindProbe: two probes of an endpoint in a row failed.
	KindProbe Kind = "probe_failed"
	// KindOverdue: deliveries were due a minute ago and had no attempt.
	KindOverdue Kind = "delivery_overdue"
	// KindNeverSucceeded: nothing arrived at a subscription for seven days.
	KindNeverSucceeded Kind = "never_succeeded"
	// KindUnopened: nothing is sent to a subscription, because its secret or its headers cannot be
	// decrypted.
	KindUnopened Kind = "subscription_unopened"
	// KindMailFailed: e-mails could not be sent.
	KindMailFailed Kind = "mail_failed"
	// KindMailRefused: the mail server refuses us, and all e-mails wait, or some of them.
	KindMailRefused Kind = "mail_refused"
	// KindDrawOverdue: draws have been in one state for longer than their products allow.
	KindDrawOverdue Kind = "draw_overdue"
	// KindUndecided: applications have waited 20 or 28 days for a decision.
	KindUndecided Kind = "application_undecided"
)

// Kinds lists every kind, the most urgent first.
func Kinds() []Kind {
	return []Kind{
		KindOverdue, KindMailRefused, KindDrawOverdue, KindUndecided, KindUnopened, KindFailing,
		KindNeverSucceeded, KindUsedUp, KindUnknown, KindProbe, KindCertificate, KindMailFailed,
	}
}

// Severity is how bad the problem is.
type Severity string

// The severities. A warning becomes a problem if nobody acts.
const (
	Warning Severity = "warning"
	Problem Severity = "problem"
)

// BySystem is the ClosedBy of an item that was closed because its cause was gone.
const BySystem = "system"

// Item is one alert: a problem that needs a person.
type Item struct {
	UID  uuid.UUID `db:"item_uid"`
	Kind Kind      `db:"kind"`
	// Subject names what the item is about: a subscription's UUID, or a word.
	Subject string `db:"subject"`
	// Subscription is set if the subject is a subscription; Partner and Endpoint are then its.
	Subscription uuid.NullUUID `db:"subscription_uid"`
	Partner      string        `db:"partner_name"`
	subscription.Endpoint
	Severity Severity `db:"severity"`
	// Detail says in plain words what was last found.
	Detail string `db:"detail"`
	// Count is how often the cause was found, or the number of things affected.
	Count      int       `db:"count"`
	OpenedAt   time.Time `db:"opened_at"`
	LastSeenAt time.Time `db:"last_seen_at"`
	// Owner is the e-mail address of the person who took it, empty if nobody did.
	Owner        string     `db:"owner"`
	SnoozedUntil *time.Time `db:"snoozed_until"`
	// ClosedAt is nil while the item is open; ClosedBy is a person or BySystem.
	ClosedAt *time.Time `db:"closed_at"`
	ClosedBy string     `db:"closed_by"`
	Note     string     `db:"note"`
}

// Seen identifies the state that resolving the item closes for good. It is empty for kinds that
// open again as long as the cause lasts, where resolving cannot hide anything.
func (i Item) Seen() string {
	switch i.Kind {
	case KindUsedUp, KindUnknown:
		return strconv.Itoa(i.Count)
	case KindDrawOverdue, KindUndecided, KindMailFailed:
		return strconv.Itoa(i.Count) + "; " + i.Detail
	case KindFailing, KindCertificate, KindProbe, KindOverdue, KindNeverSucceeded, KindUnopened,
		KindMailRefused:
	}
	return ""
}

// Snoozed reports whether the item is snoozed at a time.
func (i Item) Snoozed(now time.Time) bool {
	return i.ClosedAt == nil && i.SnoozedUntil != nil && i.SnoozedUntil.After(now)
}
