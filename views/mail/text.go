package mail

import (
	"net/url"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// lineWidth is the width at which plain text wraps, in characters.
const lineWidth = 72

// textBuilder writes a plain-text part: paragraphs with an empty line between.
type textBuilder struct{ out strings.Builder }

// paragraph writes wrapped text. A word longer than a line, such as a URL, is not broken.
func (b *textBuilder) paragraph(text string) {
	width := 0
	for i, word := range strings.Fields(visible(text)) {
		size := utf8.RuneCountInString(word)
		switch {
		case i == 0:
		case width+1+size > lineWidth:
			b.out.WriteByte('\n')
			width = 0
		default:
			b.out.WriteByte(' ')
			width++
		}
		b.out.WriteString(word)
		width += size
	}
	b.out.WriteString("\n\n")
}

// facts writes facts with aligned values.
func (b *textBuilder) facts(facts []Fact) {
	widest := 0
	for _, fact := range facts {
		widest = max(widest, len(fact.Label))
	}
	for _, fact := range facts {
		b.out.WriteString("  " + fact.Label + ": ")
		b.out.WriteString(strings.Repeat(" ", widest-len(fact.Label)))
		b.out.WriteString(visible(fact.Value) + "\n")
	}
	if len(facts) > 0 {
		b.out.WriteByte('\n')
	}
}

// signed ends the text with the signature separator of mail programs.
func (b *textBuilder) signed(name string) string {
	b.out.WriteString("-- \n" + visible(name) + "\n")
	return b.out.String()
}

// visible turns foreign text into one line without control characters. Format characters
// stay, because scripts and emoji need them.
func visible(text string) string {
	return strings.Join(strings.FieldsFunc(strings.ToValidUTF8(text, "\uFFFD"), func(r rune) bool {
		return unicode.IsControl(r) || unicode.IsSpace(r)
	}), " ")
}

// short truncates a text to a number of characters, for a subject.
func short(text string, most int) string {
	text = visible(text)
	if utf8.RuneCountInString(text) <= most {
		return text
	}
	return strings.TrimSpace(string([]rune(text)[:most-1])) + "…"
}

// grouped formats "12000.00" as "12,000.00".
func grouped(amount string) string {
	whole, cents, _ := strings.Cut(amount, ".")
	if strings.Trim(whole, "0123456789") != "" || whole == "" {
		return amount // not an amount: return it unchanged
	}
	var out strings.Builder
	for i, digit := range whole {
		if i > 0 && (len(whole)-i)%3 == 0 {
			out.WriteByte(',')
		}
		out.WriteRune(digit)
	}
	if cents != "" {
		out.WriteString("." + cents)
	}
	return out.String()
}

// priced formats an amount with its currency; empty if there is no amount.
func (l Lender) priced(amount string) string {
	if amount == "" || l.Currency == "" {
		return grouped(amount)
	}
	return l.Currency + "\u00a0" + grouped(amount)
}

// moment formats an RFC 3339 time for readers.
func moment(text string) string {
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return text
	}
	return at.UTC().Format("2 January 2006, 15:04 UTC")
}

// with appends a unit to a value that is not empty.
func with(value, unit string) string {
	if value == "" {
		return ""
	}
	return value + unit
}

// endpointOf names a subscription in a subject: its name, if any, with host and path.
func endpointOf(name, address string) string {
	place := address
	if parsed, err := url.Parse(address); err == nil && parsed.Host != "" {
		place = parsed.Host + parsed.Path
	}
	if name != "" {
		place = name + ", " + place
	}
	return short(place, 80)
}
