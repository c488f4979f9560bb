package lending

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Text checks one line of text of a field, such as a name, and records a fault
// if it is empty, not UTF-8, has control characters (a database text holds no
// NUL, and a line break would forge a log line or a mail header) or more than
// limit characters. It returns the text without surrounding space.
func (f *Faults) Text(field, text string, limit int) string {
	text = strings.TrimSpace(text)
	switch {
	case text == "":
		f.Add(field, "%q is required", field)
	case !utf8.ValidString(text):
		f.Add(field, "%q must be UTF-8 text", field)
	case strings.ContainsFunc(text, unicode.IsControl):
		f.Add(field, "%q must be one line without control characters", field)
	case utf8.RuneCountInString(text) > limit:
		f.Add(field, "%q must have at most %d characters", field, limit)
	}
	return text
}
