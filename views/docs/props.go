// Package docsview renders the partner documentation as HTML. It receives
// finished values from web/docs and looks nothing up.
package docsview

import (
	"cmp"
	"strings"
)

// breakable cuts a name into the parts between which a line may end: after the
// characters of joints, and before each capital of a name in camelCase. Whole
// addresses are left alone.
func breakable(name string) []string {
	if strings.Contains(name, "://") {
		return []string{name}
	}
	var parts []string
	from := 0
	for at := 1; at < len(name); at++ {
		before, here := name[at-1], name[at]
		if strings.IndexByte(joints, before) >= 0 ||
			'a' <= before && before <= 'z' && 'A' <= here && here <= 'Z' {
			parts = append(parts, name[from:at])
			from = at
		}
	}
	if from < len(name) {
		parts = append(parts, name[from:])
	}
	return parts
}

// joints are the characters after which a name may be broken; hyphens are by
// themselves.
const joints = "._/="

// Page is the frame around every page.
type Page struct {
	// Title names the page; the site's name is added to it.
	Title string
	// Lead is one sentence under the title, a line of Markdown.
	Lead string
	// Current is the path of this page in Menu.
	Current string
	// Assets are the addresses of the page's style sheet, scripts and mark by their plain names.
	// The script theme.js runs before the first paint.
	Assets map[string]string
	Menu   []Link
	// Contents lists what is on this page, for the side navigation.
	Contents []Entry
	// Lender tells that it is a page for the lender's own systems.
	Lender bool
	// Query is what was searched for.
	Query string
	// Environment is shown beside the name, for example "development".
	Environment string
}

// Hit is a section that a search found.
type Hit struct {
	Link

	// Page is the title of its page, Excerpt what it says around the word.
	Page, Excerpt string
}

// Link is a name and where it leads.
type Link struct{ Href, Label string }

// Entry is one line of the contents. Method is a badge, empty for a heading.
type Entry struct {
	ID, Label, Method string
}

// Code is a listing.
type Code struct{ Title, Lang, Text string }

// label names a listing: by its title, or else by what it is written in.
func (c Code) label() string { return cmp.Or(c.Title, c.kind()) }

// kind says what a listing is written in.
func (c Code) kind() string {
	kinds := map[string]string{"bash": "Shell", "json": "JSON", "sql": "SQL", "text": "Text"}
	return cmp.Or(kinds[c.Lang], "Code")
}

// Field is a row of a field table.
type Field struct {
	Name, Type string
	Required   bool
	// Text is a line of Markdown.
	Text   string
	Values []string
}

// Group is a titled table of fields.
type Group struct {
	Title  string
	Fields []Field
}

// Operation is one operation of the reference.
type Operation struct {
	ID, Method, Path, Summary string
	Sandbox                   bool
	Prose                     string
	Parameters, Body, Answer  Group
	Requests, Answers         []Code
	Errors                    []ErrorCode
}

// Section is a group of operations.
type Section struct {
	ID, Title, Prose string
	Operations       []Operation
}

// ErrorCode is one entry of the closed list of specification section 7.
type ErrorCode struct {
	Code, Title string
	Status      int
	// Cause and Cure are lines of Markdown.
	Cause, Cure string
	// Operations are those that answer it beyond what every one may answer.
	Operations []Link `yaml:"-"`
}

// Event is one kind of webhook event.
type Event struct {
	Kind, Summary string
	// Cause and Tell are lines of Markdown, Prose is blocks of it.
	Cause, Tell string
	Prose       string
	Fields      []Field
	Samples     []Code
}

// Step is one step of the quick start, as it is printed.
type Step struct {
	ID    string
	Title string
	// Text is Markdown.
	Text string
	// Run holds the commands, for bash.
	Run string
	// Expect lists what the commands must print, each on some line.
	Expect []string
}

// Vector is one published signature test: a receiver must call it genuine, or
// not.
type Vector struct {
	Name, Secret, Body string
	// Signatures are the values of x-hmac-signature and, where there are two,
	// of x-hmac-signature-previous.
	Signatures []string
	Genuine    bool
}
