package docs

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/JohannesKaufmann/html-to-markdown/v2/converter"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/base"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/commonmark"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/table"
	"github.com/PuerkitoBio/goquery"
	"golang.org/x/net/html"

	docsview "drawbridge/views/docs"
)

// readings stores the two other forms of each page: Markdown, and the sections that the
// search finds.
func (l *library) readings(page pageSpec, rendered []byte) error {
	document, err := goquery.NewDocumentFromReader(bytes.NewReader(rendered))
	if err != nil {
		return fmt.Errorf("reading %s again: %w", page.Href, err)
	}
	main := document.Find("main")
	main.Find("button, input, label, figcaption, .visually-hidden, .step-number").Remove()
	main.Find(`h2 a[href^="#"], h3 a[href^="#"]`).Each(func(_ int, anchor *goquery.Selection) {
		anchor.ReplaceWithSelection(anchor.Contents())
	})
	main.Find(`a[href^="#"]`).Each(func(_ int, link *goquery.Selection) {
		link.SetAttr("href", page.Href+link.AttrOr("href", ""))
	})
	l.sections = append(l.sections, sectionsOf(page, main.Get(0))...)
	// Steps contain headings, which list items cannot contain in Markdown.
	main.Find("ol.steps, li.step").Each(func(_ int, list *goquery.Selection) {
		list.ReplaceWithSelection(list.Contents())
	})
	markdown, err := converter.NewConverter(converter.WithPlugins(
		base.NewBasePlugin(), commonmark.NewCommonmarkPlugin(), table.NewTablePlugin(),
	)).ConvertNode(main.Get(0), converter.WithDomain(origin(l.doc.base)))
	if err != nil {
		return fmt.Errorf("writing %s as Markdown: %w", page.Href, err)
	}
	l.add(strings.TrimPrefix(page.markdown(), Prefix), "text/markdown; charset=utf-8",
		append(bytes.TrimSpace(markdown), '\n'))
	return nil
}

// markdown returns the address of the page's Markdown.
func (p pageSpec) markdown() string {
	if p.Href == Prefix {
		return Prefix + "/overview.md"
	}
	return p.Href + ".md"
}

// addSummary lists the pages in /llms.txt, for programs that read on behalf of people.
func (l *library) addSummary(server string) {
	var out strings.Builder
	line := func(title, href, about string) {
		fmt.Fprintf(&out, "- [%s](%s%s): %s\n", title, server, href, about)
	}
	fmt.Fprintf(&out, "# Drawbridge\n\n> %s\n\n## For partners\n\n", pages[0].lead)
	for _, page := range pages {
		line(page.title, page.markdown(), page.lead)
	}
	out.WriteString("\n## For the lender's own systems\n\n")
	for _, page := range lenderPages {
		line(page.title, page.markdown(), page.lead)
	}
	out.WriteString("\n## Files\n\n")
	line("OpenAPI", Prefix+"/openapi.yaml", "The partner API, OpenAPI 3.1.")
	line("Lender OpenAPI", lenderPrefix+"/openapi.yaml", "The lender API, OpenAPI 3.1.")
	line("Collection", Prefix+"/collection.json", "Requests that run from top to bottom, Postman 2.1.")
	line("Statement keys", Prefix+"/keys.json", "The public keys that verify daily statements.")
	line("Signature vectors", Prefix+"/samples/vectors.json",
		"Bodies, secrets and signatures to test against.")
	l.add("/llms.txt", "text/plain; charset=utf-8", []byte(out.String()))
}

// section is a part of a page, for the search.
type section struct {
	page, title, href, text string
	// lower is title and text in lower case.
	lower string
	// rank is how well it matches a search.
	rank int
}

// sectionsOf splits a page at its headings that have an anchor.
func sectionsOf(page pageSpec, main *html.Node) []section {
	found := []section{{page: page.title, title: page.title, href: page.Href}}
	var text strings.Builder
	end := func() {
		last := &found[len(found)-1]
		last.text = strings.Join(strings.Fields(text.String()), " ")
		last.lower = strings.ToLower(last.title + " " + last.text)
		text.Reset()
	}
	var walk func(node *html.Node, id string)
	walk = func(node *html.Node, id string) {
		for _, attribute := range node.Attr {
			if attribute.Key == "id" {
				id = attribute.Val
			}
		}
		switch {
		case node.Type == html.TextNode:
			text.WriteString(node.Data)
			return
		case (node.Data == "h2" || node.Data == "h3") && id != "":
			end()
			title := strings.Join(strings.Fields(goquery.NewDocumentFromNode(node).Text()), " ")
			found = append(found, section{page: page.title, title: title, href: page.Href + "#" + id})
			return
		}
		for child := range node.ChildNodes() {
			walk(child, id)
		}
		if !slices.Contains(within, node.Data) {
			text.WriteByte(' ')
		}
	}
	walk(main, "")
	end()
	return found
}

// within are inline elements, which do not separate words.
var within = []string{"wbr", "span", "code", "b", "strong", "em", "bdi", "a"}

const (
	// maxHits bounds the answer to a search.
	maxHits = 20
	// excerptBefore and excerptLength are the size of the excerpt around a match, in bytes.
	excerptBefore, excerptLength = 60, 220
	// maxQuery bounds the query, in bytes.
	maxQuery = 200
)

// synonyms maps words of other APIs to the words of the pages.
var synonyms = map[string]string{
	"pagination": "next_cursor", "paging": "next_cursor",
	"timezone": "times are utc", "dedupe": "duplicate", "deduplicate": "duplicate",
	"refund": "returned",
}

// search finds the sections of some pages that contain all words, those with the words in
// their titles first.
func (l *library) search(query string, of []pageSpec) []docsview.Hit {
	words := strings.Fields(strings.ToLower(query))
	if len(words) == 0 {
		return nil
	}
	for i, word := range words {
		words[i] = cmp.Or(synonyms[word], word)
	}
	var matching []section
	for _, one := range l.sections {
		if !slices.ContainsFunc(of, func(page pageSpec) bool { return page.title == one.page }) {
			continue
		}
		for _, word := range words {
			if !strings.Contains(one.lower, word) {
				one.rank = 0
				break
			}
			one.rank += min(strings.Count(one.lower, word), 5)
			if strings.Contains(strings.ToLower(one.title), word) {
				one.rank += 10
			}
		}
		if one.rank > 0 {
			matching = append(matching, one)
		}
	}
	slices.SortStableFunc(matching, func(a, b section) int { return cmp.Compare(b.rank, a.rank) })
	hits := make([]docsview.Hit, 0, maxHits)
	for _, one := range matching[:min(len(matching), maxHits)] {
		hits = append(hits, docsview.Hit{
			Link: docsview.Link{Href: one.href, Label: one.title}, Page: one.page,
			Excerpt: excerpt(one.text, words[0]),
		})
	}
	return hits
}

// excerpt returns the part of a text around a word.
func excerpt(text, word string) string {
	from := max(strings.Index(strings.ToLower(text), word)-excerptBefore, 0)
	if from >= len(text) {
		from = 0 // some capitals are longer than their lower-case letters
	}
	to := min(from+excerptLength, len(text))
	if from > 0 {
		from += 1 + strings.IndexByte(text[from:to], ' ')
	}
	if end := strings.LastIndexByte(text[from:to], ' '); to < len(text) && end > 0 {
		to = from + end
	}
	shown := strings.ToValidUTF8(text[from:to], "")
	if from > 0 {
		shown = "… " + shown
	}
	if to < len(text) {
		shown += " …"
	}
	return shown
}
