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

// TableProps is a table: what it lists, its columns and its rows.
type TableProps[T any] struct {
	// Caption names the table for those who do not see it.
	Caption string
	Columns []Column[T]
	Rows    []T
	// RowID is a row's element id, unique on the page and stable over updates.
	RowID func(T) string
	// Here marks the row that the page shows more of; nil for none.
	Here func(T) bool
}

// Column is one column of a table.
type Column[T any] struct {
	Title string
	// Class names alignment, width and priority. Where a page is too narrow for the table, its
	// rows become cards: columns of class col-a and col-b stand in their second line, those of
	// class col-c are left out, and those of class col-d earlier.
	Class string
	// Named puts the title before the value in a card, which has no head to say it.
	Named bool
	// Header marks the column whose cells name their row.
	Header bool
	// A cell is what one of these says of a row: a component, a text (none when
	// empty), a time, a chip, or an amount.
	Cell func(T) templ.Component
	Text func(T) string
	Time func(T) time.Time
	Chip func(T) ChipProps
	// Money is an amount, nil for none: the title names the currency. A cell beside it writes
	// the amount itself, as Figure.
	Money func(T) *lending.Money
}

// Texts is a column of texts, under a title and of a class.
func Texts[T any](title, class string, of func(T) string) Column[T] {
	return Column[T]{Title: title, Class: class, Text: of}
}

// Times is a column of times.
func Times[T any](title, class string, of func(T) time.Time) Column[T] {
	return Column[T]{Title: title, Class: class, Time: of}
}

// Chips is a column of states.
func Chips[T any](title, class string, of func(T) ChipProps) Column[T] {
	return Column[T]{Title: title, Class: class, Chip: of}
}

// Amounts is a column of money, nil for none.
func Amounts[T any](title, class string, of func(T) *lending.Money) Column[T] {
	return Column[T]{Title: title, Class: class, Money: of}
}

// Titled is the column with its title before the value in a card, as Named says.
func (c Column[T]) Titled() Column[T] {
	c.Named = true
	return c
}

// heading is the column's title, of amounts with their currency.
func (c Column[T]) heading(ctx context.Context) string {
	if code := currencyOf(ctx); c.Money != nil && code != "" {
		return c.Title + " (" + code + ")"
	}
	return c.Title
}

// moneyText is an amount under a title that names the currency, empty for none.
func moneyText(money *lending.Money) string {
	if money == nil {
		return ""
	}
	return Figure(*money)
}

// PagerProps is the foot of a keyset-paginated list.
type PagerProps struct {
	// Summary says how much the list holds.
	Summary string
	// Newest and Older are addresses, empty where there is no such page.
	Newest string
	Older  string
}

// Without leaves columns out where what they say is said above the table.
func Without[T any](table TableProps[T], titles ...string) TableProps[T] {
	table.Columns = slices.DeleteFunc(table.Columns, func(c Column[T]) bool {
		return slices.Contains(titles, c.Title)
	})
	return table
}

// TimeOf is a time that may be missing, for a column of times.
func TimeOf(at *time.Time) time.Time { return Value(at) }

// isFigure tells whether a cell has no letters: a number, an amount, a percentage.
func isFigure(text string) bool { return strings.IndexFunc(text, unicode.IsLetter) < 0 }

// columnMarks are what a table says of a column by its number, so that no cell has to: "f3"
// that the third folds into the second line of a card.
var columnMarks = map[string]string{
	"col-a": "f", "col-b": "f", "col-c": "c", "col-d": "d", "end": "e", "mono": "m",
}

// class is that of the table, with the marks of its columns.
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

// headClass is what its head needs: the width.
func (c Column[T]) headClass() string {
	return strings.Join(slices.DeleteFunc(strings.Fields(c.Class), func(word string) bool {
		return columnMarks[word] != ""
	}), " ")
}

// cellClass is what a column's cells need beside the marks of the table and the widths of
// its head.
func (c Column[T]) cellClass() string {
	return strings.Join(slices.DeleteFunc(strings.Fields(c.Class), func(word string) bool {
		return columnMarks[word] != "" || strings.HasPrefix(word, "w-")
	}), " ")
}

// RowID is the end of an identifier, which is random: enough to tell the rows of a page
// apart, whose links have the whole.
func RowID(uid uuid.UUID) string { return uid.String()[24:] }

// named is what a cell says before its value in a card, which has no head to tell the title
// or the currency; empty for nothing.
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
