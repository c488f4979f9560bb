package main

import (
	"errors"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
)

// listFlags page a list.
type listFlags struct {
	Limit  int    `default:"50" help:"How many, at most 500."`
	Cursor string `help:"Where to go on, as the last page said." placeholder:"CURSOR"`
	JSON   bool   `name:"json" help:"Print one JSON document."`
}

// refuse keeps the first fault of the command line. With one, the command ends before
// it opens the database, so what reads a flag returns no error of its own.
func (env *environment) refuse(err error) {
	if env.fault == nil {
		env.fault = err
	}
}

func (env *environment) refusef(format string, args ...any) { env.refuse(usagef(format, args...)) }

func (env *environment) page(f listFlags) (int, postgres.Cursor) {
	if f.Limit < 1 || f.Limit > postgres.MaxPage {
		env.refusef("--limit must be from 1 to %d", postgres.MaxPage)
	}
	cursor, err := postgres.ParseCursor(f.Cursor)
	if err != nil {
		env.refuse(err)
	}
	return f.Limit, cursor
}

func (env *environment) uid(what, text string) uuid.UUID {
	uid, err := uuid.Parse(text)
	if err != nil || len(text) != len(uuid.Nil.String()) {
		env.refusef("%s is %q, which is not a UUID", what, text)
	}
	return uid
}

func (env *environment) optionalUID(what, text string) uuid.UUID {
	if text == "" {
		return uuid.Nil
	}
	return env.uid(what, text)
}

// uids returns nil for no texts.
func (env *environment) uids(what string, texts []string) (uids []uuid.UUID) {
	for _, text := range texts {
		uids = append(uids, env.uid(what, text))
	}
	return uids
}

// time reads an RFC 3339 time or a date (UTC); empty is the zero time.
func (env *environment) time(flag, text string) time.Time {
	if text == "" {
		return time.Time{}
	}
	for _, layout := range []string{time.RFC3339Nano, time.DateOnly} {
		if at, err := time.Parse(layout, text); err == nil {
			return at
		}
	}
	env.refusef("%s is %q; it must be a time such as 2026-11-21T09:30:00Z", flag, text)
	return time.Time{}
}

// webAddress checks an address that this machine shall call.
func (env *environment) webAddress(flag, text string) {
	parsed, err := url.Parse(text)
	if err != nil || parsed.Host == "" || parsed.Scheme != "http" && parsed.Scheme != "https" {
		env.refusef("%s is %q; it must be an address such as http://127.0.0.1:8080/api", flag, text)
	}
}

// eventKind is empty for an empty text.
func (env *environment) eventKind(flag, text string) lending.EventKind {
	kind := lending.EventKind(text)
	if text != "" && !kind.IsKnown() {
		env.refusef("%s is %q, which is not an event kind", flag, text)
	}
	return kind
}

// chosen makes sure that a command is told what to act on in one of its two ways:
// by naming it or by filters.
func (env *environment) chosen(plural string, named, filtered bool, flags string) {
	switch {
	case !named && !filtered:
		env.refusef("name the %s to re-send, or choose them with %s", plural, flags)
	case named && filtered:
		env.refusef("name %s or choose them with flags, not both", plural)
	}
}

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
