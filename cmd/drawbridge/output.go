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

// cliActor is the actor that records name for changes made by commands.
const cliActor = "command line"

// output is what a command prints: one JSON document, or text for people.
type output struct {
	document any
	text     func(w io.Writer)
}

// print writes the result at once. If it cannot be written, the command fails: it may contain a
// secret that is shown only once.
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
	if _, err := (escapingWriter{env.stdout}).Write(text.Bytes()); err != nil {
		return fmt.Errorf("writing the result: %w", err)
	}
	return nil
}

// escapingWriter escapes control characters as JSON does, \u001b, so that text from other people
// cannot send commands to a terminal. Line ends, tabs and our own colours stay.
type escapingWriter struct{ w io.Writer }

// Write writes text, which must consist of whole characters.
func (s escapingWriter) Write(text []byte) (int, error) {
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

// show loads something from the services and prints it.
func (env *environment) show(asJSON bool, load func(s *app.Services) (output, error)) error {
	return env.withServices(func(s *app.Services) error {
		out, err := load(s)
		if err != nil {
			return err
		}
		return env.print(asJSON, out)
	})
}

// done is the result of a command that changes something.
type done struct {
	// entries go into the audit log.
	entries []operator.Entry
	out     output
	// after loads what to print instead of out, once the change has committed.
	after func() (output, error)
	// notes go to the standard error, one per line.
	notes []string
}

func did(entry operator.Entry, out output) done {
	return done{entries: []operator.Entry{entry}, out: out}
}

// entry is the audit log entry of a change; action begins with the kind of its subject.
func entry(action, subject, reason string, after any) operator.Entry {
	recorded := operator.NewEntry(action, subject, nil, after)
	recorded.Reason = reason
	return recorded
}

// changeEntry is the audit log entry of a change to something that existed before.
func changeEntry(action, subject, reason string, before, after any) operator.Entry {
	recorded := entry(action, subject, reason, after)
	recorded.Before = before
	return recorded
}

// settingsEntry is the audit log entry of a change to the settings that action begins with.
func settingsEntry(action, reason string, before, after any) operator.Entry {
	recorded := changeEntry(action, "", reason, before, after)
	recorded.SubjectKind, recorded.Subject = "settings", recorded.SubjectKind
	return recorded
}

// change makes a change and prints its result.
func (env *environment) change(
	asJSON bool, do func(s *app.Services, tx *postgres.Tx) (done, error),
) error {
	return env.withServices(func(s *app.Services) error { return env.changeOver(s, asJSON, do) })
}

// changeOver is change with services that are already open.
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
			err = fmt.Errorf("the change was made, but cannot be shown: %w", err)
		}
	}
	if err != nil {
		return err
	}
	for _, note := range made.notes {
		fmt.Fprintln(escapingWriter{env.stderr}, note)
	}
	return env.print(asJSON, made.out)
}

// auditTime is how long an interrupted command may take to write its entry to the audit log.
const auditTime = 10 * time.Second

// record writes an audit log entry of work that was done in separate transactions, even if the
// command was interrupted meanwhile.
func (env *environment) record(operators *operator.Service, entry operator.Entry) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(env.ctx), auditTime)
	defer cancel()
	return commit(ctx, operators, func(*postgres.Tx) ([]operator.Entry, error) {
		return []operator.Entry{entry}, nil
	})
}

// commit makes one change and records it in the audit log, both or neither.
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

// listing is how a list command prints its rows: one line per row below column heads for people,
// or one document with an array, which is empty and not null if there are no rows.
type listing[Row, Item any] struct {
	name  string
	item  func(row Row) Item
	heads string
	line  func(w io.Writer, row Row)
}

// rowsOf is a list of that name; column heads and the cells of a line are separated by tabs.
func rowsOf[Row, Item any](
	name string, item func(row Row) Item, heads string, line func(w io.Writer, row Row),
) listing[Row, Item] {
	return listing[Row, Item]{name, item, heads, line}
}

// all prints a list that has no pages.
func (l listing[Row, Item]) all(
	env *environment, asJSON bool, load func(s *app.Services) ([]Row, error),
) error {
	return env.show(asJSON, func(s *app.Services) (output, error) {
		rows, err := load(s)
		document, lines := l.print(env, rows)
		return output{document, lines}, err
	})
}

// page prints one page of a list and the cursor of the next page.
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

// pageBy is page for a list whose cursors are texts, empty after the last page.
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

// aligned aligns the tab-separated cells of a text in columns.
func aligned(text func(w io.Writer)) func(w io.Writer) {
	return func(w io.Writer) {
		table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		text(table)
		table.Flush()
	}
}

// isTerminal reports whether w is a terminal.
func isTerminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&fs.ModeCharDevice != 0
}

// itself is for lists whose rows are printed unchanged.
func itself[Row any](row Row) Row { return row }

// utc converts a time to UTC, as documents show it; nil stays nil.
func utc(at *time.Time) *time.Time {
	if at == nil {
		return nil
	}
	return new(at.UTC())
}

func orNull[T comparable](value T) *T { return postgres.OrNull(value) }

// style colours text on a terminal, and leaves it unchanged elsewhere.
type style bool

// styleOf is the style for a writer. NO_COLOR, with any value, and a dumb terminal turn colours
// off.
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

// head makes the first line bold. The cells must be aligned already, since the escape sequences
// would count as part of their width.
func (s style) head(lines string) string {
	first, rest, found := strings.Cut(lines, "\n")
	if !found {
		return lines
	}
	return s.paint(bold, first) + "\n" + rest
}
