// Package docsview renders the partner documentation as HTML. It receives
// finished values from web/docs and looks nothing up.
package docsview

import (
	"strconv"
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
		if strings.IndexByte(joints, before) >= 0 || isLower(before) && isUpper(here) {
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

func isLower(c byte) bool { return 'a' <= c && c <= 'z' }

func isUpper(c byte) bool { return 'A' <= c && c <= 'Z' }

// Page is the frame around every page.
type Page struct {
	// Title names the page; the site's name is added to it.
	Title string
	// Lead is one sentence under the title, in Markdown's inline marks.
	Lead Text
	// Current is the path of this page in Menu.
	Current string
	// Stylesheet, Script and ThemeScript are the addresses of the page's assets.
	// ThemeScript runs before the first paint.
	Stylesheet, Script, ThemeScript string
	// Mark is the address of the product's mark.
	Mark string
	Menu []Link
	// Contents lists what is on this page, for the side navigation.
	Contents []Entry
	// Environment is shown beside the name, for example "development".
	Environment string
}

// Link is a name and where it leads.
type Link struct{ Href, Label string }

// Entry is one line of the contents. Method is a badge, empty for a heading.
type Entry struct {
	ID, Label, Method string
	Level             int
}

// Text is a run of inline elements.
type Text []Inline

// Inline is a piece of text: plain, code, strong or a link. Plain text and code
// have Text, strong text and links what is Inner to them.
type Inline struct {
	Kind  InlineKind
	Text  string
	Inner Text
	Href  string
}

// InlineKind says how an Inline is shown.
type InlineKind int

// The kinds of inline text.
const (
	Plain InlineKind = iota
	CodeText
	Strong
	Anchor
)

// Block is a piece of prose.
type Block struct {
	Kind  BlockKind
	Level int
	ID    string
	Text  Text
	// Items are the lines of a list.
	Items []Text
	// Header and Rows are those of a table.
	Header []Text
	Rows   [][]Text
	Code   Code
}

// BlockKind says what a Block is.
type BlockKind int

// The kinds of blocks.
const (
	Paragraph BlockKind = iota
	Heading
	List
	Numbered
	Table
	Fence
	// Slot is where a page puts something that is not prose; ID names it.
	Slot
)

// Code is a listing. HTML is the highlighted, escaped form of what is shown.
type Code struct {
	Title, Lang, HTML string
	// Folded is set where the title stands in the summary that unfolds the listing.
	Folded bool
}

// Field is a row of a field table.
type Field struct {
	Name, Type string
	Required   bool
	Text       string
	Prose      Text
	Values     []string
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
	Prose                     []Block
	Parameters, Body, Answer  Group
	Requests, Answers         []Code
	Errors                    []ErrorRow
}

// Section is a group of operations.
type Section struct {
	ID, Title  string
	Prose      []Block
	Operations []Operation
}

// ErrorRow is one error code.
type ErrorRow struct {
	Code, Title string
	Status      int
	Cause, Cure Text
	// Operations are those that answer it beyond what every one may answer.
	Operations []Link
}

// StatusText is the status as text.
func (e ErrorRow) StatusText() string { return strconv.Itoa(e.Status) }

// Event is one kind of webhook event.
type Event struct {
	Kind, Summary string
	Cause, Tell   Text
	Prose         []Block
	Fields        []Field
	Samples       []Code
	SchemaHref    string
}

// Step is one step of the quick start.
type Step struct {
	ID, Title string
	Number    int
	Prose     []Block
	Command   Code
	// Expect lists parts of what the command prints.
	Expect []string
	// Terminal is set where the command wants a terminal of its own.
	Terminal bool
}

// Vector is one signature to try a receiver with.
type Vector struct {
	Name, Secret, Body, Signature, Verdict string
}
