package ui

import (
	"context"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/a-h/templ"

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
	// Href makes whole rows lead somewhere; nil for none. The row's own link
	// must lead to the same place, for those without script or mouse.
	Href func(T) string
	// Here marks the row that the page shows more of; nil for none.
	Here func(T) bool
}

// Column is one column of a table.
type Column[T any] struct {
	Title string
	// Class names alignment and priority: columns of class col-c, then col-b,
	// then col-a give way on narrow screens.
	Class string
	// Header marks the column whose cells name their row.
	Header bool
	// A cell is what one of these says of a row: a component, a text (none when
	// empty), a time, a chip, or an amount.
	Cell func(T) templ.Component
	Text func(T) string
	Time func(T) time.Time
	Chip func(T) ChipProps
	// Money is an amount, nil for none: the title names the currency.
	Money func(T) *lending.Money
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
	return figure(*money)
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
func TimeOf(at *time.Time) time.Time {
	if at == nil {
		return time.Time{}
	}
	return *at
}

// isFigure tells whether a cell has no letters: a number, an amount, a percentage.
func isFigure(text string) bool { return strings.IndexFunc(text, unicode.IsLetter) < 0 }
