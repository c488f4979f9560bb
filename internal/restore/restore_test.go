package restore_test

import (
	"context"
	"testing"

	"github.com/google/uuid"

	"drawbridge/internal/app/apptest"
	"drawbridge/internal/feed"
	"drawbridge/internal/lending"
	"drawbridge/internal/outbox"
	"drawbridge/internal/postgres"
)

// Cursors that were given after the backup was made are of events that the restored database does
// not have. Until the decision they are refused; then anyone who goes on from one meets all that is
// published, whatever he reads by.
func TestCursorsSurviveARestore(t *testing.T) {
	t.Parallel()
	h := apptest.New(t)
	uid := h.Application(t).UID
	// More merchants than are read one by one.
	many := []uuid.UUID{h.Merchant}
	for range 20 {
		many = append(many, uuid.New())
	}
	publish := func() {
		t.Helper()
		h.Do(t, func(ctx context.Context, tx *postgres.Tx) error {
			return h.Events.Record(ctx, tx,
				lending.TaskCreated(uid.String(), "Sign", lending.TaskPending))
		})
		if _, err := outbox.New(h.DB).PublishAll(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	read := func(after feed.Cursor, merchants []uuid.UUID) (feed.Page, error) {
		return h.Feed.Read(t.Context(), feed.Query{
			MerchantUIDs: merchants, After: &after, Limit: 100,
		})
	}
	publish()
	backup, err := h.Feed.Latest(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	later := backup + 100 // as a partner has it whom the lost database told of 100 more
	h.Do(t, func(ctx context.Context, tx *postgres.Tx) error {
		return h.Restored.Quarantine(ctx, tx, "recovered to 09:30")
	})
	if _, err := read(later, many[:1]); lending.ErrorCode(err) != lending.CodeUnavailable {
		t.Errorf("before the decision: %v, want to be asked again later", err)
	}
	h.Do(t, func(ctx context.Context, tx *postgres.Tx) error {
		_, err := h.Restored.Release(ctx, tx)
		return err
	})
	for _, merchants := range [][]uuid.UUID{many[:1], many} {
		page, err := read(later, merchants)
		if err != nil || len(page.Events) > 0 || page.More {
			t.Errorf("%d merchants: right after the decision: %+v, %v", len(merchants), page, err)
		}
		if page, err = read(page.Next, merchants); err != nil || len(page.Events) > 0 {
			t.Errorf("%d merchants: at the new end: %+v, %v", len(merchants), page, err)
		}
	}
	const fresh = 3
	for range fresh {
		publish()
	}
	for _, after := range []feed.Cursor{backup, later} {
		for _, merchants := range [][]uuid.UUID{many[:1], many} {
			page, err := read(after, merchants)
			if err != nil || len(page.Events) != fresh || page.More {
				t.Errorf("%d merchants, after %s: %d events, %v, want %d in one page",
					len(merchants), after, len(page.Events), err, fresh)
			}
		}
	}
}
