package ui

import (
	"net/url"
	"regexp"
	"strings"

	"drawbridge/views/paths"
)

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

// headerName matches the name of one of our headers, or its beginning.
var headerName = regexp.MustCompile(`\bx-[a-z]+(-[a-z]*)*`)

// sentencePart is a part of a sentence: the name of a header, or words.
type sentencePart struct {
	text   string
	header bool
}

// splitHeaders parts the names of headers from the words around them.
func splitHeaders(sentence string) []sentencePart {
	var parts []sentencePart
	from := 0
	for _, at := range headerName.FindAllStringIndex(sentence, -1) {
		if at[0] > from {
			parts = append(parts, sentencePart{text: sentence[from:at[0]]})
		}
		parts = append(parts, sentencePart{sentence[at[0]:at[1]], true})
		from = at[1]
	}
	if from < len(sentence) {
		parts = append(parts, sentencePart{text: sentence[from:]})
	}
	return parts
}

// FieldProps is what every labelled control has.
type FieldProps struct {
	ID    string
	Label string
	Hint  string
	// Error says what is wrong and how to fix it; empty when nothing is.
	Error string
}

// describedBy lists the ids of the hint and the error.
func (p FieldProps) describedBy() string {
	var ids []string
	if p.Error != "" {
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

// SelectProps is a list to choose one value from.
type SelectProps struct {
	FieldProps
	Name    string
	Value   string
	Options []Option
	// Pick lets the reader look for others than the options, nil when these are all.
	Pick *Picker
}

// SoughtSuffix ends the name of the field in which a picker's text is typed.
const SoughtSuffix = "_q"

// Picker looks on the server for what a list has no room for.
type Picker struct {
	// Kind is what can be chosen, None what stands for nothing chosen, Owner whose things
	// are offered, empty for everybody's.
	Kind, None, Owner string
	// Several tells that any number can be ticked.
	Several bool
	// Text is what the names of the options hold; Shown of Total are offered.
	Text         string
	Shown, Total int
}

// Summary says how much of everything is offered.
func (p Picker) Summary() string {
	if p.Shown == p.Total {
		return Plural(p.Total, "match", "matches")
	}
	return Number(p.Shown) + " of " + Number(p.Total) + ": type a part of the name"
}

// target is the element that the answer fills: the list, or what holds the boxes to tick.
func (p Picker) target(field FieldProps) string {
	if p.Several {
		return field.ID + "-offered"
	}
	return field.ID
}

func (p Picker) href(field string) string {
	query := url.Values{"field": {field}}
	if p.None != "" {
		query.Set("none", p.None)
	}
	if p.Several {
		query.Set("several", "1")
		query.Set("owner", p.Owner)
	}
	return paths.With(strings.Replace(paths.Pick, ":kind", p.Kind, 1), query)
}

// Option is one choice of a select.
type Option struct {
	Value string
	Label string
}

// alertRole announces errors at once and leaves the rest to be read in turn.
func alertRole(tone Tone) string {
	if tone == Bad {
		return "alert"
	}
	return "status"
}

// TextareaProps is a control of several lines.
type TextareaProps struct {
	FieldProps
	Name      string
	Value     string
	Rows      int
	MaxLength int
}

// Tile is one number and where it leads.
type Tile struct {
	Label string
	Value string
	Note  string
	Icon  string
	Tone  Tone
	Href  string
}

// AuthChoice is one authentication scheme to choose.
type AuthChoice struct {
	Value, Title, Text string
}
