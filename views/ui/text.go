package ui

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// maxVisible bounds what one page shows of a body, in bytes.
const maxVisible = 64 << 10

// Visible returns text in which nothing can hide: invalid UTF-8 becomes the
// replacement character, control characters their pictures, and the marks that
// reorder or hide text are written out by code point, as are those that pile up
// on one letter. Line breaks and tabs stay.
func Visible(text string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	text = strings.ReplaceAll(text, "\r\n", "\n")
	if strings.IndexFunc(text, hides) < 0 && !piles(text) {
		return text
	}
	var out strings.Builder
	marks := 0
	for _, r := range text {
		if marks++; !unicode.Is(unicode.M, r) {
			marks = 0
		}
		switch {
		case !hides(r) && marks <= mostMarks:
			out.WriteRune(r)
		case r < 0x20:
			out.WriteRune(0x2400 + r)
		case r == 0x7F:
			out.WriteRune(0x2421)
		default:
			fmt.Fprintf(&out, "⟨U+%04X⟩", r)
		}
	}
	return out.String()
}

// mostMarks is how many marks any script puts on one letter, and some more: a
// letter with its marks is never broken, so that more of them leave the page.
const mostMarks = 8

// piles tells whether a letter has more marks than any script needs.
func piles(text string) bool {
	marks := 0
	for _, r := range text {
		if marks++; r < 0x300 || !unicode.Is(unicode.M, r) {
			marks = 0
		}
		if marks > mostMarks {
			return true
		}
	}
	return false
}

// hides tells whether a character would be invisible or reorder its neighbours.
func hides(r rune) bool {
	switch r {
	case '\n', '\t', '\u200C', '\u200D': // the joiners belong to scripts and emoji
		return false
	}
	return unicode.IsControl(r) || unicode.Is(unicode.Cf, r)
}

// clip cuts a body to what a page shows, at a character's border.
func clip(body []byte) (text string, clipped bool) {
	if len(body) <= maxVisible {
		return string(body), false
	}
	cut := maxVisible
	for cut > maxVisible-utf8.UTFMax && !utf8.RuneStart(body[cut]) {
		cut--
	}
	return string(body[:cut]), true
}

// ShortUID shows the random end of an identifier: time-ordered ones that were
// made together begin alike.
func ShortUID(uid string) string {
	if len(uid) != 36 || uid[8] != '-' || uid[13] != '-' {
		return uid
	}
	return "…" + uid[24:]
}

// tenth is how exact short times are: their parts add up.
const tenth = 100 * time.Microsecond

// Duration writes a length of time with a sensible unit: 840 µs, 4.2 ms, 1.2 s,
// 3 min 5 s. It is rounded before the unit is chosen: no hour reads as 60 min.
func Duration(d time.Duration) string {
	switch {
	case d < time.Millisecond:
		return fmt.Sprintf("%d µs", d.Microseconds())
	case d.Round(tenth) < 10*time.Millisecond:
		return strconv.FormatFloat(float64(d.Round(tenth))/float64(time.Millisecond), 'f', -1, 64) + " ms"
	case d.Round(time.Millisecond) < time.Second:
		return fmt.Sprintf("%d ms", d.Round(time.Millisecond).Milliseconds())
	case d.Round(100*time.Millisecond) < 10*time.Second:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d.Round(time.Second) < time.Minute:
		return fmt.Sprintf("%.0f s", d.Seconds())
	case d.Round(time.Second) < time.Hour:
		return twoUnits(d, time.Minute, "min", time.Second, "s")
	case d.Round(time.Minute) < 48*time.Hour:
		return twoUnits(d, time.Hour, "h", time.Minute, "min")
	}
	return twoUnits(d, 24*time.Hour, "d", time.Hour, "h")
}

func twoUnits(d, big time.Duration, bigName string, small time.Duration, smallName string) string {
	d = d.Round(small)
	rest := d % big / small
	if rest == 0 {
		return fmt.Sprintf("%d %s", d/big, bigName)
	}
	return fmt.Sprintf("%d %s %d %s", d/big, bigName, rest, smallName)
}

// Number groups thousands: 12,345.
func Number(n int) string {
	if n < 0 {
		return "-" + Number(-n)
	}
	digits := strconv.Itoa(n)
	for at := len(digits) - 3; at > 0; at -= 3 {
		digits = digits[:at] + "," + digits[at:]
	}
	return digits
}

// If is the one or the other, by a condition.
func If[T any](condition bool, then, otherwise T) T {
	if condition {
		return then
	}
	return otherwise
}

// Plural joins a count and its noun.
func Plural(n int, one, many string) string { return If(n == 1, "1 "+one, Number(n)+" "+many) }

// ByteSize writes a size: 812 B, 1.4 KiB.
func ByteSize(n int) string {
	return If(n < 1024, fmt.Sprintf("%d B", n), fmt.Sprintf("%.1f KiB", float64(n)/1024))
}

// HTTPStatus writes a status with its reason: 503 Service Unavailable.
func HTTPStatus(code int) string {
	if text := http.StatusText(code); text != "" {
		return fmt.Sprintf("%d %s", code, text)
	}
	return strconv.Itoa(code)
}

// breakable cuts a name into the parts between which a line may end.
func breakable(name string) []string {
	var parts []string
	for name != "" {
		end := strings.IndexAny(name, ".-_/@") + 1
		if end == 0 {
			end = len(name)
		}
		parts = append(parts, name[:end])
		name = name[end:]
	}
	return parts
}

// Capital begins a word with a capital.
func Capital(word string) string {
	first, size := utf8.DecodeRuneInString(word)
	if size == 0 {
		return ""
	}
	return string(unicode.ToUpper(first)) + word[size:]
}

// Sentence begins with a capital and ends with a mark.
func Sentence(text string) string {
	text = Capital(text)
	if text == "" || strings.ContainsAny(text[len(text)-1:], ".!?") {
		return text
	}
	return text + "."
}

// RoleWord is what a role is called.
func RoleWord(role string) string { return Capital(role) }

// Value returns what a pointer leads to, or the zero value.
func Value[T any](pointer *T) T {
	if pointer == nil {
		var zero T
		return zero
	}
	return *pointer
}
