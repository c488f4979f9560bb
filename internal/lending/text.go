package lending

import (
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Text checks one line of text of a field, such as a name, and records an error
// if it is empty, not UTF-8, has control characters (a database text holds no
// NUL, and a line break would forge a log line or a mail header) or more than
// limit characters. It returns the text without surrounding space.
func (f *FieldErrors) Text(field, text string, limit int) string {
	return f.check(field, text, limit, "")
}

// Lines is Text for values that may have line breaks and tabs.
func (f *FieldErrors) Lines(field, text string, limit int) string {
	return f.check(field, text, limit, "\r\n\t")
}

// check is Text with an exception for the allowed control characters.
func (f *FieldErrors) check(field, text string, limit int, allowed string) string {
	text = strings.TrimSpace(text)
	forbidden := func(r rune) bool { return unicode.IsControl(r) && !strings.ContainsRune(allowed, r) }
	switch {
	case text == "":
		f.Add(field, "%q is required", field)
	case !utf8.ValidString(text):
		f.Add(field, "%q must be UTF-8 text", field)
	case strings.ContainsFunc(text, forbidden) && allowed == "":
		f.Add(field, "%q must be one line without control characters", field)
	case strings.ContainsFunc(text, forbidden):
		f.Add(field, "%q must have no control characters except line breaks and tabs", field)
	case utf8.RuneCountInString(text) > limit:
		f.Add(field, "%q must have at most %d characters", field, limit)
	}
	return text
}

// Name is Text for names of people and projects and titles of tasks: they appear in e-mails,
// where a web address would become a link.
func (f *FieldErrors) Name(field, text string, limit int) string {
	before := len(*f)
	text = f.Text(field, text, limit)
	lower := strings.ToLower(text)
	if len(*f) == before && (strings.Contains(lower, "://") || strings.Contains(lower, "www.")) {
		f.Add(field, `%q must not contain a web address; leave out "://" and "www."`, field)
	}
	return text
}

// Readable records an error for a value that the database cannot store as text: one that is not
// UTF-8 or has a NUL.
func (f *FieldErrors) Readable(field, text string) {
	if !readable(text) {
		f.Add(field, "%q must be UTF-8 text without NUL characters", field)
	}
}

func readable(text string) bool { return utf8.ValidString(text) && !strings.ContainsRune(text, 0) }

// CheckValues checks the values of a form or a query. Error: VALIDATION_ERROR naming each that
// cannot be stored as text.
func CheckValues(values map[string][]string) error {
	var errs FieldErrors
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if !readable(name) {
			return NewError(CodeValidation,
				"the name of each field must be UTF-8 text without NUL characters")
		}
		for _, value := range values[name] {
			errs.Readable(name, value)
		}
	}
	return errs.Err()
}
