package restore_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/uuid"

	"drawbridge/internal/app/apptest"
	"drawbridge/internal/feed"
	"drawbridge/internal/lending"
	"drawbridge/internal/outbox"
	"drawbridge/internal/postgres"
)

// Cursors issued after the backup was made belong to events that the restored database does not
// have. Until the decision they are refused; then a client that continues from one gets everything
// that is published, whichever filter it reads with.
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
	later := backup + 100 // as held by a partner that read 100 more from the lost database
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

// TestAHoldByHand ends every session, and on a copy it is the quarantine that stays: the first
// process that starts there begins no other, and nothing is decided before.
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

// TestTheEnvironmentOfAServedDatabaseStays: an attempt to change it returns which processes live.
func TestTheEnvironmentOfAServedDatabaseStays(t *testing.T) {
	t.Parallel()
	h := apptest.New(t)
	if _, err := h.Restored.RecordEnvironment(t.Context(), "development"); err != nil {
		t.Fatal(err)
	}
	process := h.Processes.New([]string{"worker"}, "v")
	if err := h.Processes.Beat(t.Context(), process); err != nil {
		t.Fatal(err)
	}
	named := fmt.Sprintf("process %d on %s, seen ", process.PID, process.Host)
	lock, err := h.DB.Lock(t.Context(), 8)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = lock.Free() }()
	for _, test := range []struct {
		name, change, to, refused string
	}{
		{name: "served", to: "sandbox", refused: named},
		{name: "the same", to: "development"},
		{name: "killed", change: `UPDATE processes SET lock_key = 7`, to: "sandbox"},
		{
			name:   "holds its lock",
			change: `UPDATE processes SET lock_key = 8`, to: "production", refused: named,
		},
		{
			name:   "dead for long, in a pooler's hands",
			change: `UPDATE processes SET last_beat_at = now() - interval '61 seconds'`, to: "production",
		},
		{
			name: "copied",
			change: `UPDATE installation SET identity = 'another';
			         UPDATE processes SET lock_key = NULL, last_beat_at = now()`,
			to: "sandbox",
		},
	} {
		if test.change != "" {
			h.Exec(t, test.change)
		}
		err := h.Try(t, func(ctx context.Context, tx *postgres.Tx) error {
			return h.Restored.SetEnvironment(ctx, tx, test.to)
		})
		if (err == nil) != (test.refused == "") ||
			err != nil && !strings.Contains(err.Error(), test.refused) {
			t.Errorf("%s: %v", test.name, err)
		}
		recorded, readErr := h.Restored.Environment(t.Context(), h.DB)
		if readErr != nil || (*recorded == test.to) != (err == nil) {
			t.Errorf("%s: it records %s, %v", test.name, *recorded, readErr)
		}
	}
}
