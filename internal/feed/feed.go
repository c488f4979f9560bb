// Package feed reads the feed of events, and wakes API requests that wait for the next one.
//
// The order is a position: the outbox assigns one to each event that it finds recorded,
// in transactions that follow one another. So anyone who sees a position sees all that
// come before it, and a reader who continues after the last one it saw misses none,
// whenever their transactions began and ended.
//
//	outbox ──► feed, one position each ─────► NOTIFY drawbridge_feed
//	             │                              │
//	             └── Read ◄── woken request ◄── Run, one for each process
package feed

import (
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/lending"
)

// Event is one event as a partner may read it.
type Event struct {
	UID uuid.UUID `db:"event_uid"`
	// Sequence is its number within the application, from 1.
	Sequence int64             `db:"sequence"`
	Kind     lending.EventKind `db:"kind"`
	// Subject names the object whose state the event reports, such as disbursement/1042.
	Subject        string    `db:"subject"`
	MerchantUID    uuid.UUID `db:"merchant_uid"`
	ApplicationUID uuid.UUID `db:"application_uid"`
	// Reference is the application's external reference, nil if it has none.
	Reference  *string   `db:"reference"`
	OccurredAt time.Time `db:"occurred_at"`
	// Body is the body that webhooks carry, nil once retention has removed it.
	Body *string `db:"body"`
}

// Gap is how far the feed's head moves when positions may have been assigned that the
// database does not know, further than any of those: their cursors lie in the gap, and
// events published from then on come after them.
const Gap = 1_000_000_000

// Cursor is a point in the feed: right after the event of that position.
type Cursor int64

// cursorPrefix distinguishes the feed's cursors from those of other lists.
const cursorPrefix = "events."

// String returns the text form that ParseCursor parses.
func (c Cursor) String() string { return cursorPrefix + strconv.FormatInt(int64(c), 10) }

// ParseCursor parses the result of String. Error: VALIDATION_ERROR naming "after".
func ParseCursor(text string) (Cursor, error) {
	digits, ours := strings.CutPrefix(text, cursorPrefix)
	position, err := strconv.ParseInt(digits, 10, 64)
	if !ours || err != nil || position < 0 || Cursor(position).String() != text {
		return 0, errCursor()
	}
	return Cursor(position), nil
}

func errCursor() *lending.Error {
	return lending.Invalid("after", `"after" must be a next_cursor of the feed, or "latest"; `+
		"leave it out to start from the oldest event that is kept")
}

// errExpired refuses a cursor after which events were removed that its reader has not
// seen.
func errExpired(oldest Cursor) *lending.Error {
	return &lending.Error{
		Code: lending.CodeCursorExpired,
		Message: "events after this cursor are no longer kept; continue with the cursor in " +
			"details, and compare your copy of the applications with the API's",
		Details: []lending.FieldError{{Field: "after", Message: oldest.String()}},
	}
}

// Query selects the events of a page of the feed.
type Query struct {
	// MerchantUIDs are the merchants whose events are wanted, in ascending order.
	MerchantUIDs []uuid.UUID
	// Kinds narrow them to some kinds; none means all.
	Kinds []lending.EventKind
	// After is where the page begins; nil means before the oldest event that is kept.
	After *Cursor
	// Limit is how many events the page holds at most, 1 to postgres.MaxPage.
	Limit int
}

// Page is one page of the feed.
type Page struct {
	Events []Event
	// Next is the cursor to continue from.
	Next Cursor
	// More means that there may be further events already. A page without events may have
	// more after it: the work for one page is bounded.
	More bool
	// Waited is how long the request waited for the page.
	Waited time.Duration

	// head was the newest position when the page was read.
	head Cursor
}
