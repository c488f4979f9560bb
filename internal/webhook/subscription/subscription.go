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

// AllEvents is what a subscription's events hold when it wants every kind of the
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

// How versions name changes of the state that health makes and that are named after none.
const (
	ChangeRecovered          = "recovered"
	ChangePausedAfterFailing = "paused after failing"
)

// Subscription is an endpoint of a partner and what is sent to it.
type Subscription struct {
	UID        uuid.UUID   `db:"subscription_uid"`
	PartnerUID uuid.UUID   `db:"partner_uid"`
	URL        string      `db:"url"`
	Auth       sender.Auth `db:"auth"`
	// Events holds kinds, or AllEvents and kinds that only a name chooses.
	Events pq.StringArray `db:"events"`
	// Merchants limits the subscription to some of the partner's merchants;
	// empty means all.
	Merchants postgres.UIDs   `db:"merchant_uids"`
	Headers   []sender.Header `db:"-"`
	// Unopened says why nothing can be sent, and what to do: the secret or the headers
	// do not open. Empty as a rule.
	Unopened string `db:"-"`
	// StoppedAt is since when nothing is sent because a process could not open the secret or the
	// headers; nil as a rule. Where this one can, see OtherKeys.
	StoppedAt *time.Time `db:"stopped_at"`
	// MissingKey is the id of the key that this server lacks, where that is the reason.
	MissingKey string `db:"-"`
	// HeadersUnknown tells that it is the headers that do not open: Headers is empty then.
	HeadersUnknown bool `db:"-"`
	// Rate is how many requests per second it gets at most; 0 is no limit.
	Rate int `db:"rate"`
	// Watch is what it says about its health.
	Watch Watch `db:"watch"`
	Options
	State State `db:"state"`
	// Version counts the changes of the configuration, from 1.
	Version int `db:"version"`
	// PreviousUntil is when the overlap of a rotated signing secret ends.
	PreviousUntil *time.Time `db:"previous_until"`
	CreatedAt     time.Time  `db:"created_at"`
	UpdatedAt     time.Time  `db:"updated_at"`
}

// OtherKeys says that nothing is sent although everything opens here, and what to do; empty as a
// rule. It is so, too, for a minute after a key came back.
func (s Subscription) OtherKeys() string {
	if s.StoppedAt == nil || s.Unopened != "" || s.State == StateDeleted {
		return ""
	}
	return "Stopped since " + s.StoppedAt.UTC().Format(time.RFC3339) + ": a process has another " +
		"DRAWBRIDGE_SECRETS_KEY. What is stored does not open there, and does here. Give every process " +
		"the same keys and restart it; then it goes on within a minute."
}

// CheckHeaders answers INVALID_STATE where the headers are unknown, so that nobody
// takes them for none and loses them.
func (s Subscription) CheckHeaders() error {
	if !s.HeadersUnknown {
		return nil
	}
	return lending.NewError(lending.CodeInvalidState,
		"%s What is stored of the custom headers is unknown: set all of them again.", s.Unopened)
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
	// Watch is what it says about its health. The address must have been checked to be
	// one of e-mail.
	Watch Watch
	Options
}

// Patch changes some settings; a nil field stays as it is.
type Patch struct {
	URL       *string
	Auth      *sender.Auth
	Secret    *secret.String
	Events    []string
	Merchants []uuid.UUID
	// Headers replaces the whole set; a pointer to an empty slice empties it. One that
	// is Kept has the value that is stored under its name.
	Headers *[]sender.Header
	// Rate is in requests per second; 0 takes the limit away.
	Rate *int
	// Watch replaces what it says about its health.
	Watch *Watch
	// Name, Retry and Standard replace options.
	Name     *string
	Retry    *Delays
	Standard *bool
	// Overlap is for how long the former signing secret is still sent beside
	// the new one.
	Overlap time.Duration
	// Base is the version that the change was made from; a configuration that
	// somebody else changed since is not overwritten. 0 changes whatever there is.
	Base int
	// Reason is kept with the version; it may be empty.
	Reason string

	// keepSecret leaves the secret in force under another scheme.
	keepSecret bool
	// stored are the headers that Kept ones are taken from; nil takes those in force.
	stored []sender.Header
}

// Endpoint is what tells a subscription apart for people, wherever a row mentions one.
type Endpoint struct {
	// SubscriptionName is what people call it; may be empty.
	SubscriptionName string `db:"subscription_name"`
	URL              string `db:"url"`
}

// EndpointColumns select an Endpoint from the subscriptions s.
const EndpointColumns = `s.name AS subscription_name, s.url`

// Label names the subscription: "Ledger (hooks.example.com/ledger)".
func (e Endpoint) Label() string { return Options{Name: e.SubscriptionName}.Label(e.URL) }

// Where is its host and path.
func (e Endpoint) Where() string { return Options{}.Label(e.URL) }

// Endpoint is what a row shows of it.
func (s Subscription) Endpoint() Endpoint { return Endpoint{s.Name, s.URL} }

// Label names the subscription to people.
func (s Subscription) Label() string { return s.Options.Label(s.URL) }

// Wants tells whether the subscription chose events of the kind.
func (s Subscription) Wants(kind lending.EventKind) bool {
	return slices.ContainsFunc(kind.Choices(), func(choice string) bool {
		return slices.Contains(s.Events, choice)
	})
}

// checkEvents adds an error for each event that is not a kind.
func checkEvents(errs *lending.FieldErrors, events []string) {
	if len(events) == 0 {
		errs.Add("event", `"event" is required: name a kind, or "all"`)
		return
	}
	for _, event := range events {
		kind := lending.EventKind(event)
		switch {
		case event == AllEvents:
		case slices.Contains(events, AllEvents) && kind.IsKnown() && !kind.IsOptIn():
			errs.Add("event", `"event" is either "all" or a list of kinds, not both; `+
				`only %s and %s stand beside "all"`,
				lending.EventFundingCancelled, lending.EventFundingReturned)
		case !kind.IsKnown():
			errs.Add("event", `"event" %.60s is not an event kind; the kinds are %s`,
				event, lending.JoinNames(lending.AllEventKinds()))
		}
	}
}

// Audited is how the audit log writes a subscription: without secrets.
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
