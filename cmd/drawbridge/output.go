package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"regexp"
	"strings"
	"text/tabwriter"
	"time"
	"unicode/utf8"

	"drawbridge/internal/app"
	"drawbridge/internal/operator"
	"drawbridge/internal/postgres"
)

// cliActor is who the records name for what a command did.
const cliActor = "command line"

// output is what a command prints: one JSON document, or text for people.
type output struct {
	document any
	text     func(w io.Writer)
}

// print writes the result at once. One that nobody gets, such as a secret that is shown once, is a
// failure of the command.
func (env *environment) print(asJSON bool, out output) error {
	var text bytes.Buffer
	if asJSON {
		encoder := json.NewEncoder(&text)
		encoder.SetEscapeHTML(false)
		encoder.SetIndent("", "  ")
		if err := encoder.Encode(out.document); err != nil {
			return fmt.Errorf("writing the result: %w", err)
		}
	} else {
		out.text(&text)
	}
	if _, err := (shown{env.stdout}).Write(text.Bytes()); err != nil {
		return fmt.Errorf("writing the result: %w", err)
	}
	return nil
}

// shown writes control characters as JSON does, \u001b, so that what others wrote gives a terminal
// no commands. Lines, tabs and our own colours stay.
type shown struct{ w io.Writer }

// Write takes whole characters.
func (s shown) Write(text []byte) (int, error) {
	_, err := s.w.Write(controls.ReplaceAllFunc(text, func(found []byte) []byte {
		if len(found) > 2 { // a colour
			return found
		}
		char, _ := utf8.DecodeRune(found)
		return fmt.Appendf(nil, `\u%04x`, char)
	}))
	return len(text), err
}

var controls = regexp.MustCompile(
	`\x1b\[(?:0|` + strings.Join([]string{bold, faint, red, green, yellow}, "|") + `)m` +
		`|[\x00-\x08\x0b-\x1f\x7f-\x{9f}]`)

// show prints what is loaded from the services.
func (env *environment) show(asJSON bool, load func(s *app.Services) (output, error)) error {
	return env.withServices(func(s *app.Services) error {
		out, err := load(s)
		if err != nil {
			return err
		}
		return env.print(asJSON, out)
	})
}

// done is what a changing command came to.
type done struct {
	// entries are what the audit log is told.
	entries []operator.Entry
	out     output
	// after loads what to print instead of out, once the change has committed.
	after func() (output, error)
	// notes go to the standard error, a line each.
	notes []string
}

func did(entry operator.Entry, out output) done {
	return done{entries: []operator.Entry{entry}, out: out}
}

// entry tells the audit log of a change; action begins with the kind of its subject.
func entry(action, subject, reason string, after any) operator.Entry {
	recorded := operator.NewEntry(action, subject, nil, after)
	recorded.Reason = reason
	return recorded
}

// changeEntry tells the audit log of a change of what was there before.
func changeEntry(action, subject, reason string, before, after any) operator.Entry {
	recorded := entry(action, subject, reason, after)
	recorded.Before = before
	return recorded
}

// settingsEntry tells the audit log of a change to the settings that action begins with.
func settingsEntry(action, reason string, before, after any) operator.Entry {
	recorded := changeEntry(action, "", reason, before, after)
	recorded.SubjectKind, recorded.Subject = "settings", recorded.SubjectKind
	return recorded
}

// change makes a change and prints what it came to.
func (env *environment) change(
	asJSON bool, do func(s *app.Services, tx *postgres.Tx) (done, error),
) error {
	return env.withServices(func(s *app.Services) error { return env.changeOver(s, asJSON, do) })
}

// changeOver is change over services that were used before.
func (env *environment) changeOver(
	s *app.Services, asJSON bool, do func(s *app.Services, tx *postgres.Tx) (done, error),
) error {
	var made done
	err := commit(env.ctx, s.Operators, func(tx *postgres.Tx) (entries []operator.Entry, err error) {
		made, err = do(s, tx)
		return made.entries, err
	})
	if err == nil && made.after != nil {
		if made.out, err = made.after(); err != nil {
			err = fmt.Errorf("it is done, and cannot be shown: %w", err)
		}
	}
	if err != nil {
		return err
	}
	for _, note := range made.notes {
		fmt.Fprintln(shown{env.stderr}, note)
	}
	return env.print(asJSON, made.out)
}

// auditTime is how long a command that was stopped may take to tell the audit log of what it did.
const auditTime = 10 * time.Second

// record tells the audit log of what was done in transactions of its own, also when the command
// was stopped meanwhile.
func (env *environment) record(operators *operator.Service, entry operator.Entry) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(env.ctx), auditTime)
	defer cancel()
	return commit(ctx, operators, func(*postgres.Tx) ([]operator.Entry, error) {
		return []operator.Entry{entry}, nil
	})
}

