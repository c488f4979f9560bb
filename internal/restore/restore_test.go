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

// TestAHoldByHand signs everybody out, and on a copy it is the one that stays: the first process
// that starts there begins no other, and nothing is decided before.
func TestAHoldByHand(t *testing.T) {
	t.Parallel()
	h := apptest.New(t)
	hold := func(ctx context.Context, tx *postgres.Tx) error {
		return h.Restored.Quarantine(ctx, tx, "recovered to 09:30")
	}
	release := func(ctx context.Context, tx *postgres.Tx) error {
		_, err := h.Restored.Release(ctx, tx)
		return err
	}
	isHeld := func(want bool) {
		t.Helper()
		state, err := h.Restored.Check(t.Context())
		if err != nil || state.IsQuarantined() != want || state.Copied {
			t.Errorf("it is %+v, %v", state, err)
		}
	}
	refused := func(when string, do func(ctx context.Context, tx *postgres.Tx) error) {
		t.Helper()
		if err := h.Try(t, do); lending.ErrorCode(err) != lending.CodeInvalidState {
			t.Errorf("%s: %v", when, err)
		}
	}
	isHeld(false)
	for _, copied := range []string{
		``,
		`UPDATE installation SET identity = 'another'`,
		`UPDATE installation SET identity = 'another', held_at = now(), held_reason = 'there'`,
	} {
		h.Exec(t, `INSERT INTO sessions (token, data, expiry) VALUES ('x', '', now())`)
		if copied != "" {
			h.Exec(t, copied)
			refused("a decision on a copy", release)
		}
		h.Do(t, hold)
		if h.Count(t, `SELECT count(*) FROM sessions`) != 0 {
			t.Error("somebody is signed in")
		}
		refused("a second hold", hold)
		isHeld(true)
		h.Do(t, release)
		isHeld(false)
	}
}
