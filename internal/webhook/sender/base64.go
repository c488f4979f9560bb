package sender

import (
	"encoding/base64"
	"regexp"
	"slices"
	"strings"
)

// inBase64 returns the part of a secret's base64 form that is the same in every base64
// text containing it, for each of the three offsets at which it may begin in a group of
// three bytes, in both alphabets. Characters at its ends that also encode bits of its
// neighbours are left out.
func inBase64(known string) []string {
	var forms []string
	for before := range 3 {
		padded := strings.Repeat("\x00", before) + known
		for _, alphabet := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			encoded := alphabet.EncodeToString([]byte(padded))
			from := (before*8 + 5) / 6
			until := len(padded) * 8 / 6
			if form := encoded[from:until]; len(form) >= minRedacted && !slices.Contains(forms, form) {
				forms = append(forms, form)
			}
		}
	}
	return forms
}

// cutEscape matches an escape that was cut off.
var cutEscape = regexp.MustCompile(`^(%[[:xdigit:]]?` +
	`|\\(u[[:xdigit:]]{0,4}(\\(u[[:xdigit:]]{0,3})?)?)?` +
	`|&(#[xX]?[[:xdigit:]]*|[A-Za-z]*))$`)

// reading is a text as a decoder of base64 in it sees it: with its escapes undone, and
// without the white space that breaks lines. The result is unique, since no escape begins
// with a character of base64, so a base64 text can be searched for in it literally.
type reading struct {
	source string
	broken bool
	text   string
	// spans are the begin and end in the source of each byte of text.
	spans [][2]int32
}

// read makes a reading of a text which, if broken, may be cut off at its end.
func read(source string, broken bool) reading {
	text := make([]byte, 0, len(source))
	spans := make([][2]int32, 0, len(source))
	for at := 0; at < len(source); {
		meant, width := source[at:at+1], 1
		switch source[at] {
		case '%', '\\', '&':
			if unescaped, length := unescape(source[at:]); length > 0 {
				meant, width = unescaped, length
			} else if broken && len(source)-at < widestEscape && cutEscape.MatchString(source[at:]) {
				width, meant = len(source)-at, ""
			}
		}
		for _, char := range []byte(meant) {
			if char != ' ' && char != '\t' && char != '\r' && char != '\n' {
				text = append(text, char)
				spans = append(spans, [2]int32{int32(at), int32(at + width)})
			}
		}
		at += width
	}
	return reading{source, broken, string(text), spans}
}

// mask returns the source with a base64 text masked; if broken, also a beginning of that
// text at its end.
func (r reading) mask(encoded string) string {
	var out strings.Builder
	kept, from := int32(0), 0
	for {
		at := strings.Index(r.text[from:], encoded)
		if at < 0 {
			break
		}
		out.WriteString(r.source[kept:r.spans[from+at][0]] + Masked)
		from += at + len(encoded)
		kept = r.spans[from-1][1]
	}
	if !r.broken {
		return out.String() + r.source[kept:]
	}
	rest := r.text[from:]
	for length := min(len(encoded), len(rest)); length >= minRedacted; length-- {
		if strings.HasSuffix(rest, encoded[:length]) {
			return out.String() + r.source[kept:r.spans[len(r.text)-length][0]] + Masked
		}
	}
	return out.String() + r.source[kept:]
}
