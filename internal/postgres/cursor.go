package postgres

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/lending"
)

// Cursor is a position in a list that is sorted by time and identifier, newest first. The zero
// Cursor is the beginning.
type Cursor struct {
	At  time.Time
	UID uuid.UUID
}

// cursorWire carries a version, so that an old cursor is refused rather than misread when the sort
// order changes.
type cursorWire struct {
	Version int       `json:"v"`
	Micros  int64     `json:"t"`
	UID     uuid.UUID `json:"u"`
}

// IsZero reports whether the cursor is the beginning of a list.
func (c Cursor) IsZero() bool { return c.At.IsZero() && c.UID == uuid.Nil }

// String returns the opaque text form, empty for the beginning.
func (c Cursor) String() string {
	if c.IsZero() {
		return ""
	}
	text, err := json.Marshal(cursorWire{Version: 1, Micros: c.At.UnixMicro(), UID: c.UID})
	if err != nil {
		// Two integers and a UUID can always be written.
		panic(err)
	}
	return base64.RawURLEncoding.EncodeToString(text)
}

// ParseCursor parses the output of String. For anything else it returns a VALIDATION_ERROR that
// names the cursor.
func ParseCursor(text string) (Cursor, error) {
	if text == "" {
		return Cursor{}, nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return Cursor{}, errCursor()
	}
	var wire cursorWire
	if err := json.Unmarshal(raw, &wire); err != nil || wire.Version != 1 {
		return Cursor{}, errCursor()
	}
	at := time.UnixMicro(wire.Micros).UTC()
	if !inRange(at) {
		return Cursor{}, errCursor()
	}
	return Cursor{At: at, UID: wire.UID}, nil
}

// Storable converts a time from outside to UTC, because the database accepts no zone of 16 hours or
// more. It returns the zero time and false outside the years 1 to 9999, and for the first instant
// of the year 1, which stands for no time.
func Storable(at time.Time) (time.Time, bool) {
	at = at.UTC()
	if at.IsZero() || !inRange(at) {
		return time.Time{}, false
	}
	return at, true
}

func inRange(at time.Time) bool { return at.Year() >= 1 && at.Year() <= 9999 }

func errCursor() error {
	return lending.Invalid("cursor",
		`"cursor" must be one that this list returned; leave it out to start from the beginning`)
}

// Paging selects a page of a list.
type Paging struct {
	// From is where the page begins, zero for the first one.
	From Cursor
	// Limit is how many rows the page holds, 1 to MaxPage.
	Limit int
}

// Check returns VALIDATION_ERROR for a limit out of range.
func (p Paging) Check() error { return CheckLimit(p.Limit) }

// OneMore is the page with one more row, which shows whether there is a next page.
func (p Paging) OneMore() Paging {
	p.Limit++
	return p
}

// Page cuts rows, of which one more than limit was fetched, to the limit and returns the cursor of
// the next page, zero on the last one.
func Page[T any](rows []T, limit int, place func(T) Cursor) ([]T, Cursor) {
	if len(rows) <= limit {
		return rows, Cursor{}
	}
	rows = rows[:limit]
	return rows, place(rows[limit-1])
}

// List is a list of rows that is sorted by time and identifier, newest first.
type List[T any] struct {
	// What names the rows in errors.
	What string
	// Select is the statement up to its conditions; At and UID are the columns it is sorted by.
	Select, At, UID string
	// Place returns the position of a row.
	Place func(row T) Cursor
}

// Page returns one page of the rows that meet the conditions, and the cursor of the next, zero on
// the last one. Error: VALIDATION_ERROR for the limit.
func (l List[T]) Page(
	ctx context.Context, db Querier, c Conditions, page Paging,
) ([]T, Cursor, error) {
	if err := page.Check(); err != nil {
		return nil, Cursor{}, err
	}
	c.OlderThan(page.From, l.At, l.UID)
	rows := []T{}
	text := l.Select + c.Where() + ` ORDER BY ` + l.At + ` DESC, ` + l.UID + ` DESC LIMIT ` +
		c.Bind(page.Limit+1)
	if err := db.SelectContext(ctx, &rows, text, c.Args...); err != nil {
		return nil, Cursor{}, fmt.Errorf("listing %s: %w", l.What, err)
	}
	rows, next := Page(rows, page.Limit, l.Place)
	return rows, next, nil
}
