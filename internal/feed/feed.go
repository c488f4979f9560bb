// Package feed reads the feed of events, and wakes anyone who waits for the next one.
//
// The order is a position: the outbox gives one to each event that it finds recorded,
// in transactions that follow one another. So anyone who sees a position sees all that
// stand before it, and a reader who goes on from the last one that he saw misses
// none, whenever their own transactions began and ended.
//
//	outbox ──► feed, one position each ──► NOTIFY drawbridge_feed
//	             │                           │
//	             └── Read ◄── woken call ◄── Run, one for each process
package feed

import (
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/lending"
)

// Event is one event, as its partner may read it.
type Event struct {
	UID uuid.UUID `db:"event_uid"`
	// Sequence is its number within the application, from 1.
	Sequence int64             `db:"sequence"`
	Kind     lending.EventKind `db:"kind"`
	// Subject names the object whose state the event tells, such as
	// disbursement/1042.
	Subject        string    `db:"subject"`
	MerchantUID    uuid.UUID `db:"merchant_uid"`
	ApplicationUID uuid.UUID `db:"application_uid"`
	// Reference is the application's external reference, nil without one.
	Reference  *string   `db:"reference"`
	OccurredAt time.Time `db:"occurred_at"`
	// Body is what webhooks carry, nil once retention has emptied it.
	Body *string `db:"body"`
}

// Gap is how far the feed's head moves where positions may have been given that the database
// does not know, beyond whatever they were: cursors of that time lie in the gap, and what is
// published from then on comes after them.
const Gap = 1_000_000_000

// Cursor is a place in the feed: right after the event of that position.
type Cursor int64

// cursorPrefix tells the feed's cursors from those of other lists.
const cursorPrefix = "events."

// String returns the text form that ParseCursor reads.
func (c Cursor) String() string { return cursorPrefix + strconv.FormatInt(int64(c), 10) }

// ParseCursor reads what String wrote. Error: VALIDATION_ERROR naming "after".
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

// errExpired refuses a cursor behind which events were removed that its reader has
// not seen.
func errExpired(oldest Cursor) *lending.Error {
	return &lending.Error{
		Code: lending.CodeCursorExpired,
		Message: "events after this cursor are not kept any more; go on with the cursor in " +
			"details, and compare your applications with ours",
		Details: []lending.FieldError{{Field: "after", Message: oldest.String()}},
	}
}

// Query says what a page of the feed shows.
type Query struct {
	// MerchantUIDs are the merchants whose events these are, in ascending order.
	MerchantUIDs []uuid.UUID
	// Kinds narrow them; none means all.
	Kinds []lending.EventKind
	// After is where the page begins; nil is the oldest event that is kept.
	After *Cursor
	// Limit is how many events the page holds at most, 1 to postgres.MaxPage.
	Limit int
}

// Page is one page of the feed.
type Page struct {
	Events []Event
	// Next is where to go on.
	Next Cursor
	// More tells that there may be further events already. A page without events may
	// have more after it: the work for one page is bounded.
	More bool
	// Waited is for how long the page was held back.
	Waited time.Duration

	// head is the newest position when the page was read.
	head Cursor
}
