package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"unicode/utf8"

	"drawbridge/internal/lending"
)

// Errors of the decoder whose cause the byte at their offset does not show.
const (
	saysCut  = "unexpected end of JSON input"
	saysDeep = "exceeded max depth"
)

// malformed says why a body is not one JSON object, and at which byte, counted from 1. err
// is the decoder's error, nil if it had none.
func malformed(raw []byte, err error) error {
	const wanted, broken = "the body must be one JSON object", ", but is not valid JSON: "
	refuse := func(format string, args ...any) error {
		return lending.NewError(lending.CodeValidation, format, args...)
	}
	syntax, isBroken := errors.AsType[*json.SyntaxError](err)
	switch {
	case !utf8.Valid(raw):
		return refuse("the body must be UTF-8")
	case len(bytes.TrimSpace(raw)) == 0:
		return refuse("%s, but is empty", wanted)
	case bytes.HasPrefix(raw, []byte("\uFEFF")):
		return refuse("%s%sleave out the byte order mark at its beginning", wanted, broken)
	case !isBroken:
		return refuse("%s", wanted) // and is an array, a text, a number, true, false or null
	case syntax.Error() == saysCut:
		return refuse("%s%sit ends after byte %d, before it is complete", wanted, broken, len(raw))
	case strings.HasSuffix(syntax.Error(), saysDeep):
		return refuse("%s%sit nests too deeply at byte %d", wanted, broken, syntax.Offset)
	}
	found, _ := utf8.DecodeRune(raw[syntax.Offset-1:])
	before := bytes.TrimRight(raw[:syntax.Offset-1], " \t\r\n")
	problem := "is not allowed there"
	if (found == '}' || found == ']') && bytes.HasSuffix(before, []byte(",")) {
		problem = "follows a comma"
	}
	return refuse("%s%s%s at byte %d %s", wanted, broken, strconv.Quote(string(found)),
		syntax.Offset, problem)
}
