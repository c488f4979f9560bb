package views

import "strings"

// CopyProps is a copy button. With a Label it is a full button, else an icon
// whose name is "Copy" and What.
type CopyProps struct {
	Text  string
	What  string
	Label string
}

// EmptyProps is a screen with nothing on it. Href and Action are optional.
type EmptyProps struct {
	Icon   string
	Title  string
	Text   string
	Href   string
	Action string
}

// FieldProps is what every labelled control has.
type FieldProps struct {
	ID    string
	Label string
	Hint  string
	// Fault says what is wrong and how to mend it; empty when nothing is.
	Fault string
}

// describedBy lists the ids of the hint and the fault.
func (p FieldProps) describedBy() string {
	var ids []string
	if p.Fault != "" {
		ids = append(ids, p.ID+"-fault")
	}
	if p.Hint != "" {
		ids = append(ids, p.ID+"-hint")
	}
	return strings.Join(ids, " ")
}

// InputProps is a one-line control.
type InputProps struct {
	FieldProps
	Name  string
	Value string
	// Type is the HTML input type, "text" when empty.
	Type         string
	Autocomplete string
	Placeholder  string
	Step         string
	MaxLength    int
	Required     bool
	Autofocus    bool
}

func (p InputProps) inputType() string {
	if p.Type == "" {
		return "text"
	}
	return p.Type
}

// SelectProps is a list to choose one value from.
type SelectProps struct {
	FieldProps
	Name    string
	Value   string
	Options []Option
}

// Option is one choice of a select.
type Option struct {
	Value string
	Label string
}

// alertRole announces faults at once and leaves the rest to be read in turn.
func alertRole(tone Tone) string {
	if tone == Bad {
		return "alert"
	}
	return "status"
}
