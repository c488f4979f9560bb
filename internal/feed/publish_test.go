package feed_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/google/uuid"

	"drawbridge/internal/app/apptest"
	"drawbridge/internal/feed"
	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
)

// told is an event as the feed has it.
type told struct {
	Position    int64     `db:"position"`
	Application uuid.UUID `db:"application_uid"`
	Sequence    int64     `db:"sequence"`
}

func record(h *apptest.Harness, uid uuid.UUID) func(context.Context, *postgres.Tx) error {
	return func(ctx context.Context, tx *postgres.Tx) error {
		return h.Events.Record(ctx, tx, lending.TaskCreated(uid.String(), "Sign", lending.TaskPending))
	}
}

// publish publishes until nothing waits.
func publish(t *testing.T, h *apptest.Harness) {
	t.Helper()
	publisher := feed.Publisher{DB: h.DB}
	for {
		n, err := publisher.Publish(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			return
		}
	}
}

// after returns what follows a position in the feed.
func after(t *testing.T, h *apptest.Harness, position int64) []told {
	t.Helper()
	var all []told
	err := h.DB.SelectContext(t.Context(), &all, `
		SELECT f.position, f.application_uid, e.sequence
		  FROM feed f
		  JOIN events e USING (event_uid, occurred_at)
		 WHERE f.position > $1
		 ORDER BY f.position`, position)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// checkWalk fails unless the walk has each application's events once, in order, from 1.
func checkWalk(t *testing.T, walk []told, want map[uuid.UUID]int64) {
	t.Helper()
	last := map[uuid.UUID]int64{}
	for i, event := range walk {
		if i > 0 && event.Position <= walk[i-1].Position {
			t.Errorf("position %d came after %d", event.Position, walk[i-1].Position)
		}
		if event.Sequence != last[event.Application]+1 {
			t.Errorf("event %d of %s came after %d",
				event.Sequence, event.Application, last[event.Application])
		}
		last[event.Application] = event.Sequence
	}
	for uid, count := range want {
		if last[uid] != count {
			t.Errorf("application %s has %d events in the feed, want %d", uid, last[uid], count)
		}
	}
}

// Events are recorded by many at once, some of whom take everything back, two publish, and
// one reads on from what he saw last, while somebody's transaction is open all the time.
func TestFeedHasEachEventOnceAndInOrder(t *testing.T) {
	t.Parallel()
	h := apptest.New(t)
	stranger, err := h.DB.BeginTxx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stranger.Rollback() }()
	if _, err := stranger.ExecContext(t.Context(),
		`UPDATE partners SET name = name || ' Ltd' WHERE partner_uid = $1`, h.Partner); err != nil {
		t.Fatal(err)
	}
	var uids []uuid.UUID
	want := map[uuid.UUID]int64{}
	for range 10 {
		uid := h.Application(t).UID
		uids = append(uids, uid)
		want[uid] = int64(len(h.EventsOf(t, uid)))
	}
	errGivenUp := errors.New("given up")
	var mu sync.Mutex
	var writers, publishers sync.WaitGroup
	for writer := range 16 {
		writers.Go(func() {
			chance := rand.New(rand.NewPCG(uint64(writer), 1))
			for range 20 {
				uid, failing := uids[chance.IntN(len(uids))], chance.IntN(4) == 0
				err := h.Try(t, func(ctx context.Context, tx *postgres.Tx) error {
					if err := record(h, uid)(ctx, tx); err != nil || failing {
						return errors.Join(err, errGivenUp)
					}
					return nil
				})
				if !failing && err != nil {
					t.Error(err)
				}
				if !failing {
					mu.Lock()
					want[uid]++
					mu.Unlock()
				}
			}
		})
	}
	stop := make(chan struct{})
	for range 2 {
		publishers.Go(func() {
			publisher := feed.Publisher{DB: h.DB}
			for {
				if _, err := publisher.Publish(t.Context()); err != nil {
					t.Error(err)
				}
				select {
				case <-stop:
					return
				default:
				}
			}
		})
	}
	var walk []told
	read := func() {
		position := int64(0)
		if len(walk) > 0 {
			position = walk[len(walk)-1].Position
		}
		walk = append(walk, after(t, h, position)...)
	}
	done := make(chan struct{})
	go func() { writers.Wait(); close(done) }()
	for running := true; running; {
		select {
		case <-done:
			running = false
		default:
		}
		read()
	}
	close(stop)
	publishers.Wait()
	publish(t, h)
	read()
	checkWalk(t, walk, want)
	if count := h.Count(t, `SELECT count(*) FROM feed_outbox`); count != 0 {
		t.Errorf("%d events wait still", count)
	}
}

