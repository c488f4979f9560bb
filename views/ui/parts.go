package ui

import (
	"net/url"
	"regexp"
	"strings"

	"drawbridge/views/paths"
)

// CopyProps is a copy button. With a Label it is a full button, otherwise an icon whose
// accessible name is "Copy" and What.
type CopyProps struct {
	Text  string
	What  string
	Label string
}

// EmptyProps are shown instead of content. Href and Action are optional.
type EmptyProps struct {
	Icon   string
	Title  string
	Text   string
	Href   string
	Action string
}

// headerName matches the name of one of our headers, or a prefix of it.
var headerName = regexp.MustCompile(`\bx-[a-z]+(-[a-z]*)*`)

// sentencePart is a part of a sentence: the name of a header, or words.
type sentencePart struct {
	text   string
	header bool
}

// splitHeaders separates header names from the other words of a sentence.
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

// SoughtSuffix is appended to a picker's name to name its search field.
const SoughtSuffix = "_q"

// Picker searches on the server for options that do not fit into a list.
type Picker struct {
	// Kind is the kind of the options, None the label for no selection, Owner the partner
	// whose things are offered, empty for all partners.
	Kind, None, Owner string
	// Several means that any number can be ticked.
	Several bool
	// Text is the search text; Shown of Total matches are offered.
	Text         string
	Shown, Total int
}

// Summary says how many of all options are offered.
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

// Tile is one number and its link.
type Tile struct {
	Label string
	Value string
	Note  string
	Icon  string
	Tone  Tone
	Href  string
}

// AuthChoice is one of several authentication schemes.
type AuthChoice struct {
	Value, Title, Text string
}
