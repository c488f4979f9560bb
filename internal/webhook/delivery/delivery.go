package delivery

import (
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
	"drawbridge/internal/webhook/sender"
	"drawbridge/internal/webhook/subscription"
)

// State is how far a delivery has come.
type State string

// The states of a delivery; the last three are final.
const (
	StatePending   State = "pending"
	StateRetrying  State = "retrying"
	StateDelivered State = "delivered"
	StateFailed    State = "failed"
	StateCancelled State = "cancelled"
)

// States lists every state in the order of a delivery's life.
func States() []State {
	return []State{StatePending, StateRetrying, StateDelivered, StateFailed, StateCancelled}
}

// IsFinal reports whether no attempt follows.
func (s State) IsFinal() bool {
	return s == StateDelivered || s == StateFailed || s == StateCancelled
}

// Delivery is one event on its way to one subscription.
type Delivery struct {
	UID             uuid.UUID `db:"delivery_uid"`
	CreatedAt       time.Time `db:"created_at"`
	SubscriptionUID uuid.UUID `db:"subscription_uid"`
	PartnerUID      uuid.UUID `db:"partner_uid"`
	PartnerName     string    `db:"partner_name"`
	subscription.Endpoint
	EventUID uuid.UUID         `db:"event_uid"`
	EventAt  time.Time         `db:"event_at"`
	Event    lending.EventKind `db:"event"`
	// ApplicationUID is the sample application on test events.
	ApplicationUID uuid.UUID  `db:"application_uid"`
	Status         string     `db:"status"`
	Test           bool       `db:"test"`
	State          State      `db:"state"`
	AttemptCount   int        `db:"attempt_count"`
	NextAttemptAt  *time.Time `db:"next_attempt_at"`
	// Parked means that the delivery fell due and waits for its subscription to resume.
	Parked bool `db:"parked"`
	// Paused means that its subscription is paused.
	Paused         bool       `db:"paused"`
	LastHTTPStatus *int       `db:"last_http_status"`
	LastErrorClass *string    `db:"last_error_class"`
	LastDurationUS *int64     `db:"last_duration_us"`
	FinishedAt     *time.Time `db:"finished_at"`
	ResendOf       *uuid.UUID `db:"resend_of"`
	ResentBy       *string    `db:"resent_by"`
	ResendReason   *string    `db:"resend_reason"`
	// MadeGoodBy is the first other delivery of the event to the subscription that
	// succeeded, before or after this one failed; nil unless it failed.
	MadeGoodBy *uuid.UUID `db:"made_good_by"`
	// Subject names the object whose state the event reports, such as disbursement/1425, and
	// LastURL is where the last attempt went. They are empty where not known or not loaded;
	// only ListNamed and Get load them.
	Subject string `db:"-"`
	LastURL string `db:"-"`
}

// Moved reports whether the subscription's URL differs from that of the last attempt.
func (d Delivery) Moved() bool { return d.LastURL != "" && d.LastURL != d.URL }

// SentTo is where the last attempt went or, before the first attempt, where it will go.
func (d Delivery) SentTo() subscription.Endpoint {
	if d.Moved() {
		d.URL = d.LastURL
	}
	return d.Endpoint
}

// Detail is a delivery with what was sent and what was received.
type Detail struct {
	Delivery
	// Body is empty once BodyRemovedAt is set.
	Body []byte
	// BodyRemovedAt is when retention removed the event's body, nil before.
	BodyRemovedAt *time.Time
	Attempts      []Attempt
	// Resends are the deliveries that re-sent this one, oldest first.
	Resends []uuid.UUID
}

// Attempt is one attempt as stored in the log.
type Attempt struct {
	Number int `db:"number"`
	// Fault is the fault injected on purpose, in a sandbox; empty for none.
	Fault               Fault             `db:"fault"`
	StartedAt           time.Time         `db:"started_at"`
	Duration            time.Duration     `db:"duration"`
	DNS                 time.Duration     `db:"dns"`
	Connect             time.Duration     `db:"connect"`
	TLS                 time.Duration     `db:"tls"`
	FirstByte           time.Duration     `db:"first_byte"`
	SubscriptionVersion int               `db:"subscription_version"`
	URL                 string            `db:"url"`
	HTTPStatus          int               `db:"http_status"`
	ErrorClass          sender.ErrorClass `db:"error_class"`
	// Cause is derived from Error where an earlier release stored none.
	Cause   sender.Cause `db:"cause"`
	Error   string       `db:"error"`
	Note    string       `db:"note"`
	Address string       `db:"address"`
	// Protocol is "HTTP/1.1" or "HTTP/2", empty without an answer.
	Protocol string `db:"protocol"`
	// Reused is whether the connection had carried an earlier request; nil when no request
	// left or it is not known.
	Reused *bool `db:"reused"`
	// TLSVersion is empty without TLS.
	TLSVersion string `db:"tls_version"`
	// CertificateExpires is when the endpoint's certificate expires, nil without TLS.
	CertificateExpires *time.Time `db:"certificate_expires"`
	// ContentRemovedAt is when retention removed headers and body, nil before.
	ContentRemovedAt *time.Time `db:"content_removed_at"`
	// RequestHeaders hold no secrets: secret values were masked.
	RequestHeaders  []sender.Header `db:"-"`
	ResponseHeaders []sender.Header `db:"-"`
	// ResponseBody holds the first 16 KiB.
	ResponseBody []byte `db:"response_body"`
}

// Place is the delivery's position in the list of deliveries.
func (d Delivery) Place() postgres.Cursor { return postgres.Cursor{At: d.CreatedAt, UID: d.UID} }

// Due is when the next attempt is due; zero if there is none, or while the delivery waits
// for its subscription.
func (d Delivery) Due() time.Time {
	if d.Parked || d.Paused {
		return time.Time{}
	}
	return postgres.OrZero(d.NextAttemptAt)
}

// LastStatus is the HTTP status of the last attempt, 0 if no answer came.
func (d Delivery) LastStatus() int { return postgres.OrZero(d.LastHTTPStatus) }

// LastError is the error class of the last attempt, empty if it had none.
func (d Delivery) LastError() sender.ErrorClass {
	return sender.ErrorClass(postgres.OrZero(d.LastErrorClass))
}

// Took is how long the last attempt lasted, 0 before there is one.
func (d Delivery) Took() time.Duration {
	return time.Duration(postgres.OrZero(d.LastDurationUS)) * time.Microsecond
}
