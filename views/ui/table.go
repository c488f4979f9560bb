package ui

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/a-h/templ"
	"github.com/google/uuid"

	"drawbridge/internal/lending"
)

// TableProps is a table: its caption, columns and rows.
type TableProps[T any] struct {
	// Caption names the table for screen readers.
	Caption string
	Columns []Column[T]
	Rows    []T
	// RowID is a row's element id, unique on the page and unchanged by updates.
	RowID func(T) string
	// Here marks the row of which the page shows details; nil for none.
	Here func(T) bool
}

// Column is one column of a table.
type Column[T any] struct {
	Title string
	// Class sets alignment, width and priority. On a page too narrow for the table, its rows
	// become cards: columns of class col-a and col-b move to the second line of the card,
	// those of class col-c are omitted, and those of class col-d already on wider pages.
	Class string
	// Named shows the title before the value in a card, which has no table head.
	Named bool
	// Header marks the column whose cells name their row.
	Header bool
	// Exactly one of these returns the content of a cell: a component, a text (empty for
	// none), a time, a chip, or an amount.
	Cell func(T) templ.Component
	Text func(T) string
	Time func(T) time.Time
	Chip func(T) ChipProps
	// Money is an amount, nil for none: the title contains the currency. A cell beside it
	// formats the amount itself, with Figure.
	Money func(T) *lending.Money
}

// Texts returns a column of texts with a title and a class.
func Texts[T any](title, class string, of func(T) string) Column[T] {
	return Column[T]{Title: title, Class: class, Text: of}
}

// Times returns a column of times.
func Times[T any](title, class string, of func(T) time.Time) Column[T] {
	return Column[T]{Title: title, Class: class, Time: of}
}

// Chips returns a column of states.
func Chips[T any](title, class string, of func(T) ChipProps) Column[T] {
	return Column[T]{Title: title, Class: class, Chip: of}
}

// Amounts returns a column of money, nil for none.
func Amounts[T any](title, class string, of func(T) *lending.Money) Column[T] {
	return Column[T]{Title: title, Class: class, Money: of}
}

// Titled returns the column with Named set.
func (c Column[T]) Titled() Column[T] {
	c.Named = true
	return c
}

// heading is the column's title, for amounts with their currency.
func (c Column[T]) heading(ctx context.Context) string {
	if code := currencyOf(ctx); c.Money != nil && code != "" {
		return c.Title + " (" + code + ")"
	}
	return c.Title
}

// moneyText formats an amount under a title that names the currency, empty for none.
func moneyText(money *lending.Money) string {
	if money == nil {
		return ""
	}
	return Figure(*money)
}

// PagerProps is the footer of a keyset-paginated list.
type PagerProps struct {
	// Summary says how many rows the list has.
	Summary string
	// Newest and Older are addresses, empty if there is no such page.
	Newest string
	Older  string
}

// Without removes columns whose content is already stated above the table.
func Without[T any](table TableProps[T], titles ...string) TableProps[T] {
	table.Columns = slices.DeleteFunc(table.Columns, func(c Column[T]) bool {
		return slices.Contains(titles, c.Title)
	})
	return table
}

// TimeOf returns an optional time, the zero time if nil, for a column of times.
func TimeOf(at *time.Time) time.Time { return Value(at) }

// isFigure reports whether a cell has no letters: a number, an amount, a percentage.
func isFigure(text string) bool { return strings.IndexFunc(text, unicode.IsLetter) < 0 }

// columnMarks are the parts of table classes that describe a column by number, so that
// cells need no class: "f3" moves the third column to the second line of a card.
var columnMarks = map[string]string{
	"col-a": "f", "col-b": "f", "col-c": "c", "col-d": "d", "end": "e", "mono": "m",
}

// class is the table's class with the marks of its columns.
func (p TableProps[T]) class() string {
	classes := []string{"table"}
	for i, column := range p.Columns {
		for word := range strings.FieldsSeq(column.Class) {
			if mark := columnMarks[word]; mark == "f" && !slices.Contains(classes, "cards") {
				classes = append(classes, "cards", mark+strconv.Itoa(i+1))
			} else if mark != "" {
				classes = append(classes, mark+strconv.Itoa(i+1))
			}
		}
	}
	return strings.Join(classes, " ")
}

// headClass is the class of the column's head, which sets the width.
func (c Column[T]) headClass() string {
	return strings.Join(slices.DeleteFunc(strings.Fields(c.Class), func(word string) bool {
		return columnMarks[word] != ""
	}), " ")
}

// cellClass is the class of a column's cells: what neither the marks of the table nor the
// widths of its head set.
func (c Column[T]) cellClass() string {
	return strings.Join(slices.DeleteFunc(strings.Fields(c.Class), func(word string) bool {
		return columnMarks[word] != "" || strings.HasPrefix(word, "w-")
	}), " ")
}

// RowID returns the random end of an identifier, which is enough to distinguish the rows of
// a page; links contain the whole.
func RowID(uid uuid.UUID) string { return uid.String()[24:] }

// named is the text before a cell's value in a card, which has no head to show the title or
// the currency; empty if none.
func (c Column[T]) named(ctx context.Context) string {
	var words []string
	if c.Named {
		words = append(words, strings.ToLower(c.Title))
	}
	if code := currencyOf(ctx); c.Money != nil && code != "" {
		words = append(words, code)
	}
	return strings.Join(words, " ")
}
