package docsview

import (
	"bytes"
	"context"
	"io"
	"regexp"
	"strings"

	"github.com/a-h/templ"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	tables "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// markdown renders the guides and the descriptions of the OpenAPI document, so that
// headings, tables, listings and code look as elsewhere on the pages.
var markdown = goldmark.New(
	goldmark.WithExtensions(extension.Table),
	goldmark.WithRendererOptions(renderer.WithNodeRenderers(util.Prioritized(nodes{}, 1))))

// prose renders blocks of Markdown.
func prose(source string) templ.Component {
	return templ.ComponentFunc(func(_ context.Context, out io.Writer) error {
		return markdown.Convert([]byte(source), out)
	})
}

// inline renders one line of Markdown, without the paragraph around it.
func inline(source string) templ.Component {
	return templ.ComponentFunc(func(_ context.Context, out io.Writer) error {
		var block bytes.Buffer
		line := strings.Join(strings.Fields(source), " ")
		if err := markdown.Convert([]byte(line), &block); err != nil {
			return err
		}
		_, err := out.Write(bytes.TrimSuffix(
			bytes.TrimPrefix(block.Bytes(), []byte("<p>")), []byte("</p>\n")))
		return err
	})
}

// Contents lists the headings of the second level, which are plain text.
func Contents(source string) []Entry {
	var entries []Entry
	document := markdown.Parser().Parse(text.NewReader([]byte(source)))
	for node := document.FirstChild(); node != nil; node = node.NextSibling() {
		if heading, ok := node.(*ast.Heading); ok && heading.Level == 2 {
			title := string(heading.Lines().Value([]byte(source)))
			entries = append(entries, Entry{ID: Slug(title), Label: title})
		}
	}
	return entries
}

var notSlug = regexp.MustCompile(`[^a-z0-9]+`)

// Slug makes an anchor of a title.
func Slug(title string) string {
	return strings.Trim(notSlug.ReplaceAllString(strings.ToLower(title), "-"), "-")
}

// nodes renders what looks different here than in goldmark's own HTML.
type nodes struct{}

// RegisterFuncs implements renderer.NodeRenderer.
func (nodes) RegisterFuncs(to renderer.NodeRendererFuncRegisterer) {
	to.Register(ast.KindHeading, renderHeading)
	to.Register(ast.KindFencedCodeBlock, renderListing)
	to.Register(ast.KindCodeSpan, renderCode)
	to.Register(tables.KindTable, renderTable)
}

// renderHeading adds an anchor to a heading and, at the second level, a link to it.
func renderHeading(
	out util.BufWriter, source []byte, node ast.Node, entering bool,
) (ast.WalkStatus, error) {
	id := Slug(string(node.Lines().Value(source)))
	begin, end := `<h3 id="`+id+`">`, "</h3>"
	if heading, ok := node.(*ast.Heading); ok && heading.Level == 2 {
		begin, end = `<h2 id="`+id+`"><a class="self" href="#`+id+`">`, "</a></h2>"
	}
	if !entering {
		begin = end
	}
	_, err := out.WriteString(begin)
	return ast.WalkContinue, err
}

func renderListing(
	out util.BufWriter, source []byte, node ast.Node, entering bool,
) (ast.WalkStatus, error) {
	fence, ok := node.(*ast.FencedCodeBlock)
	if !ok || !entering {
		return ast.WalkContinue, nil
	}
	listing := Code{
		Lang: string(fence.Language(source)),
		Text: strings.TrimSuffix(string(fence.Lines().Value(source)), "\n"),
	}
	return ast.WalkSkipChildren, code(listing, listing.label()).Render(context.Background(), out)
}

// renderCode allows line breaks in long names.
func renderCode(
	out util.BufWriter, source []byte, node ast.Node, entering bool,
) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkContinue, nil
	}
	var name strings.Builder
	for child := node.FirstChild(); child != nil; child = child.NextSibling() {
		if part, ok := child.(*ast.Text); ok {
			name.Write(part.Segment.Value(source))
		}
	}
	return ast.WalkSkipChildren,
		codeText(strings.ReplaceAll(name.String(), "\n", " ")).Render(context.Background(), out)
}

// renderTable makes a wide table scroll, and sets the scope of its headers.
func renderTable(
	out util.BufWriter, _ []byte, node ast.Node, entering bool,
) (ast.WalkStatus, error) {
	if !entering {
		_, err := out.WriteString("</table></div>")
		return ast.WalkContinue, err
	}
	for cell := node.FirstChild().FirstChild(); cell != nil; cell = cell.NextSibling() {
		cell.SetAttributeString("scope", "col")
	}
	_, err := out.WriteString(
		`<div class="scroll" tabindex="0" role="group" aria-label="Table"><table>`)
	return ast.WalkContinue, err
}
