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

// Form is the form that makes or changes a subscription, as it was
// loaded or typed, with an error for each field that is wrong.
type Form struct {
	// UID is the subscription that is changed; empty for a new one.
	UID string
	// Version is what the change is based on, 0 for a new one.
	Version int
	// Partner is the partner's id, PartnerName its name where it is fixed.
	Partner     string
	PartnerName string
	Partners    []ui.Option
	PartnerPick *ui.Picker
	// PartnerSought is the part of a partner's name that was looked for.
	PartnerSought string
	URL           string
	// AllMerchants covers every merchant; else the Merchants that are chosen.
	AllMerchants bool
	Merchants    []Choice
	// Unshown are chosen merchants that the form has no room for; saving it keeps them.
	Unshown []uuid.UUID
	// MerchantPick looks for others than are listed, nil when these are all.
	MerchantPick   *ui.Picker
	MerchantSought string
	// Loaded tells that the form is as the subscription fills it.
	Loaded bool
	// AllEvents sends every kind; else the Events that are chosen.
	AllEvents bool
	Events    []EventChoice
	// Auth is "none", "hmac" or "bearer".
	Auth string
	// SecretMode is "generate", "paste" or, where there is one, "keep".
	SecretMode string
	// StoredAuth is the scheme whose secret can be kept; empty for none.
	StoredAuth string
	// Secret is what was typed a moment ago; one that is stored never stands here.
	Secret  string
	Headers []HeaderField
	// HeadersUnknown tells that those in force do not open: they are not shown, and
	// replaced only with ReplaceHeaders.
	HeadersUnknown bool
	ReplaceHeaders bool
	// Name is what people call it; may be empty.
	Name string
	// Retry are its own delays, such as "5m,2h"; empty for those of all.
	Retry string
	// Standard adds the signature of Standard Webhooks.
	Standard bool
	// Rate is in requests a second; empty for no limit.
	Rate string
	// PauseWhenFailing pauses the subscription when it is failing.
	PauseWhenFailing bool
	// AlertEmail hears when it starts or stops failing; empty for nobody.
	AlertEmail string
	Reason     string
	// TestEvent is the kind of the test before saving.
	TestEvent string
	// Check is what is known of the URL, nil before it was looked at.
	Check []CheckItem
	// Trial is the result of the test before saving, nil for none.
	Trial *Trial
	// Conflict tells what somebody else changed meanwhile, nil for nothing.
	Conflict *Conflict
	// Timeout is how long an endpoint has to answer.
	Timeout time.Duration
	// Focus is the id of the control to go on with; empty for the browser's choice.
	Focus  string
	Errors map[string]string
	// ErrorOrder lists the wrong fields from the top of the form down.
	ErrorOrder []string
}

// Choice is one box to tick.
type Choice struct {
	Value   string
	Label   string
	Checked bool
	// Stored tells that the subscription has it so far.
	Stored bool
}

// EventChoice is an event kind to tick.
type EventChoice struct {
	Kind lending.EventKind
	// Sample is a payload as it is sent.
	Sample  []byte
	Checked bool
}

// HeaderField is one row of the header editor.
type HeaderField struct {
	// Key tells the row from its neighbours while rows come and go.
	Key  int
	Name string
	// Value is empty where the stored one is kept and not shown.
	Value string
	// Kept tells that an empty value leaves the stored one as it is.
	Kept bool
	// Plain tells that the value may be read; a secret one is write-only.
	Plain bool
	// Note says what becomes of this header although it is right; may be empty.
	Note string
}

// HeaderPlain is the kind of a header whose value may be read.
const HeaderPlain = "plain"

// Trial is a test event that was sent with settings that are not saved.
type Trial struct {
	// Secret was made up for this test and stands in the form now, so that saving keeps it;
	// empty where there was one.
	Secret    string
	Event     string
	Attempt   ui.AttemptView
	Body      []byte
	Diagnosis ui.Diagnosis
}

// Conflict is what happened to a subscription while its form was open.
type Conflict struct {
	// Versions tell who changed it and when, oldest first.
	Versions []subscription.Version
	Changes  []ConflictChange
}

// ConflictChange is one setting in three states.
type ConflictChange struct {
	Setting string
	// Base is what the form began with, Theirs what is in force now, Yours what
	// was typed. Yours is empty where only they changed it.
	Base, Theirs, Yours string
}

// IsNew tells whether the form makes a subscription.
func (f Form) IsNew() bool { return f.UID == "" }

// action is where the form is sent.
func (f Form) action() string {
	return ui.If(f.IsNew(), paths.SubscriptionNew, paths.To(paths.SubscriptionEdit, f.UID))
}

// field is a control of the form with what is wrong.
func (f Form) field(c ui.Control) ui.Control {
	c.Error = f.Errors[c.Name]
	return c
}

// described lists the ids that describe a control: its error, then what else.
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

// SecretWord is what the scheme's secret is called.
func SecretWord(auth string) string { return ui.If(auth == "bearer", "token", "signing secret") }

// SecretRule tells what a secret that is given by hand may be.
func SecretRule(auth string) string {
	return ui.If(auth == "bearer", "16 to 256 visible ASCII characters without spaces.",
		"16 to 256 bytes of text.")
}

// eventOptions are the kinds a test can have.
func (f Form) eventOptions() []ui.Option {
	var options []ui.Option
	for _, event := range f.Events {
		options = append(options, ui.EventOption(event.Kind))
	}
	return options
}
