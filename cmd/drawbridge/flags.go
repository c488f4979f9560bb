package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/app"
	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
	"drawbridge/internal/webhook"
)

// listFlags page a list.
type listFlags struct {
	Limit  int    `default:"50" help:"How many, at most 500."`
	Cursor string `help:"Where to go on, as the last page said." placeholder:"CURSOR"`
	JSON   bool   `name:"json" help:"Print one JSON document."`
}

func (f listFlags) page() (int, postgres.Cursor, error) {
	if f.Limit < 1 || f.Limit > webhook.MaxPage {
		return 0, postgres.Cursor{}, usagef("--limit must be from 1 to %d", webhook.MaxPage)
	}
	cursor, err := postgres.ParseCursor(f.Cursor)
	return f.Limit, cursor, err
}

// cursorJSON is null on the last page.
func cursorJSON(cursor postgres.Cursor) *string {
	if cursor.IsZero() {
		return nil
	}
	text := cursor.String()
	return &text
}

func printMore(w io.Writer, next postgres.Cursor) {
	if !next.IsZero() {
		fmt.Fprintf(w, "more: --cursor %s\n", next)
	}
}

func parseUID(what, text string) (uuid.UUID, error) {
	uid, err := uuid.Parse(text)
	if err != nil || len(text) != len(uuid.Nil.String()) {
		return uuid.Nil, usagef("%s is %q, which is not a UUID", what, text)
	}
	return uid, nil
}

func optionalUID(what, text string) (uuid.UUID, error) {
	if text == "" {
		return uuid.Nil, nil
	}
	return parseUID(what, text)
}

// parseUIDs returns nil for no texts.
func parseUIDs(what string, texts []string) ([]uuid.UUID, error) {
	var uids []uuid.UUID
	for _, text := range texts {
		uid, err := parseUID(what, text)
		if err != nil {
			return nil, err
		}
		uids = append(uids, uid)
	}
	return uids, nil
}

// parseTime reads an RFC 3339 time or a date (UTC); empty is the zero time.
func parseTime(flag, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	for _, layout := range []string{time.RFC3339Nano, time.DateOnly} {
		if at, err := time.Parse(layout, text); err == nil {
			return at, nil
		}
	}
	return time.Time{}, usagef(
		"%s is %q; it must be a time such as 2026-11-21T09:30:00Z", flag, text)
}

func orElse(text, otherwise string) string { return cmp.Or(text, otherwise) }

// change runs a use case in a transaction of its own; what it returns is called
// once that has committed.
func (env *environment) change(
	use func(s *app.Services, tx *postgres.Tx) (func() error, error),
) error {
	return env.withServices(func(s *app.Services) error { return env.inTx(s, use) })
}

func (env *environment) inTx(
	s *app.Services, use func(s *app.Services, tx *postgres.Tx) (func() error, error),
) error {
	var after func() error
	err := s.DB.InTx(env.ctx, func(tx *postgres.Tx) (err error) {
		after, err = use(s, tx)
		return err
	})
	if err != nil {
		return err
	}
	return after()
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

// listing is rows as commands print them: a line for each, or one document.
type listing[Row, Item any] struct {
	// name is that of the rows in the document.
	name string
	rows []Row
	item func(row Row) Item
	line func(w io.Writer, row Row)
}

// document holds an array, empty and not null without rows.
func (l listing[Row, Item]) document() map[string]any {
	items := make([]Item, 0, len(l.rows))
	for _, row := range l.rows {
		items = append(items, l.item(row))
	}
	return map[string]any{l.name: items}
}

func (l listing[Row, Item]) lines(w io.Writer) {
	for _, row := range l.rows {
		l.line(w, row)
	}
}

// print writes a list that is always whole.
func (l listing[Row, Item]) print(env *environment, asJSON bool) error {
	return env.print(asJSON, l.document(), l.lines)
}

// printPage writes a page and where the next one begins.
func (l listing[Row, Item]) printPage(
	env *environment, asJSON bool, next postgres.Cursor,
) error {
	document := l.document()
	document["next_cursor"] = cursorJSON(next)
	return env.print(asJSON, document, func(w io.Writer) {
		l.lines(w)
		printMore(w, next)
	})
}

// itself is the item of a row that is printed as it is.
func itself[Row any](row Row) Row { return row }
