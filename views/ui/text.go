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

// maxVisible bounds how much of a body a page shows, in bytes.
const maxVisible = 64 << 10

// Visible returns text in which nothing is hidden: invalid UTF-8 becomes the replacement
// character, control characters become their pictures, and characters that reorder or hide
// text are written as code points, as are combining marks that pile up on one letter. Line
// breaks and tabs stay.
func Visible(text string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	text = strings.ReplaceAll(text, "\r\n", "\n")
	if strings.IndexFunc(text, isHidden) < 0 && !hasTooManyMarks(text) {
		return text
	}
	var out strings.Builder
	marks := 0
	for _, r := range text {
		if marks++; !unicode.Is(unicode.M, r) {
			marks = 0
		}
		switch {
		case !isHidden(r) && marks <= maxMarks:
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

// maxMarks is more than the number of combining marks that any script puts on one letter.
// Lines never break within a letter and its marks, so a longer pile would leave the page.
const maxMarks = 8

// hasTooManyMarks reports whether a letter has more combining marks than any script needs.
func hasTooManyMarks(text string) bool {
	marks := 0
	for _, r := range text {
		if marks++; r < 0x300 || !unicode.Is(unicode.M, r) {
			marks = 0
		}
		if marks > maxMarks {
			return true
		}
	}
	return false
}

// isHidden reports whether a character would be invisible or would reorder its neighbours.
func isHidden(r rune) bool {
	switch r {
	case '\n', '\t', '\u200C', '\u200D': // scripts and emoji need the joiners
		return false
	}
	return unicode.IsControl(r) || unicode.Is(unicode.Cf, r)
}

// clip truncates a body to maxVisible, at a character boundary.
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

// ShortUID returns the random end of an identifier: time-ordered identifiers that were
// created together have the same beginning.
func ShortUID(uid string) string {
	if len(uid) != 36 || uid[8] != '-' || uid[13] != '-' {
		return uid
	}
	return "…" + uid[24:]
}

// tenth is the precision of short durations, whose parts must add up.
const tenth = 100 * time.Microsecond

// Duration formats a duration in a suitable unit: 840 µs, 4.2 ms, 1.2 s, 3 min 5 s. It is
// rounded before the unit is chosen, so that an hour is not written as 60 min.
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

// Number formats a number with grouped thousands: 12,345.
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

// If returns then if the condition holds, otherwise the other value.
func If[T any](condition bool, then, otherwise T) T {
	if condition {
		return then
	}
	return otherwise
}

// Plural formats a count with its noun.
func Plural(n int, one, many string) string { return If(n == 1, "1 "+one, Number(n)+" "+many) }

// ByteSize formats a size: 812 B, 1.4 KiB.
func ByteSize(n int) string {
	return If(n < 1024, fmt.Sprintf("%d B", n), fmt.Sprintf("%.1f KiB", float64(n)/1024))
}

// HTTPStatus formats a status with its reason: 503 Service Unavailable.
func HTTPStatus(code int) string {
	if text := http.StatusText(code); text != "" {
		return fmt.Sprintf("%d %s", code, text)
	}
	return strconv.Itoa(code)
}

// breakable splits a name into the parts between which a line may break.
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

// Capital capitalises a word.
func Capital(word string) string {
	first, size := utf8.DecodeRuneInString(word)
	if size == 0 {
		return ""
	}
	return string(unicode.ToUpper(first)) + word[size:]
}

// Sentence capitalises a text and adds a full stop if it ends without a mark.
func Sentence(text string) string {
	text = Capital(text)
	if text == "" || strings.ContainsAny(text[len(text)-1:], ".!?") {
		return text
	}
	return text + "."
}

// RoleWord is a role in words.
func RoleWord(role string) string { return Capital(role) }

// Value dereferences a pointer, the zero value if nil.
func Value[T any](pointer *T) T {
	if pointer == nil {
		var zero T
		return zero
	}
	return *pointer
}
