package outbox_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/lib/pq"

	"drawbridge/internal/app/apptest"
	"drawbridge/internal/feed"
	"drawbridge/internal/lending"
	"drawbridge/internal/outbox"
	"drawbridge/internal/postgres"
	"drawbridge/internal/postgres/pgtest"
	"drawbridge/internal/webhook/delivery"
)

// feedEntry is an event as stored in the feed.
type feedEntry struct {
	Position    int64     `db:"position"`
	Application uuid.UUID `db:"application_uid"`
	Sequence    int64     `db:"sequence"`
}

func record(h *apptest.Harness, uid uuid.UUID) func(context.Context, *postgres.Tx) error {
	return func(ctx context.Context, tx *postgres.Tx) error {
		return h.Events.Record(ctx, tx, lending.TaskCreated(uid.String(), "Sign", lending.TaskPending))
	}
}

// publish publishes until no event waits.
func publish(t *testing.T, h *apptest.Harness) {
	t.Helper()
	if err := h.Outbox.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// after returns the entries after a position in the feed.
func after(t *testing.T, h *apptest.Harness, position int64) []feedEntry {
	t.Helper()
	var all []feedEntry
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
func checkWalk(t *testing.T, walk []feedEntry, want map[uuid.UUID]int64) {
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

// Events are recorded by many at once, some of whom roll back, two publish, and one reads on
// from the last event it saw, while another transaction stays open all the time. Committed
// events are delivered once, in the order of their application, rolled back ones never.
func TestFeedHasEachEventOnceAndInOrder(t *testing.T) {
	t.Parallel()
	h := apptest.New(t)
	h.Subscribe(t, nil)
	pgtest.Begin(t, h.DB,
		`UPDATE partners SET name = name || ' Ltd' WHERE partner_uid = $1`, h.Partner)
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
			publisher := outbox.New(h.DB)
			for {
				if _, err := publisher.PublishAll(t.Context()); err != nil {
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
	var walk []feedEntry
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
	if count := h.Count(t, `SELECT count(*) FROM outbox`); count != 0 {
		t.Errorf("%d events wait still", count)
	}
	checkOwed(t, h, want)
}

// checkOwed checks that each event has one delivery with one job, and that the jobs of an
// application's events are in the order of the events.
func checkOwed(t *testing.T, h *apptest.Harness, want map[uuid.UUID]int64) {
	t.Helper()
	var owed []struct {
		Application uuid.UUID `db:"application_uid"`
		Events      int64     `db:"events"`
		Deliveries  int64     `db:"deliveries"`
		Jobs        int64     `db:"jobs"`
		InOrder     bool      `db:"in_order"`
	}
	err := h.DB.SelectContext(t.Context(), &owed, `
		SELECT application_uid,
		       count(DISTINCT event_uid) AS events,
		       count(DISTINCT delivery_uid) AS deliveries,
		       count(j.id) AS jobs,
		       array_agg(j.id ORDER BY sequence) = array_agg(j.id ORDER BY j.id) AS in_order
		  FROM events e
		  LEFT JOIN deliveries d USING (event_uid, application_uid)
		  LEFT JOIN river_job j ON j.args ->> 'delivery_uid' = d.delivery_uid::text
		 GROUP BY application_uid`)
	if err != nil {
		t.Fatal(err)
	}
	if len(owed) != len(want) {
		t.Errorf("%d applications have events, want %d", len(owed), len(want))
	}
	for _, found := range owed {
		each := want[found.Application]
		if found.Events != each || found.Deliveries != each || found.Jobs != each || !found.InOrder {
			t.Errorf("%d events were kept, and there are %+v", each, found)
		}
	}
}

// Two transactions commit in another order than they recorded in: the one that commits
// late comes later, and the reader in between misses nothing.
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

// TestEventsDoNotOvertakeOneThatCommittedLate records the next event of an application
// right after one whose transaction took so long that passes begin after its outbox id:
// the quick scan finds it or, if it took even longer, the full one.
func TestEventsDoNotOvertakeOneThatCommittedLate(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		since int64
		looks []func(*outbox.Publisher, context.Context) error
		// none is how many of the scans find nothing.
		none int
	}{
		"by seconds": {-1, []func(*outbox.Publisher, context.Context) error{outbox.ScanRecent}, 0},
		"by minutes": {
			1, []func(*outbox.Publisher, context.Context) error{outbox.ScanRecent, outbox.ScanAll}, 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := apptest.New(t)
			h.Webhooks.Deliveries.Recorded = nil
			uid, other := h.Application(t).UID, h.Application(t).UID
			publisher := outbox.New(h.DB)
			publish := func(want int) {
				t.Helper()
				if got, err := publisher.PublishAll(t.Context()); got != want || err != nil {
					t.Fatalf("published %d events (%v), want %d", got, err, want)
				}
			}
			publish(h.Count(t, `SELECT count(*) FROM outbox`))
			h.Do(t, func(ctx context.Context, tx *postgres.Tx) error {
				if err := record(h, uid)(ctx, tx); err != nil {
					return err
				}
				h.Do(t, record(h, other))
				publish(1)
				place := int64(h.Count(t, `SELECT pg_sequence_last_value('feed_outbox_outbox_id_seq')`))
				publisher.PassBy(place+1, place+test.since)
				return nil
			})
			h.Do(t, record(h, uid))
			for i, look := range test.looks {
				publish(0)
				if err := look(publisher, t.Context()); err != nil {
					t.Fatal(err)
				}
				if i < test.none {
					publish(0)
				}
			}
			publish(2)
			checkWalk(t, after(t, h, 0), map[uuid.UUID]int64{
				uid: int64(len(h.EventsOf(t, uid))), other: int64(len(h.EventsOf(t, other))),
			})
		})
	}
}

// insertAsBefore records an event as the release before sequences did.
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

// TestOlderEventsAreNumbered: events of the release before, both from before the upgrade and
// recorded by it alongside this release, get their numbers and their positions in the feed.
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

	h.Webhooks.Deliveries.Recorded = nil // publishing numbers older events, too
	h.Exec(t, insertAsBefore, beside)
	h.Do(t, record(h, beside))
	h.Exec(t, insertAsBefore, beside)
	publisher := outbox.New(h.DB)
	const unnumbered = `SELECT count(*) FROM feed_head WHERE numbered_until IS NOT NULL`
	// Locking an application postpones its numbers, and holds up nothing else.
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

// newest is the application's event that was recorded last.
func newest(t *testing.T, h *apptest.Harness, uid uuid.UUID) (event uuid.UUID) {
	t.Helper()
	err := h.DB.GetContext(t.Context(), &event, `
		SELECT event_uid
		  FROM events
		 WHERE application_uid = $1
		 ORDER BY sequence DESC
		 LIMIT 1`, uid)
	if err != nil {
		t.Fatal(err)
	}
	return event
}

// verdicts returns the ledger of an event, by subscription.
func verdicts(t *testing.T, h *apptest.Harness, event uuid.UUID) map[uuid.UUID]delivery.Verdict {
	t.Helper()
	lines, err := h.Webhooks.Deliveries.EventVerdicts(t.Context(), event)
	if err != nil {
		t.Fatal(err)
	}
	found := map[uuid.UUID]delivery.Verdict{}
	for _, line := range lines {
		found[line.SubscriptionUID] = line.Verdict
	}
	return found
}

// The deliveries of an event follow from the subscriptions as they were when it was
// recorded, whatever becomes of them before it is published.
func TestWhatIsOwedIsDecidedWithTheEvent(t *testing.T) {
	t.Parallel()
	h := apptest.New(t)
	h.Webhooks.Deliveries.Recorded = nil
	uid := h.Application(t).UID
	changed, deleted := h.Subscribe(t, nil).UID, h.Subscribe(t, nil).UID
	h.Do(t, record(h, uid))
	event := newest(t, h, uid)
	if count := h.Count(t, `SELECT count(*) FROM deliveries`); count != 0 {
		t.Fatalf("%d deliveries before anybody published", count)
	}
	h.Exec(t, `
		UPDATE subscriptions
		   SET events = '{document.signed}'
		 WHERE subscription_uid = $1`, changed)
	h.Do(t, func(ctx context.Context, tx *postgres.Tx) error {
		_, err := h.Webhooks.Subscriptions.Delete(ctx, tx, deleted, "operator")
		return err
	})
	later := h.Subscribe(t, nil).UID
	before := verdicts(t, h, event)
	// A delivery that the outbox has yet to make is not missing: no replay is offered for it.
	if targets, err := h.Webhooks.Bulk.ReplayTargets(t.Context(), event); err != nil ||
		!slices.Equal(targets, []uuid.UUID{later}) {
		t.Errorf("the event can be replayed to %s, want %s (%v)", targets, later, err)
	}

	publish(t, h)

	for subscription, want := range map[uuid.UUID]delivery.Verdict{
		changed: delivery.VerdictSent, deleted: delivery.VerdictSent, later: delivery.VerdictLater,
	} {
		if got := verdicts(t, h, event)[subscription]; got != want || before[subscription] != want {
			t.Errorf("subscription %s has the verdict %s, and before that %s, want %s",
				subscription, got, before[subscription], want)
		}
	}

	for subscription, want := range map[uuid.UUID]int{changed: 1, deleted: 1, later: 0} {
		if got := h.Count(t, `
			SELECT count(*)
			  FROM deliveries
			 WHERE event_uid = $1
			   AND subscription_uid = $2`, event, subscription); got != want {
			t.Errorf("subscription %s has %d deliveries, want %d", subscription, got, want)
		}
	}
	if jobs := h.Queued(t, "webhook"); jobs != 2 {
		t.Errorf("%d jobs, want 2", jobs)
	}
}

// The subscriptions when the event is recorded count, not those when its transaction commits.
func TestWhoSubscribesBeforeTheCommitComesLater(t *testing.T) {
	t.Parallel()
	h := apptest.New(t)
	h.Webhooks.Deliveries.Recorded = nil
	uid := h.Application(t).UID
	owed := h.Subscribe(t, nil).UID
	var later uuid.UUID
	h.Do(t, func(ctx context.Context, tx *postgres.Tx) error {
		err := record(h, uid)(ctx, tx)
		later = h.Subscribe(t, nil).UID // commits while the event's transaction is open
		return err
	})
	publish(t, h)
	got := verdicts(t, h, newest(t, h, uid))
	if got[owed] != delivery.VerdictSent || got[later] != delivery.VerdictLater {
		t.Errorf("the subscription from before has the verdict %s, the one from meanwhile %s",
			got[owed], got[later])
	}
	if count := h.Count(t, `SELECT count(*) FROM deliveries WHERE subscription_uid = $1`,
		later); count != 0 {
		t.Errorf("the one from meanwhile got %d deliveries", count)
	}
}

// A restored database has events in its outbox that may have been sent since. Cancelling
// open deliveries cancels theirs too, as the log then shows.
func TestCancellingWhatARestoreFoundReachesTheOutbox(t *testing.T) {
	t.Parallel()
	h := apptest.New(t)
	h.Webhooks.Deliveries.Recorded = nil
	uid := h.Application(t).UID
	h.Subscribe(t, nil)
	h.Subscribe(t, nil)
	publish(t, h)
	h.Do(t, record(h, uid))
	until := h.DB.Now()
	open, err := h.Webhooks.Deliveries.CountOpen(t.Context(), until)
	if err != nil || open != 2 {
		t.Errorf("%d deliveries may have been sent, want 2 (%v)", open, err)
	}
	h.Do(t, func(ctx context.Context, tx *postgres.Tx) error {
		cancelled, err := h.Webhooks.Deliveries.CancelOpen(ctx, tx, until)
		if cancelled != 2 {
			t.Errorf("cancelled %d deliveries, want 2", cancelled)
		}
		return err
	})
	publish(t, h)
	for _, delivery := range h.DeliveriesOf(t, uid) {
		if delivery.State != "cancelled" || delivery.FinishedAt == nil {
			t.Errorf("a delivery is %s", delivery.State)
		}
	}
	if count := len(h.DeliveriesOf(t, uid)); count != 2 {
		t.Errorf("the log shows %d deliveries, want 2", count)
	}
	if jobs := h.Queued(t, "webhook"); jobs != 0 {
		t.Errorf("%d deliveries would be sent", jobs)
	}
	checkWalk(t, after(t, h, 0), map[uuid.UUID]int64{uid: int64(len(h.EventsOf(t, uid)))})
}

// An event that the database refuses to publish holds up the next events of its
// application, which would otherwise take its place unnoticed, and no others.
func TestAnEventThatCannotBePublishedHoldsUpNobodyElse(t *testing.T) {
	t.Parallel()
	h := apptest.New(t)
	h.Webhooks.Deliveries.Recorded = nil
	broken, sound := h.Application(t).UID, h.Application(t).UID
	h.Subscribe(t, nil)
	publish(t, h)
	h.Do(t, record(h, broken))
	first := newest(t, h, broken)
	// There is no partition of deliveries for that month.
	h.Exec(t, `UPDATE outbox SET recorded_at = '2001-01-01' WHERE event_uid = $1`, first)
	for _, uid := range []uuid.UUID{sound, broken, sound} {
		h.Do(t, record(h, uid))
	}

	published, err := h.Outbox.PublishAll(t.Context())
	if published != 2 || err == nil || !strings.Contains(err.Error(), broken.String()) {
		t.Errorf("published %d events with the error %v, want 2 and one that names %s",
			published, err, broken)
	}
	if left := h.Count(t,
		`SELECT count(*) FROM outbox WHERE application_uid = $1`, broken); left != 2 {
		t.Errorf("%d events of the application wait, want 2", left)
	}

	h.Exec(t, `UPDATE outbox SET recorded_at = now() WHERE event_uid = $1`, first)
	publish(t, h)
	want := map[uuid.UUID]int64{}
	for _, uid := range []uuid.UUID{broken, sound} {
		want[uid] = int64(len(h.EventsOf(t, uid)))
	}
	checkWalk(t, after(t, h, 0), want)
	if count := h.Count(t, `SELECT count(*) FROM deliveries`); count != 4 {
		t.Errorf("%d deliveries, want 4", count)
	}
}

// Events that cannot be published cost the others no more than one pass with a transaction for
// each: the rest is published together, even with events found later, and those found stay stuck.
func TestAnEventThatCannotBePublishedSlowsDownNobodyElse(t *testing.T) {
	t.Parallel()
	h := apptest.New(t)
	h.Webhooks.Deliveries.Recorded = nil
	first, last, sound := h.Application(t).UID, h.Application(t).UID, h.Application(t).UID
	h.Subscribe(t, nil)
	publish(t, h)
	const events = 1000
	h.Do(t, record(h, first))
	h.Do(t, func(ctx context.Context, tx *postgres.Tx) error {
		for range events {
			if err := record(h, sound)(ctx, tx); err != nil {
				return err
			}
		}
		return record(h, last)(ctx, tx)
	})
	const spoil = `UPDATE outbox SET recorded_at = $2 WHERE application_uid = ANY ($1)`
	broken := pq.Array([]uuid.UUID{first, last})
	h.Exec(t, spoil, broken, "2001-01-01") // there are no deliveries of that month

	named := map[uuid.UUID]int{}
	for left := 3; left > 2; left = h.Count(t, `SELECT count(*) FROM outbox`) {
		_, err := h.Outbox.PublishAll(t.Context())
		for _, uid := range []uuid.UUID{first, last} {
			if strings.Contains(fmt.Sprint(err), uid.String()) {
				named[uid]++
			}
		}
	}
	if named[first] == 0 || named[last] == 0 {
		t.Errorf("the errors name the applications so often: %v", named)
	}
	const transactions = `
		SELECT count(DISTINCT xmin::text) FROM feed WHERE application_uid = $1`
	if count := h.Count(t, transactions, sound); count > events*3/4 {
		t.Errorf("%d events were published by %d transactions", events, count)
	}

	h.Exec(t, spoil, broken, h.DB.Now())
	publish(t, h)
	want := map[uuid.UUID]int64{}
	for _, uid := range []uuid.UUID{first, last, sound} {
		want[uid] = int64(len(h.EventsOf(t, uid)))
	}
	checkWalk(t, after(t, h, 0), want)
}

// Alongside an event that cannot be published, an overtaken one also waits alone: the
// others after both are published.
func TestAnOvertakenEventHoldsUpNobodyElse(t *testing.T) {
	t.Parallel()
	h := apptest.New(t)
	h.Webhooks.Deliveries.Recorded = nil
	overtaken, broken, sound := h.Application(t).UID, h.Application(t).UID, h.Application(t).UID
	h.Subscribe(t, nil)
	publish(t, h)
	publisher := outbox.New(h.DB)
	if _, err := publisher.PublishAll(t.Context()); err != nil {
		t.Fatal(err)
	}
	h.Do(t, record(h, overtaken))
	place := int64(h.Count(t, `SELECT pg_sequence_last_value('feed_outbox_outbox_id_seq')`)) + 1
	publisher.PassBy(place, place)
	for _, uid := range []uuid.UUID{overtaken, broken, sound} {
		h.Do(t, record(h, uid))
	}
	const spoil = `UPDATE outbox SET recorded_at = $2 WHERE application_uid = $1`
	h.Exec(t, spoil, broken, "2001-01-01") // there are no deliveries of that month

	published, err := publisher.PublishAll(t.Context())
	if published != 1 || err == nil || !strings.Contains(err.Error(), broken.String()) ||
		strings.Contains(err.Error(), overtaken.String()) {
		t.Errorf("published %d events with the error %v, want 1 and one that names %s alone",
			published, err, broken)
	}

	h.Exec(t, spoil, broken, h.DB.Now())
	publish(t, h)
	want := map[uuid.UUID]int64{}
	for _, uid := range []uuid.UUID{overtaken, broken, sound} {
		want[uid] = int64(len(h.EventsOf(t, uid)))
	}
	checkWalk(t, after(t, h, 0), want)
}

// While a transaction is open, rows that were taken stay in the outbox's index, as do old
// versions of changed rows. Publishing the next event reads neither again.
func TestPublishingDoesNotReadTheDead(t *testing.T) {
	t.Parallel()
	h := apptest.New(t)
	h.Webhooks.Deliveries.Recorded = nil
	uid := h.Application(t).UID
	pgtest.Hold(t, h.DB)
	h.Do(t, record(h, uid))
	// A separate connection, so that its counters show what was read.
	alone, err := postgres.Open(t.Context(), h.DB.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = alone.Close() })
	engine := alone.Engine()
	engine.SetMaxOpenConns(1)
	publisher := outbox.New(alone)
	const dead = 20_000
	h.Exec(t, `
		INSERT INTO outbox (event_uid, occurred_at, recorded_at, kind, status, merchant_uid,
		                    application_uid, owed, delivery_uids)
		SELECT event_uid, occurred_at, recorded_at, kind, status, merchant_uid, application_uid, owed,
		       delivery_uids
		  FROM outbox, generate_series(2, $1)`, dead)
	if err := publisher.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	tables := []string{"outbox", "feed_outbox", "feed_floor"}
	const version = `SELECT xmin::text::bigint FROM feed_floor`
	head := h.Count(t, version)
	read := func() int {
		t.Helper()
		h.Do(t, record(h, uid))
		blocks := pgtest.Blocks(t, h.DB, engine, tables, func() {
			if published, err := publisher.PublishAll(t.Context()); published != 1 || err != nil {
				t.Fatalf("published %d events (%v)", published, err)
			}
		})
		if h.Count(t, version) != head {
			t.Fatal("publishing leaves a version of the feed's head behind")
		}
		return blocks
	}
	// The first pass starts from the beginning and reads all of them, passes some seconds
	// later never do: late events are found by the scans alongside.
	ticker := time.NewTicker(300 * time.Millisecond)
	defer ticker.Stop()
	few := 0
	for deadline := time.Now().Add(time.Minute); few < 10; <-ticker.C {
		switch now := read(); {
		case now < 40:
			few++
		case few > 0 || time.Now().After(deadline):
			t.Fatalf("publishing an event still reads %d blocks beside %d dead ones", now, dead)
		}
	}
	// It keeps one plan, whatever the planner has learned about a table with few live rows.
	h.Exec(t, `ANALYZE outbox`)
	for range 8 {
		if blocks := read(); blocks >= 40 {
			t.Errorf("once the planner knows of few, publishing an event reads %d blocks", blocks)
		}
	}
}

// TestAFollowerSkipsNothingAfterALossyFailOver: a standby that takes over lacks the last
// three events, and has recorded as many and one more since. A reader who has read the
// lost ones is told to wait, and then reads all that came instead, once.
func TestAFollowerSkipsNothingAfterALossyFailOver(t *testing.T) {
	t.Parallel()
	h := apptest.New(t)
	h.Webhooks.Deliveries.Recorded = nil
	uid := h.Application(t).UID
	for range 5 {
		h.Do(t, record(h, uid))
	}
	publish(t, h)
	service := feed.New(h.DB)
	query := feed.Query{MerchantUIDs: []uuid.UUID{h.Merchant}, Limit: 100}
	read := func() feed.Page {
		t.Helper()
		page, err := service.Read(t.Context(), query)
		if err != nil {
			t.Fatal(err)
		}
		query.After = &page.Next
		return page
	}
	known := len(read().Events) - 3

	for _, statement := range []string{
		`ALTER TABLE feed DISABLE TRIGGER USER`,
		`DELETE FROM feed WHERE position > (SELECT max(position) - 3 FROM feed)`,
		`ALTER TABLE feed ENABLE TRIGGER USER`,
		`DELETE FROM events WHERE (event_uid, occurred_at) NOT IN (
		     SELECT event_uid, occurred_at FROM feed)`,
		`UPDATE applications SET last_sequence = (SELECT max(sequence) FROM events)`,
		`CREATE OR REPLACE FUNCTION drawbridge_timeline() RETURNS text RETURN '0000000A'`,
	} {
		h.Exec(t, statement)
	}
	if _, err := service.Read(t.Context(), query); lending.ErrorCode(err) != lending.CodeUnavailable {
		t.Errorf("before anything is published a follower is told %v", err)
	}
	for range 4 {
		h.Do(t, record(h, uid))
	}
	var publishers sync.WaitGroup
	for range 3 {
		publishers.Go(func() {
			if err := outbox.New(h.DB).Drain(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	publishers.Wait()
	if page := read(); len(page.Events) != 4 {
		t.Errorf("the follower met %d of 4 events", len(page.Events))
	}
	h.Do(t, record(h, uid))
	publish(t, h)
	if page := read(); len(page.Events) != 1 || *query.After >= 2*feed.Gap {
		t.Errorf("the follower met %d of 1 events, up to %s", len(page.Events), query.After)
	}
	query.After = nil
	if page := read(); len(page.Events) != known+5 {
		t.Errorf("%d events are in the feed, want %d", len(page.Events), known+5)
	}
	// A position that the feed never assigned is not a valid cursor.
	*query.After++
	if _, err := service.Read(t.Context(), query); lending.ErrorCode(err) != lending.CodeValidation {
		t.Errorf("a cursor from beyond the feed answered %v", err)
	}
}
