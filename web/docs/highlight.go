package docs

import (
	"bytes"
	"html"

	"github.com/alecthomas/chroma/v2"
	chromahtml "github.com/alecthomas/chroma/v2/formatters/html"
	"github.com/alecthomas/chroma/v2/lexers"
	"github.com/alecthomas/chroma/v2/styles"

	"drawbridge/views/docsview"
)

// The formatter writes classes only: inline styles would break the content
// security policy.
var formatter = chromahtml.New(
	chromahtml.WithClasses(true), chromahtml.ClassPrefix("h-"),
	chromahtml.PreventSurroundingPre(true))

// listing returns code ready to be shown. Code that no lexer knows, or that
// cannot be highlighted, is shown plain.
func listing(title, lang, code string) docsview.Code {
	shown := docsview.Code{Title: title, Lang: lang, HTML: html.EscapeString(code)}
	lexer := lexers.Get(lang)
	if lexer == nil {
		return shown
	}
	tokens, err := chroma.Coalesce(lexer).Tokenise(nil, code)
	if err != nil {
		return shown
	}
	var out bytes.Buffer
	if err := formatter.Format(&out, styles.Fallback, tokens); err != nil {
		return shown
	}
	shown.HTML = out.String()
	return shown
}