// Two transactions commit in the other order than they recorded: the one that commits late
// comes later, and the reader in between misses nothing.
func TestFeedDoesNotSkipALateCommit(t *testing.T) {
	t.Parallel()
	h := apptest.New(t)
	early, late := h.Application(t).UID, h.Application(t).UID
	publish(t, h)
	seen := int64(h.Count(t, `SELECT position FROM feed_head`))
	h.Do(t, func(ctx context.Context, tx *postgres.Tx) error {
		if err := record(h, late)(ctx, tx); err != nil {
			return err
		}
		h.Do(t, record(h, early))
		publish(t, h)
		got := after(t, h, seen)
		if len(got) != 1 || got[0].Application != early {
			return fmt.Errorf("before the late commit the feed has %+v", got)
		}
		seen = got[0].Position
		return nil
	})
	publish(t, h)
	if got := after(t, h, seen); len(got) != 1 || got[0].Application != late {
		t.Errorf("after the late commit the feed goes on with %+v", got)
	}
}

// insertAsBefore records an event as the release before sequences does.
const insertAsBefore = `
	WITH subject AS MATERIALIZED (
		UPDATE applications
		   SET last_event_at = greatest(now(), last_event_at + interval '1 microsecond')
		 WHERE application_uid = $1
		RETURNING partner_uid, merchant_uid, last_event_at
	)
	INSERT INTO events (event_uid, occurred_at, kind, partner_uid, merchant_uid,
	                    application_uid, status, body)
	SELECT gen_random_uuid(), last_event_at, 'task.created', partner_uid, merchant_uid, $1,
	       'Pending', '{}'
	  FROM subject`

// TestOlderEventsAreNumbered: events of the release before, those from before the upgrade and
// those that it records beside this one, get their numbers and their place in the feed.
func TestOlderEventsAreNumbered(t *testing.T) {
	t.Parallel()
	h := apptest.New(t)
	beside, quiet := h.Application(t).UID, h.Application(t).UID
	for range 3 {
		h.Exec(t, insertAsBefore, beside)
		h.Exec(t, insertAsBefore, quiet)
	}
	// As the migration finds them.
	h.Exec(t, `UPDATE events SET sequence = NULL, subject = NULL`)
	h.Exec(t, `UPDATE applications SET last_sequence = NULL`)
	h.Exec(t, `DELETE FROM feed_outbox`)
	h.Exec(t, `UPDATE feed_head SET numbered_until = '00000000-0000-0000-0000-000000000000'`)
	before := int64(len(h.EventsOf(t, quiet)))

	h.Exec(t, insertAsBefore, beside)
	h.Do(t, record(h, beside))
	h.Exec(t, insertAsBefore, beside)
	publisher := feed.Publisher{DB: h.DB}
	const unnumbered = `SELECT count(*) FROM feed_head WHERE numbered_until IS NOT NULL`
	// Whoever holds an application puts its numbers off, and holds up nobody.
	h.Do(t, func(ctx context.Context, tx *postgres.Tx) error {
		_, err := tx.ExecContext(ctx,
			`SELECT FROM applications WHERE application_uid = $1 FOR UPDATE`, quiet)
		return errors.Join(err, publisher.Number(ctx))
	})
	if h.Count(t, unnumbered) != 1 {
		t.Error("a held application was numbered, or forgotten")
	}
	for h.Count(t, unnumbered) > 0 {
		if err := publisher.Number(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	publish(t, h)
	checkWalk(t, after(t, h, 0), map[uuid.UUID]int64{beside: before + 3, quiet: before})
	if count := h.Count(t, `
		SELECT count(*)
		  FROM events
		 WHERE sequence IS NULL OR subject IS NULL`); count != 0 {
		t.Errorf("%d events have no number or no subject", count)
	}
}
