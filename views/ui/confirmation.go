package ui

import (
	"cmp"
	"slices"
	"strings"
)

// Confirmation is a form that asks before something is changed: what will happen,
// what speaks against it, and what must be said. It is shown on a page of its
// own, and in a dialog where a script opens it there.
type Confirmation struct {
	// Title is a question or an action: "Revoke this client".
	Title string
	// About says on whom or what it acts.
	About string
	// Effects tell what will happen, a paragraph each, Risks what speaks against it.
	Effects []string
	Risks   []string
	// Error says why nothing was done, where no field is to blame.
	Error string
	// Controls are the fields, in order.
	Controls []Control
	// Hidden are fixed values that are sent along, in order.
	Hidden []HiddenField
	// Action is where the form is sent, Cancel where it leads when it is not.
	Action, Cancel string
	// Submit is the verb on the button; Danger marks what cannot be undone.
	Submit string
	Danger bool
	// NoReason leaves out the field that asks for a reason; Reason is what was
	// typed there.
	NoReason bool
	Reason   string
	// MustReason tells that nothing is done without one.
	MustReason bool
	// Proof tells that who sends it must have shown a moment ago who they are.
	Proof bool
	// Wide gives a form of many fields more room.
	Wide bool
	// Preview is where the form is sent to be tried out without changing anything,
	// PreviewLabel the button's word; empty for no such thing.
	Preview, PreviewLabel string
}

// HiddenField is a value that a form sends along.
type HiddenField struct{ Name, Value string }

// ControlKind says how a control is filled in.
type ControlKind string

// The kinds of controls. ControlText is the zero one.
const (
	ControlText   ControlKind = ""
	ControlArea   ControlKind = "area"
	ControlSelect ControlKind = "select"
	// ControlChecks are boxes of which any number may be ticked.
	ControlChecks ControlKind = "checks"
	// ControlCheck is one box.
	ControlCheck ControlKind = "check"
	// ControlHeading begins a group of controls.
	ControlHeading ControlKind = "heading"
)

// Control is a field of a form.
type Control struct {
	Kind              ControlKind
	Name, Label, Hint string
	// ID is its element id, its name when empty.
	ID string
	// Thing is what a sentence calls the field, its label when empty.
	Thing string
	Value string
	// Values are the ticked ones of ControlChecks.
	Values []string
	// Error says what is wrong and how to fix it, empty when nothing is.
	Error   string
	Options []Option
	// Pick lets the reader look for others than the options, nil when these are all.
	Pick *Picker
	// Type is the HTML input type, "text" when empty.
	Type         string
	Autocomplete string
	Placeholder  string
	Step         string
	MaxLength    int
	Rows         int
	Required     bool
	Autofocus    bool
}

func (c Control) id() string { return cmp.Or(c.ID, c.Name) }

// Asked is the control within a Confirmation, whose ids differ from those of the page behind.
func (c Control) Asked() Control {
	c.ID = "ask-" + c.Name
	return c
}

// describedBy lists the ids of the error and the hint.
func (c Control) describedBy() string {
	var ids []string
	if c.Error != "" {
		ids = append(ids, c.id()+"-fault")
	}
	if c.Hint != "" {
		ids = append(ids, c.id()+"-hint")
	}
	return strings.Join(ids, " ")
}

func (c Control) chosen(value string) bool { return slices.Contains(c.Values, value) }

// Wrong lists the wrong fields in the order of the form; before leads from a field's name to
// where it is on the page.
func (f Confirmation) Wrong(before string) []FieldError {
	var found []FieldError
	for _, control := range f.Controls {
		if control.Error != "" {
			found = append(found, FieldError{before + control.Name, control.Error})
		}
	}
	return found
}

func (f Confirmation) errs() []FieldError { return f.Wrong("#ask-") }
