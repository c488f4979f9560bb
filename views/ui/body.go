package ui

import (
	"bytes"
	"encoding/json"
	"strings"
)

// BodyProps is a request or response body.
type BodyProps struct {
	Body []byte
	// What names the body: "body", "response body".
	What string
}

// shownBody is a body as a page shows it.
type shownBody struct {
	// text is what the copy button copies: the shown text without the marks that make hidden
	// characters visible.
	text, note, what string
	// tokens are the formatted body, if it is JSON that is shown whole.
	tokens []token
}

func (p BodyProps) shown() shownBody {
	text, clipped := clip(p.Body)
	body := shownBody{text: text, note: ByteSize(len(p.Body)), what: p.What}
	if clipped {
		body.note += ", of which the first " + ByteSize(maxVisible) + " are shown"
	} else {
		body.tokens, _ = prettyJSON(Visible(text))
	}
	return body
}

// token is a piece of JSON text; class is its colour's CSS class, empty for none.
type token struct {
	class string
	text  string
}

// prettyJSON indents a JSON document and splits it into coloured tokens. The text is never
// decoded, so numbers keep all digits and keys their order. It returns false for anything
// that is not one JSON object or array, and if the nesting is so deep that the indentation
// would make the page megabytes long.
func prettyJSON(body string) ([]token, bool) {
	trimmed := strings.TrimSpace(body)
	if trimmed == "" || !strings.ContainsRune("{[", rune(trimmed[0])) ||
		indents(trimmed) > 4*maxVisible {
		return nil, false
	}
	var out bytes.Buffer
	if err := json.Indent(&out, []byte(trimmed), "", "  "); err != nil {
		return nil, false
	}
	// The concatenated tokens are the text again.
	var tokens []token
	for text := out.String(); text != ""; {
		length, class := nextToken(text)
		tokens = append(tokens, token{class, text[:length]})
		text = text[length:]
	}
	return tokens, true
}

// indents is the maximum size of a JSON document's indentation in bytes, up to an error.
func indents(text string) (size int) {
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	for depth := 0; ; size += 2 * depth {
		token, err := decoder.Token()
		if err != nil {
			return size
		}
		switch token {
		case json.Delim('{'), json.Delim('['):
			depth++
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
	}
}

func nextToken(text string) (length int, class string) {
	switch first := text[0]; {
	case first == '"':
		for length = 1; length < len(text) && text[length] != '"'; length++ {
			if text[length] == '\\' {
				length++
			}
		}
		length = min(length+1, len(text))
		if strings.HasPrefix(text[length:], ":") {
			return length, "j-key"
		}
		return length, "j-str"
	case first == '-' || first >= '0' && first <= '9':
		return span(text, "+-.eE0123456789"), "j-num"
	case first >= 'a' && first <= 'z':
		return span(text, "aeflnrstu"), "j-lit"
	}
	// Punctuation and white space before the next value.
	if next := strings.IndexAny(text[1:], `"-0123456789tfn`); next >= 0 {
		return next + 1, ""
	}
	return len(text), ""
}

// span returns the length of the prefix of text that consists of the given characters.
func span(text, of string) int { return len(text) - len(strings.TrimLeft(text, of)) }
