package retention_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"drawbridge/internal/feed"
	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
	"drawbridge/internal/postgres/pgtest"
)

// walk returns which events of the feed follow a cursor, nil for the oldest valid one, or which
// cursor is valid instead.
func (a *archive) walk(after *feed.Cursor) string {
	a.t.Helper()
	page, err := feed.New(a.DB).Read(a.t.Context(), feed.Query{
		MerchantUIDs: []uuid.UUID{a.merchant}, After: after, Limit: 100,
	})
	refusal, ok := errors.AsType[*lending.Error](err)
	if ok && refusal.Code == lending.CodeCursorExpired {
		return "expired, " + refusal.Details[0].Message + " works"
	}
	if err != nil {
		a.t.Fatal(err)
	}
	var uids []uuid.UUID
	for _, event := range page.Events {
		uids = append(uids, event.UID)
	}
	return fmt.Sprint(uids)
}

// Cursors from before a removed position are refused: also where an older position is kept, and
// where a removed event had its position after younger ones.
func TestCursorsEndWhereEventsWereRemoved(t *testing.T) {
	t.Parallel()
	a := newArchive(t)
	old, fresh := today.AddDate(0, -16, 0), today.AddDate(0, -1, 0)
	plain, held := a.application(), a.application()
	a.hold(held)
	a.record(held, old, "delivered")
	a.record(plain, old, "delivered")
	third := a.record(plain, fresh, "delivered")
	fourth := a.record(held, fresh, "delivered")
	a.publishFeed()
	want := func(what string, expected ...string) {
		t.Helper()
		var got []string
		for position := range len(expected) - 1 {
			after := feed.Cursor(position)
			got = append(got, a.walk(&after))
		}
		if diff := cmp.Diff(expected, append(got, a.walk(nil))); diff != "" {
			t.Errorf("%s: %s", what, diff)
		}
	}
	list := func(events ...uuid.UUID) string { return fmt.Sprint(events) }

	a.run()
	expired := "expired, events.2 works"
	want("with an older place kept", expired, expired, list(third, fourth), list(fourth), list(),
		list(third, fourth))

	// An event from before events were numbered gets its position when it is numbered.
	a.record(plain, old, "delivered")
	sixth := a.record(plain, fresh, "delivered")
	a.publishFeed()
	a.run()
	expired = "expired, events.5 works"
	want("with an old event behind younger ones", expired, expired, expired, expired, expired,
		list(sixth), list(), list(sixth))

	// Between the removal of the event and of its position.
	a.exec(`DELETE FROM attempts WHERE delivery_uid IN (
		SELECT delivery_uid FROM deliveries WHERE event_uid = $1)`, sixth)
	a.exec(`DELETE FROM deliveries WHERE event_uid = $1`, sixth)
	a.exec(`DELETE FROM events WHERE event_uid = $1`, sixth)
	after := feed.Cursor(5)
	if got := a.walk(&after) + ", " + a.walk(nil); got != "expired, events.6 works, []" {
		t.Errorf("with an event gone and its place kept: %s", got)
	}
}

// Of two concurrent removals, the one that commits last has removed less.
func TestWhatWasRemovedNeverGoesBack(t *testing.T) {
	t.Parallel()
	a := newArchive(t)
	application := a.application()
	for range 4 {
		a.record(application, today.AddDate(0, -1, 0), "delivered")
	}
	a.publishFeed()
	var beside sync.WaitGroup
	a.do(func(ctx context.Context, tx *postgres.Tx) error {
		if _, err := tx.ExecContext(ctx, `DELETE FROM feed WHERE position > 2`); err != nil {
			return err
		}
		beside.Go(func() { a.exec(`DELETE FROM feed WHERE position <= 2`) })
		pgtest.WaitForLock(t, a.DB)
		return nil
	})
	beside.Wait()
	if removed := a.count(`SELECT removed FROM feed_head`); removed != 4 {
		t.Errorf("what was removed ends at %d, want 4", removed)
	}
}
