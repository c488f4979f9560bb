package main

import (
	"io"

	"drawbridge/internal/postgres"
)

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
