package subscriptions

import (
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/lending"
	"drawbridge/internal/webhook/subscription"
	"drawbridge/views/paths"
	"drawbridge/views/ui"
)

// Form is the form that creates or changes a subscription, as loaded or typed, with the
// error of each wrong field.
type Form struct {
	// UID is the subscription being changed; empty for a new one.
	UID string
	// Version is the version that the change is based on, 0 for a new subscription.
	Version int
	// Partner is the partner's id, PartnerName its name if it is fixed.
	Partner     string
	PartnerName string
	Partners    []ui.Option
	PartnerPick *ui.Picker
	// PartnerSought is the search text for a partner.
	PartnerSought string
	URL           string
	// AllMerchants covers all merchants, otherwise the ticked Merchants.
	AllMerchants bool
	Merchants    []Choice
	// Unshown are selected merchants that the form has no room for; saving keeps them.
	Unshown []uuid.UUID
	// MerchantPick searches for merchants that are not listed, nil if all are.
	MerchantPick   *ui.Picker
	MerchantSought string
	// Loaded means that the form shows the subscription's own settings.
	Loaded bool
	// AllEvents sends all kinds, otherwise the ticked Events.
	AllEvents bool
	Events    []EventChoice
	// Auth is "none", "hmac" or "bearer".
	Auth string
	// SecretMode is "generate", "paste" or, if there is a secret, "keep".
	SecretMode string
	// StoredAuth is the scheme whose secret can be kept; empty if there is none.
	StoredAuth string
	// Secret is what was just typed, never the stored secret.
	Secret  string
	Headers []HeaderField
	// HeadersUnknown means that the headers in force cannot be decrypted: they are not shown,
	// and replaced only with ReplaceHeaders.
	HeadersUnknown bool
	ReplaceHeaders bool
	// Name is the subscription's name; may be empty.
	Name string
	// Retry is the subscription's own retry delays, such as "5m,2h"; empty for the default ones.
	Retry string
	// Standard adds the Standard Webhooks signature.
	Standard bool
	// Rate is in requests per second; empty for no limit.
	Rate string
	// PauseWhenFailing pauses the subscription when it is failing.
	PauseWhenFailing bool
	// AlertEmail is notified when it starts or stops failing; empty for nobody.
	AlertEmail string
	Reason     string
	// TestEvent is the event kind of the test before saving.
	TestEvent string
	// Check is the result of checking the URL, nil before the check.
	Check []CheckItem
	// Trial is the result of the test before saving, nil if there was none.
	Trial *Trial
	// Conflict describes what somebody else changed meanwhile, nil if nothing.
	Conflict *Conflict
	// Timeout is how long an endpoint has to answer.
	Timeout time.Duration
	// Focus is the id of the control to focus; empty leaves it to the browser.
	Focus  string
	Errors map[string]string
	// ErrorOrder lists the wrong fields from top to bottom.
	ErrorOrder []string
}

// Choice is one checkbox.
type Choice struct {
	Value   string
	Label   string
	Checked bool
	// Stored means that the saved subscription has it.
	Stored bool
}

// EventChoice is the checkbox of an event kind.
type EventChoice struct {
	Kind lending.EventKind
	// Sample is an example payload.
	Sample  []byte
	Checked bool
}

// HeaderField is one row of the header editor.
type HeaderField struct {
	// Key identifies the row while other rows are added and removed.
	Key  int
	Name string
	// Value is empty if the stored value is kept and not shown.
	Value string
	// Kept means that an empty value keeps the stored one.
	Kept bool
	// Plain means that the value may be read; a secret one is write-only.
	Plain bool
	// Note says how this valid header will be treated; may be empty.
	Note string
}

// HeaderPlain is the kind of a header whose value may be read.
const HeaderPlain = "plain"

// Trial is a test event that was sent with unsaved settings.
type Trial struct {
	// Secret was generated for this test and is now in the form, so that saving keeps it;
	// empty if there already was a secret.
	Secret    string
	Event     string
	Attempt   ui.AttemptView
	Body      []byte
	Diagnosis ui.Diagnosis
}

// Conflict describes the changes to a subscription while its form was open.
type Conflict struct {
	// Versions say who changed it and when, oldest first.
	Versions []subscription.Version
	Changes  []ConflictChange
}

// ConflictChange is one setting in three versions.
type ConflictChange struct {
	Setting string
	// Base is the value that the form started with, Theirs the value in force, Yours the typed
	// value. Yours is empty if only they changed the setting.
	Base, Theirs, Yours string
}

// IsNew reports whether the form creates a subscription.
func (f Form) IsNew() bool { return f.UID == "" }

// action is the address that the form is sent to.
func (f Form) action() string {
	return ui.If(f.IsNew(), paths.SubscriptionNew, paths.To(paths.SubscriptionEdit, f.UID))
}

// field adds the error to a control of the form.
func (f Form) field(c ui.Control) ui.Control {
	c.Error = f.Errors[c.Name]
	return c
}

// described lists the ids that describe a control: its error, then also.
func (f Form) described(name string, also ...string) string {
	if f.Errors[name] != "" {
		also = append([]string{name + "-fault"}, also...)
	}
	return strings.Join(also, " ")
}

func (h HeaderField) id(part string) string { return fmt.Sprintf("header-%d-%s", h.Key, part) }

func authChoices() []ui.AuthChoice {
	return []ui.AuthChoice{
		{
			Value: "hmac", Title: "HMAC signature",
			Text: "Each request carries x-hmac-signature, the HMAC-SHA256 of its body by a shared secret. " +
				"Recommended: it proves origin and content.",
		},
		{
			Value: "bearer", Title: "Bearer token",
			Text: "Each request carries the token in the Authorization header. It proves the origin to " +
				"anyone who keeps it secret.",
		},
		{
			Value: "none", Title: "None",
			Text: "Nothing but custom headers, if any. Anybody who knows the address can send to it.",
		},
	}
}

// SecretWord is the scheme's name for its secret.
func SecretWord(auth string) string { return ui.If(auth == "bearer", "token", "signing secret") }

// SecretRule states the rule for a secret that the user enters.
func SecretRule(auth string) string {
	return ui.If(auth == "bearer", "16 to 256 visible ASCII characters without spaces.",
		"16 to 256 bytes of text.")
}

// eventOptions are the event kinds that a test can send.
func (f Form) eventOptions() []ui.Option {
	var options []ui.Option
	for _, event := range f.Events {
		options = append(options, ui.EventOption(event.Kind))
	}
	return options
}
