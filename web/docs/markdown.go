package docs

import (
	"regexp"
	"strings"

	"drawbridge/views/docsview"
)

// The guides use a small part of Markdown: headings, paragraphs, lists of one
// level, tables, fences, and `code`, **strong** and [links](x) inside a line;
// strong text and links may hold code. A line ":: name" marks a slot that the page
// fills with something else.

// proseReader turns Markdown lines into blocks.
type proseReader struct {
	lines  []string
	blocks []docsview.Block
}

// prose parses Markdown.
func prose(text string) []docsview.Block {
	reader := &proseReader{lines: strings.Split(strings.TrimSpace(text), "\n")}
	for len(reader.lines) > 0 {
		reader.next()
	}
	return reader.blocks
}

// next reads one block off the front of the lines.
func (r *proseReader) next() {
	line := strings.TrimSpace(r.lines[0])
	switch {
	case line == "":
		r.lines = r.lines[1:]
	case headline.MatchString(line):
		r.heading(line)
	case strings.HasPrefix(line, ":: "):
		r.lines = r.lines[1:]
		r.add(docsview.Block{Kind: docsview.Slot, ID: strings.TrimPrefix(line, ":: ")})
	case strings.HasPrefix(line, "```"):
		r.fence(line)
	case strings.HasPrefix(line, "|"):
		r.table()
	case strings.HasPrefix(line, "- "):
		r.list(docsview.List)
	case numbered.MatchString(line):
		r.list(docsview.Numbered)
	default:
		r.add(docsview.Block{Kind: docsview.Paragraph, Text: inline(r.paragraph())})
	}
}

var headline = regexp.MustCompile(`^#+ `)

var numbered = regexp.MustCompile(`^\d+\. `)

func (r *proseReader) add(block docsview.Block) { r.blocks = append(r.blocks, block) }

func (r *proseReader) heading(line string) {
	r.lines = r.lines[1:]
	level := strings.Index(line, " ")
	title := strings.TrimSpace(line[level:])
	r.add(docsview.Block{
		Kind:  docsview.Heading,
		Level: level,
		ID:    slug(title),
		Text:  inline(title),
	})
}

func (r *proseReader) fence(line string) {
	var body []string
	r.lines = r.lines[1:]
	for len(r.lines) > 0 && !strings.HasPrefix(r.lines[0], "```") {
		body = append(body, r.lines[0])
		r.lines = r.lines[1:]
	}
	if len(r.lines) > 0 {
		r.lines = r.lines[1:]
	}
	lang := strings.TrimPrefix(line, "```")
	r.add(docsview.Block{Kind: docsview.Fence, Code: listing("", lang, strings.Join(body, "\n"))})
}

func (r *proseReader) table() {
	var rows [][]docsview.Text
	for len(r.lines) > 0 && strings.HasPrefix(strings.TrimSpace(r.lines[0]), "|") {
		line := strings.Trim(strings.TrimSpace(r.lines[0]), "|")
		r.lines = r.lines[1:]
		if strings.Trim(line, "|- ") == "" {
			continue // the rule between head and body
		}
		var cells []docsview.Text
		for cell := range strings.SplitSeq(line, "|") {
			cells = append(cells, inline(strings.TrimSpace(cell)))
		}
		rows = append(rows, cells)
	}
	if len(rows) > 0 {
		r.add(docsview.Block{Kind: docsview.Table, Header: rows[0], Rows: rows[1:]})
	}
}

func (r *proseReader) list(kind docsview.BlockKind) {
	block := docsview.Block{Kind: kind}
	for len(r.lines) > 0 && isItem(r.lines[0]) {
		line := strings.TrimSpace(r.lines[0])
		r.lines = r.lines[1:]
		item := line[strings.Index(line, " ")+1:]
		if rest := r.paragraph(); rest != "" {
			item += " " + rest
		}
		block.Items = append(block.Items, inline(item))
	}
	r.add(block)
}

func isItem(line string) bool {
	line = strings.TrimSpace(line)
	return strings.HasPrefix(line, "- ") || numbered.MatchString(line)
}

// paragraph joins lines up to the next blank line or the start of a block.
func (r *proseReader) paragraph() string {
	var parts []string
	for len(r.lines) > 0 {
		line := strings.TrimSpace(r.lines[0])
		if line == "" || isItem(line) || strings.HasPrefix(line, "|") ||
			strings.HasPrefix(line, "```") || strings.HasPrefix(line, ":: ") {
			break
		}
		parts = append(parts, line)
		r.lines = r.lines[1:]
	}
	return strings.Join(parts, " ")
}

var marks = regexp.MustCompile("`([^`]+)`" + `|\*\*([^*]+)\*\*|\[([^\]]+)\]\(([^)]+)\)`)

// inline splits a line into plain text, code, strong text and links.
func inline(text string) docsview.Text {
	text = strings.TrimSpace(text)
	var pieces docsview.Text
	last := 0
	for _, at := range marks.FindAllStringSubmatchIndex(text, -1) {
		if at[0] > last {
			pieces = append(pieces, docsview.Inline{Text: text[last:at[0]]})
		}
		pieces = append(pieces, marked(text, at))
		last = at[1]
	}
	if last < len(text) {
		pieces = append(pieces, docsview.Inline{Text: text[last:]})
	}
	return pieces
}

// marked makes a piece of one match: at holds the match and its four groups.
func marked(text string, at []int) docsview.Inline {
	switch {
	case at[2] >= 0:
		return docsview.Inline{Kind: docsview.CodeText, Text: text[at[2]:at[3]]}
	case at[4] >= 0:
		return docsview.Inline{Kind: docsview.Strong, Inner: inline(text[at[4]:at[5]])}
	default:
		return docsview.Inline{
			Kind: docsview.Anchor, Inner: inline(text[at[6]:at[7]]), Href: text[at[8]:at[9]],
		}
	}
}

var notSlug = regexp.MustCompile(`[^a-z0-9]+`)

// slug makes an anchor of a title.
func slug(title string) string {
	return strings.Trim(notSlug.ReplaceAllString(strings.ToLower(title), "-"), "-")
}