// commit makes one change and keeps it in the audit log, both or neither.
func commit(
	ctx context.Context, operators *operator.Service,
	do func(tx *postgres.Tx) ([]operator.Entry, error),
) error {
	_, err := operators.Act(ctx, operator.Change{
		Actor: cliActor,
		Do: func(_ context.Context, tx *postgres.Tx) (operator.Outcome, error) {
			entries, err := do(tx)
			return operator.Outcome{Entries: entries}, err
		},
	})
	return err
}

// listing is how a list command prints its rows: a line for each, under the heads of the
// columns where people read, or one document with an array, empty and not null without rows.
type listing[Row, Item any] struct {
	name  string
	item  func(row Row) Item
	heads string
	line  func(w io.Writer, row Row)
}

// rowsOf is a list of that name; heads and the cells of a line have tabs between them.
func rowsOf[Row, Item any](
	name string, item func(row Row) Item, heads string, line func(w io.Writer, row Row),
) listing[Row, Item] {
	return listing[Row, Item]{name, item, heads, line}
}

// all prints a list that is always whole.
func (l listing[Row, Item]) all(
	env *environment, asJSON bool, load func(s *app.Services) ([]Row, error),
) error {
	return env.show(asJSON, func(s *app.Services) (output, error) {
		rows, err := load(s)
		document, lines := l.print(env, rows)
		return output{document, lines}, err
	})
}

// page prints a page and where the next one begins.
func (l listing[Row, Item]) page(
	env *environment, flags listFlags,
	load func(s *app.Services, page postgres.Paging) ([]Row, postgres.Cursor, error),
) error {
	from, err := postgres.ParseCursor(flags.Cursor)
	if err != nil {
		env.refuse(byFlags(err))
	}
	return l.pageBy(env, flags, func(s *app.Services) ([]Row, string, error) {
		rows, next, err := load(s, postgres.Paging{From: from, Limit: flags.Limit})
		return rows, next.String(), err
	})
}

// pageBy is page for a list whose places are texts, empty at the end.
func (l listing[Row, Item]) pageBy(
	env *environment, flags listFlags, load func(s *app.Services) ([]Row, string, error),
) error {
	if flags.Limit < 1 || flags.Limit > postgres.MaxPage {
		env.refusef("--limit must be from 1 to %d", postgres.MaxPage)
	}
	return env.show(flags.JSON, func(s *app.Services) (output, error) {
		rows, next, err := load(s)
		document, lines := l.print(env, rows)
		document["next_cursor"] = orNull(next)
		return output{document, func(w io.Writer) {
			lines(w)
			if next != "" {
				fmt.Fprintf(w, "more: --cursor %s\n", next)
			}
		}}, err
	})
}

func (l listing[Row, Item]) print(
	env *environment, rows []Row,
) (map[string]any, func(w io.Writer)) {
	items := make([]Item, 0, len(rows))
	for _, row := range rows {
		items = append(items, l.item(row))
	}
	return map[string]any{l.name: items}, func(w io.Writer) {
		headed := isTerminal(env.stdout)
		var lines strings.Builder
		aligned(func(w io.Writer) {
			if headed {
				fmt.Fprintln(w, l.heads)
			}
			for _, row := range rows {
				l.line(w, row)
			}
		})(&lines)
		switch {
		case len(rows) == 0:
			fmt.Fprintf(env.stderr, "No %s.\n", strings.ReplaceAll(l.name, "_", " "))
		case headed:
			fmt.Fprint(w, env.styleOf(env.stdout).head(lines.String()))
		default:
			fmt.Fprint(w, lines.String())
		}
	}
}

// aligned lines up the cells that text has between its tabs.
func aligned(text func(w io.Writer)) func(w io.Writer) {
	return func(w io.Writer) {
		table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		text(table)
		table.Flush()
	}
}

// isTerminal tells whether people read what is written there.
func isTerminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&fs.ModeCharDevice != 0
}

// itself is the item of a row that is printed as it is.
func itself[Row any](row Row) Row { return row }

// utc is the time as documents write it; nil stays nil.
func utc(at *time.Time) *time.Time {
	if at == nil {
		return nil
	}
	return new(at.UTC())
}

func orNull[T comparable](value T) *T { return postgres.OrNull(value) }

// style colours what people read on a terminal, and leaves everything else as it is.
type style bool

// styleOf is the style of what is written there. NO_COLOR, set to anything, and a terminal
// that is dumb ask for none.
func (env *environment) styleOf(w io.Writer) style {
	return style(isTerminal(w) && env.getenv("NO_COLOR") == "" && env.getenv("TERM") != "dumb")
}

// The colours of a terminal, as ANSI numbers them.
const (
	bold   = "1"
	faint  = "2"
	red    = "31"
	green  = "32"
	yellow = "33"
)

// paint writes text in a colour.
func (s style) paint(colour, text string) string {
	if !s || text == "" {
		return text
	}
	return "\x1b[" + colour + "m" + text + "\x1b[0m"
}

// head writes the first of some lines bold. It takes them lined up, since cells are measured
// with all that is in them.
func (s style) head(lines string) string {
	first, rest, found := strings.Cut(lines, "\n")
	if !found {
		return lines
	}
	return s.paint(bold, first) + "\n" + rest
}
