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
