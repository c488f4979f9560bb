package ui

import (
	"cmp"
	"slices"
	"strings"
)

// Confirmation is a form that asks before a change: what will happen, what speaks against
// it, and what the user must enter. It is shown on a page of its own or, if a script opens
// it, in a dialog.
type Confirmation struct {
	// Title is a question or an action: "Revoke this client".
	Title string
	// About names what the change acts on.
	About string
	// Effects describe what will happen, one paragraph each; Risks what speaks against it.
	Effects []string
	Risks   []string
	// Error says why nothing was done, if no field is wrong.
	Error string
	// Controls are the fields, in order.
	Controls []Control
	// Hidden are the hidden fields, in order.
	Hidden []HiddenField
	// Action is where the form is sent, Cancel the page to return to without sending it.
	Action, Cancel string
	// Submit is the verb on the button; Danger marks an irreversible change.
	Submit string
	Danger bool
	// NoReason omits the field for a reason; Reason is what was typed there.
	NoReason bool
	Reason   string
	// MustReason makes the reason required.
	MustReason bool
	// Proof means that the user must have re-authenticated recently.
	Proof bool
	// Wide gives a form with many fields more room.
	Wide bool
	// Preview is where the form is sent to be previewed without changing anything,
	// PreviewLabel the label of that button; empty if there is no preview.
	Preview, PreviewLabel string
}

// HiddenField is a value that a form sends along.
type HiddenField struct{ Name, Value string }

// ControlKind is a kind of control.
type ControlKind string

// The kinds of controls. ControlText is the zero one.
const (
	ControlText   ControlKind = ""
	ControlArea   ControlKind = "area"
	ControlSelect ControlKind = "select"
	// ControlChecks are checkboxes of which any number may be ticked.
	ControlChecks ControlKind = "checks"
	// ControlCheck is one checkbox.
	ControlCheck ControlKind = "check"
	// ControlHeading starts a group of controls.
	ControlHeading ControlKind = "heading"
)

// Control is a field of a form.
type Control struct {
	Kind              ControlKind
	Name, Label, Hint string
	// ID is its element id, by default its name.
	ID string
	// Thing names the field within a sentence, by default its label.
	Thing string
	Value string
	// Values are the ticked ones of ControlChecks.
	Values []string
	// Error says what is wrong and how to fix it; empty if nothing is wrong.
	Error   string
	Options []Option
	// Pick searches for more options on the server, nil if Options are all.
	Pick *Picker
	// Type is the HTML input type, by default "text".
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

// Asked returns the control for a Confirmation, with ids other than those of the page behind it.
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

// Wrong lists the wrong fields in the order of the form; before is the prefix that turns a
// field's name into its address on the page.
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
