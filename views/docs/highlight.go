package docsview

import (
	"bytes"
	"html"

	"github.com/alecthomas/chroma/v2"
	chromahtml "github.com/alecthomas/chroma/v2/formatters/html"
	"github.com/alecthomas/chroma/v2/lexers"
	"github.com/alecthomas/chroma/v2/styles"
)

// The formatter writes classes only: inline styles would break the content
// security policy.
var formatter = chromahtml.New(
	chromahtml.WithClasses(true), chromahtml.ClassPrefix("h-"),
	chromahtml.PreventSurroundingPre(true))

// highlight returns a listing as HTML. Code in an unknown language, or that cannot be
// highlighted, is shown plain.
func highlight(listing Code) string {
	if lexer := lexers.Get(listing.Lang); lexer != nil {
		var out bytes.Buffer
		tokens, err := chroma.Coalesce(lexer).Tokenise(nil, listing.Text)
		if err == nil && formatter.Format(&out, styles.Fallback, tokens) == nil {
			return out.String()
		}
	}
	return html.EscapeString(listing.Text)
}
