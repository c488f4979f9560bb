package email

import (
	"database/sql/driver"
	"encoding/json"
	"strings"
	"time"
	"unicode"

	"github.com/google/uuid"

	"drawbridge/internal/lending"
)

// Kind is the kind of a mail.
type Kind string

// The kinds of mail. The first three go to borrowers, the last to partners, the others to
// operators.
const (
	KindWelcome               Kind = "welcome"
	KindStipulation           Kind = "stipulation"
	KindTask                  Kind = "task"
	KindSubscriptionFailing   Kind = "subscription_failing"
	KindSubscriptionRecovered Kind = "subscription_recovered"
	KindAttemptsUsedUp        Kind = "attempts_used_up"
	KindDrawsOverdue          Kind = "draws_overdue"
	KindUndecided             Kind = "applications_undecided"
	KindDeliveriesFailed      Kind = "deliveries_failed"
)

// ToBorrower reports whether mails of the kind go to borrowers.
func (k Kind) ToBorrower() bool { return k == KindWelcome || k == KindStipulation || k == KindTask }

// Kinds lists every kind once, in the order of the console's filter.
func Kinds() []Kind {
	return []Kind{
		KindWelcome, KindStipulation, KindTask,
		KindSubscriptionFailing, KindSubscriptionRecovered, KindAttemptsUsedUp,
		KindDrawsOverdue, KindUndecided, KindDeliveriesFailed,
	}
}

// The names of Message.Params. A mail omits what is missing.
const (
	ParamFirstName      = "first_name"
	ParamProjectName    = "project_name"
	ParamMerchantName   = "merchant_name"
	ParamProductName    = "product_name"
	ParamApprovedAmount = "approved_amount" // decimal, "12000.00"
	ParamTerm           = "term"            // months
	ParamInterestRate   = "interest_rate"   // percent a year

	ParamStatus    = "status"     // the application status that a stipulation is about
	ParamTaskTitle = "task_title" // the task that was created

	ParamPartnerName     = "partner_name"
	ParamSubscriptionUID = "subscription_uid"
	ParamURL             = "url"           // the endpoint of the subscription
	ParamSince           = "since"         // RFC 3339: since when it fails, or failed
	ParamRecoverSince    = "recover_since" // RFC 3339, where a recovery cannot go back to since
	ParamFailures        = "failures"      // how many attempts failed since then
	ParamLastError       = "last_error"
	ParamPaused          = "paused" // "true" when the subscription paused itself
	ParamDeliveryUID     = "delivery_uid"

	ParamCount          = "count"           // of draws or applications
	ParamDay            = "day"             // since which draws are overdue, or notice is due
	ParamDraws          = "draws"           // their numbers
	ParamEvent          = "event"           // the event kind of the delivery
	ParamApplicationUID = "application_uid" // whose event it was
	ParamSubscription   = "subscription"    // the name of the subscription
	ParamDeleted        = "deleted"         // "true" when the subscription was deleted
	ParamKinds          = "kinds"           // a line for each kind of event: "task.created: 3"
)

// State is the state of a mail.
type State string

// The states of a mail. Only StateQueued is not final.
const (
	StateQueued     State = "queued"
	StateSent       State = "sent"
	StateFailed     State = "failed"
	StateSuppressed State = "suppressed"
	StateNotSent    State = "not_sent"
	StateCaptured   State = "captured"
)

// States lists every state once, in the order of the console's filter.
func States() []State {
	return []State{
		StateQueued, StateSent, StateFailed, StateSuppressed, StateNotSent, StateCaptured,
	}
}

// Message requests one mail.
type Message struct {
	Kind Kind
	// ApplicationUID is the application that the mail is about; zero for alerts.
	ApplicationUID uuid.UUID
	// ToName may hold any text and may be empty.
	ToName string
	// ToAddress must pass CheckAddress.
	ToAddress string
	// Paused keeps the mail from ever being sent (specification section 3.2).
	Paused bool
	Params Facts
}

// Facts are the values that a mail is rendered from, by the Param names.
type Facts map[string]string

// Value returns the facts as stored in the database: never null, so that reading them back needs no
// special case.
func (f Facts) Value() (driver.Value, error) {
	storable := make(map[string]string, len(f))
	for name, value := range f {
		storable[name] = strings.ReplaceAll(value, "\x00", "") // jsonb holds no NUL
	}
	return json.Marshal(storable)
}

// Scan reads what Value has written.
func (f *Facts) Scan(stored any) error {
	text, _ := stored.([]byte)
	return json.Unmarshal(text, f)
}

