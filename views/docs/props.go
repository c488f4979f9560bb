// Package docsview renders the partner documentation as HTML. It receives complete values
// from web/docs and reads no data itself.
package docsview

import (
	"cmp"
	"strings"
)

// breakable splits a name into parts between which a line may break: after the characters
// of joints, and before each capital of a camelCase name. URLs are not split.
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

// joints are the characters after which a name may break; browsers break after hyphens by
// themselves.
const joints = "._/="

// Page is the frame around every page.
type Page struct {
	// Title is the page's title; the site's name is appended to it.
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
	// Lender means that the page is for the lender's own systems.
	Lender bool
	// Query is the search text.
	Query string
	// Environment is shown beside the name, for example "development".
	Environment string
}

// Hit is a section that a search found.
type Hit struct {
	Link

	// Page is the title of its page, Excerpt the text around the match.
	Page, Excerpt string
}

// Link is a label and an address.
type Link struct{ Href, Label string }

// Entry is one line of the contents. Method is a badge, empty for a heading.
type Entry struct {
	ID, Label, Method string
}

// Code is a listing.
type Code struct{ Title, Lang, Text string }

// label is a listing's title, or else its language.
func (c Code) label() string { return cmp.Or(c.Title, c.kind()) }

// kind is the language of a listing.
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
	// Operations are those that list the code, other than the codes that all operations share.
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

// Step is one step of the quick start, as printed.
type Step struct {
	ID    string
	Title string
	// Text is Markdown.
	Text string
	// Run holds the commands, for bash.
	Run string
	// Expect lists texts that must appear in the commands' output.
	Expect []string
}

// Vector is one published signature test: Genuine is the result that a receiver must get.
type Vector struct {
	Name, Secret, Body string
	// Signatures are the values of x-hmac-signature and, if there are two, of
	// x-hmac-signature-previous.
	Signatures []string
	Genuine    bool
}
