package subscription

import (
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/lib/pq"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
	"drawbridge/internal/secret"
	"drawbridge/internal/webhook/sender"
)

// AllEvents in a subscription's events means that it wants every kind of the
// specification.
const AllEvents = lending.AllEvents

// State of a subscription.
type State string

// The states of a subscription. A failing one is still sent to.
const (
	StateActive  State = "active"
	StateFailing State = "failing"
	StatePaused  State = "paused"
	StateDeleted State = "deleted"
)

// The descriptions, in versions, of state changes that health makes and no state name describes.
const (
	ChangeRecovered          = "recovered"
	ChangePausedAfterFailing = "paused after failing"
)

// Subscription is an endpoint of a partner and the settings for sending to it.
type Subscription struct {
	UID        uuid.UUID   `db:"subscription_uid"`
	PartnerUID uuid.UUID   `db:"partner_uid"`
	URL        string      `db:"url"`
	Auth       sender.Auth `db:"auth"`
	// Events holds kinds, or AllEvents and kinds that must be named to be chosen.
	Events pq.StringArray `db:"events"`
	// Merchants limits the subscription to some of the partner's merchants;
	// empty means all.
	Merchants postgres.UIDs   `db:"merchant_uids"`
	Headers   []sender.Header `db:"-"`
	// Unopened says why nothing can be sent, and what to do: the secret or the headers
	// cannot be decrypted. Usually empty.
	Unopened string `db:"-"`
	// StoppedAt is since when nothing is sent because a process could not decrypt the secret
	// or the headers; usually nil. If this process can decrypt them, see OtherKeys.
	StoppedAt *time.Time `db:"stopped_at"`
	// MissingKey is the id of the key that this server lacks, if that is the reason.
	MissingKey string `db:"-"`
	// HeadersUnknown means that the headers cannot be decrypted: Headers is empty then.
	HeadersUnknown bool `db:"-"`
	// Rate is the most requests per second it gets; 0 is no limit.
	Rate int `db:"rate"`
	// Watch holds its health rules.
	Watch Watch `db:"watch"`
	Options
	State State `db:"state"`
	// Version counts the versions of the configuration, from 1.
	Version int `db:"version"`
	// PreviousUntil is when the overlap of a rotated signing secret ends.
	PreviousUntil *time.Time `db:"previous_until"`
	CreatedAt     time.Time  `db:"created_at"`
	UpdatedAt     time.Time  `db:"updated_at"`
}

// OtherKeys says that nothing is sent although this process can decrypt everything, and
// what to do; usually empty. It is also set for up to a minute after a key came back.
func (s Subscription) OtherKeys() string {
	if s.StoppedAt == nil || s.Unopened != "" || s.State == StateDeleted {
		return ""
	}
	return "Stopped since " + s.StoppedAt.UTC().Format(time.RFC3339) + ": a process has another " +
		"DRAWBRIDGE_SECRETS_KEY. What is stored does not open there, and does here. Give every process " +
		"the same keys and restart it; then it goes on within a minute."
}

// CheckHeaders returns INVALID_STATE if the headers are unknown, so that nobody mistakes
// them for none and loses them.
func (s Subscription) CheckHeaders() error {
	if !s.HeadersUnknown {
		return nil
	}
	return lending.NewError(lending.CodeInvalidState,
		"%s The stored custom headers cannot be read: set all of them again.", s.Unopened)
}

// Settings are the parts of a subscription that an operator chooses.
type Settings struct {
	URL       string
	Auth      sender.Auth
	Secret    secret.String
	Events    []string
	Merchants []uuid.UUID
	Headers   []sender.Header
	// Rate is in requests per second, from 1 to MaxRate; 0 is no limit.
	Rate int
	// Watch holds its health rules. The caller must have checked that its address is an
	// e-mail address.
	Watch Watch
	Options
}

// Patch changes some settings; nil fields stay as they are.
type Patch struct {
	URL       *string
	Auth      *sender.Auth
	Secret    *secret.String
	Events    []string
	Merchants []uuid.UUID
	// Headers replaces the whole set; a pointer to an empty slice empties it. A header
	// marked Kept gets the value that is stored under its name.
	Headers *[]sender.Header
	// Rate is in requests per second; 0 removes the limit.
	Rate *int
	// Watch replaces its health rules.
	Watch *Watch
	// Name, Retry and Standard replace options.
	Name     *string
	Retry    *Delays
	Standard *bool
	// Overlap is how long the previous signing secret still signs alongside the new one.
	Overlap time.Duration
	// Base is the version that the change was based on; a configuration that somebody else
	// changed since is not overwritten. 0 skips this check.
	Base int
	// Reason is stored with the version; it may be empty.
	Reason string

	// keepSecret keeps the current secret under another scheme.
	keepSecret bool
	// stored are the headers that Kept ones are taken from; nil means the current ones.
	stored []sender.Header
}

// Endpoint identifies a subscription to people, wherever a row mentions one.
type Endpoint struct {
	// SubscriptionName is the name that operators gave it; may be empty.
	SubscriptionName string `db:"subscription_name"`
	URL              string `db:"url"`
}

// EndpointColumns select an Endpoint from the subscriptions s.
const EndpointColumns = `s.name AS subscription_name, s.url`

// Label names the subscription: "Ledger (hooks.example.com/ledger)".
func (e Endpoint) Label() string { return Options{Name: e.SubscriptionName}.Label(e.URL) }

// Where returns its host and path.
func (e Endpoint) Where() string { return Options{}.Label(e.URL) }

// Endpoint returns the fields that identify the subscription in a row.
func (s Subscription) Endpoint() Endpoint { return Endpoint{s.Name, s.URL} }

// Label names the subscription for display.
func (s Subscription) Label() string { return s.Options.Label(s.URL) }

// Wants reports whether the subscription chose events of the kind.
func (s Subscription) Wants(kind lending.EventKind) bool {
	return slices.ContainsFunc(kind.Choices(), func(choice string) bool {
		return slices.Contains(s.Events, choice)
	})
}

// checkEvents adds an error for each event that is not a kind.
func checkEvents(errs *lending.FieldErrors, events []string) {
	if len(events) == 0 {
		errs.Add("event", `"event" is required: give an event kind, or all`)
		return
	}
	for _, event := range events {
		kind := lending.EventKind(event)
		switch {
		case event == AllEvents:
		case slices.Contains(events, AllEvents) && kind.IsKnown() && !kind.IsOptIn():
			errs.Add("event", `"event" must be all or a list of kinds, not both; `+
				`only %s and %s may be added to all`,
				lending.EventFundingCancelled, lending.EventFundingReturned)
		case !kind.IsKnown():
			errs.Add("event", `"event" %.60s is not an event kind; the kinds are %s`,
				event, lending.JoinNames(lending.AllEventKinds()))
		}
	}
}

// Audited returns the subscription as written to the audit log: without secrets.
func (s Subscription) Audited() map[string]any {
	headers := []string{}
	for _, header := range s.Headers {
		headers = append(headers, header.String())
	}
	return map[string]any{
		"partner_uid": s.PartnerUID, "url": s.URL, "auth": s.Auth, "events": s.Events,
		"merchants": s.Merchants, "headers": headers, "rate": s.Rate,
		"pause_when_failing": s.Watch.Pause, "alert_email": s.Watch.AlertEmail,
		"name": s.Name, "retry": s.Retry.Texts(), "standard": s.Standard,
		"state": s.State, "version": s.Version,
	}
}