// Content is a rendered mail.
type Content struct {
	Subject string
	HTML    string
	Text    string
}

// Draft is the input for rendering a mail.
type Draft struct {
	ApplicationUID uuid.UUID
	Kind           Kind
	Params         Facts
	Settings       Settings
}

// Email is one row of the log, without its bodies.
type Email struct {
	EmailUID       uuid.UUID     `db:"email_uid"`
	ApplicationUID uuid.NullUUID `db:"application_uid"`
	Kind           Kind          `db:"kind"`
	ToName         string        `db:"to_name"`
	ToAddress      string        `db:"to_address"`
	// Subject is empty until the mail was rendered.
	Subject string `db:"subject"`
	State   State  `db:"state"`
	// Reason says why the mail is not sent, in words for support staff.
	Reason string `db:"reason"`
	// OutcomeUnknown is true for a failed mail that may have arrived.
	OutcomeUnknown bool `db:"outcome_unknown"`
	AttemptCount   int  `db:"attempt_count"`
	// Refusals counts the attempts at which the server refused us, whatever the recipient: they do not
	// count as its tries.
	Refusals int `db:"refusals"`
	// WaitsFor is what a queued mail waits for in addition to its time.
	WaitsFor Wait `db:"waits_for"`
	// NextAttemptAt is set while the mail is queued.
	NextAttemptAt *time.Time `db:"next_attempt_at"`
	// ResendOf is the mail that this one re-sends.
	ResendOf     uuid.NullUUID `db:"resend_of"`
	ResentBy     string        `db:"resent_by"`
	ResendReason string        `db:"resend_reason"`
	// MadeGoodBy is the mail through which a failed one was sent after all.
	MadeGoodBy uuid.NullUUID `db:"made_good_by"`
	CreatedAt  time.Time     `db:"created_at"`
	FinishedAt *time.Time    `db:"finished_at"`
	// ContentRemovedAt is when retention removed the text, nil before.
	ContentRemovedAt *time.Time `db:"content_removed_at"`
}

// Tries counts the attempts that the mail has used up.
func (e Email) Tries() int { return e.AttemptCount - e.Refusals }

// MayHaveArrived reports that nobody knows whether the recipient has received the mail.
func (e Email) MayHaveArrived() bool {
	return e.OutcomeUnknown || e.State == StateNotSent && e.Reason == reasonRestored
}

// CheckResend returns why a mail cannot be sent again. Error: INVALID_STATE.
func (e Email) CheckResend() error {
	switch {
	case e.State == StateQueued:
		return lending.NewError(lending.CodeInvalidState,
			"This e-mail is still being sent; wait until that has ended to re-send it.")
	case e.State == StateSuppressed:
		return lending.NewError(lending.CodeInvalidState,
			"This e-mail was suppressed (%s) and is never sent.", e.Reason)
	case e.ContentRemovedAt != nil:
		return lending.NewError(lending.CodeInvalidState,
			"This e-mail cannot be re-sent: its text was removed on %s under the retention settings.",
			e.ContentRemovedAt.UTC().Format(time.DateOnly))
	}
	return nil
}

// Detail is a mail with all its data.
type Detail struct {
	Email
	// Params are the facts that the mail is, or would be, rendered from.
	Params Facts `db:"params"`
	// HTML and Text are empty until the mail was rendered.
	HTML string `db:"html_body"`
	Text string `db:"text_body"`
	// Source is the whole message as transmitted, an .eml file.
	Source     string     `db:"source"`
	MessageID  string     `db:"message_id"`
	RenderedAt *time.Time `db:"rendered_at"`
	Attempts   []Attempt
	// Resends are the mails that re-sent this one, oldest first.
	Resends []Email
}

// Headers returns the header block as transmitted.
func (d Detail) Headers() string {
	head, _, _ := strings.Cut(d.Source, "\r\n\r\n")
	return head
}

// maxName is the longest recipient name, in characters.
const maxName = 200

// cleanName makes a name fit for a header: control characters, including line breaks, become
// spaces. Everything else stays as the borrower wrote it.
func cleanName(name string) string {
	cleaned := strings.Join(strings.FieldsFunc(strings.ToValidUTF8(name, "\uFFFD"), isSpace), " ")
	if runes := []rune(cleaned); len(runes) > maxName {
		cleaned = string(runes[:maxName])
	}
	return cleaned
}

func isSpace(r rune) bool { return unicode.IsControl(r) || unicode.IsSpace(r) }
