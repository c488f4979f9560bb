package main

import (
	"errors"
	"regexp"
	"strings"

	"drawbridge/internal/lending"
)

// quotedField is a field as refusals name it. What else they quote, such as the
// characters of a code, is no word of this form.
var quotedField = regexp.MustCompile(`"([a-z]+)"`)

// byFlags rewrites the refusal of a use case, whose fields bear the names of the
// command's flags, as wrong usage in terms of these flags; the command line is right
// where a value is only taken. Other errors pass.
func byFlags(err error) error {
	refusal, ok := errors.AsType[*lending.Error](err)
	if !ok || refusal.Code != lending.CodeValidation {
		return err
	}
	var lines []string
	for _, fault := range refusal.Details {
		lines = append(lines, quotedField.ReplaceAllString(fault.Message, "--$1"))
	}
	text := strings.Join(lines, "; ")
	if lending.IsTaken(err) {
		return errors.New(text)
	}
	return usageError{text}
}
