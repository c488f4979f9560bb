// Package outbox does what follows from an event once its change has committed: it gives
// the event its position in the feed, and makes the deliveries that it owes, with their
// jobs.
//
//	use case ── Record ──► events + outbox ── commit
//	                                │
//	                            Publisher ──► feed, one position each ──► NOTIFY drawbridge_feed
//	                                └───────► deliveries ──► jobs ──────► NOTIFY the queue
//
// What is owed was decided with the change; here it is only done, exactly once: whatever is
// taken from the outbox goes in the transaction that makes what follows from it.
package outbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"drawbridge/internal/feed"
	"drawbridge/internal/postgres"
	"drawbridge/internal/webhook/delivery"
)

const (
	// channel is where other processes are told that something was recorded.
	channel = "drawbridge_outbox"
	// eventsTogether and deliveriesTogether bound what one transaction publishes; the last
	// event may go beyond.
	eventsTogether, deliveriesTogether = 200, 2000
	// numberedTogether is of how many applications one transaction numbers the events
	// from before there were numbers.
	numberedTogether = 100
	// After a round of several events the next one waits for as long as it took, within
	// these bounds, so that under load events share a transaction.
	leastGather, mostGather = time.Millisecond, 10 * time.Millisecond
	// After another one the outbox is looked at as soon as something is told, soon
	// again, since not every event is told of, and then less and less often.
	leastLook, mostLook = 5 * time.Millisecond, 200 * time.Millisecond
	// The pauses before the connection is made again that listens.
	leastPause, mostPause = 100 * time.Millisecond, 10 * time.Second
	// afterFailure is how long nothing is tried after a failure, and stuckFor how long an
	// event that failed alone is left out.
	afterFailure, stuckFor = 250 * time.Millisecond, 3 * time.Second
	// timeout bounds a statement, lookTime one that may pass by all that was ever recorded.
	timeout, lookTime = 10 * time.Second, time.Minute
)

// Publisher publishes the events of a database. Any number of processes may run
// one: of those that want to publish at the same time, one does.
//
// The order is that in which events are found, neither a time nor a transaction: an event
// is found once it is committed, so one that commits late comes later, and nobody waits
// for a transaction that is open. Positions are given under a lock that is held until they
// are committed, so whoever sees one sees all before it. Of one application's events, the
// lock on the application makes the outbox's own order that of their numbers.
type Publisher struct {
	DB *postgres.DB

	// told has a place for the news that something was recorded here.
	told chan struct{}
	// mu is held while this process publishes.
	mu    sync.Mutex
	end   horizon
	stuck stuck
}

// stuck are the applications whose next event cannot be published, until it is tried again.
type stuck struct {
	applications []uuid.UUID
	// from is the place of the first of those events.
	from  int64
	again time.Time
}

// New returns a publisher of a database.
func New(db *postgres.DB) *Publisher {
	return &Publisher{DB: db, told: make(chan struct{}, 1)}
}

// Tell says that events of this process have been committed. It does not wait.
func (p *Publisher) Tell() {
	select {
	case p.told <- struct{}{}:
	default:
	}
}

// Relay passes on to the processes that publish what this one, which does not, is told,
// until ctx ends. It does so beside the transactions: those that notify commit one by one.
func (p *Publisher) Relay(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.told:
		}
		bound, cancel := context.WithTimeout(ctx, timeout)
		_, err := p.DB.ExecContext(bound, `SELECT pg_notify($1, '')`, channel)
		cancel()
		if err != nil && ctx.Err() == nil {
			slog.WarnContext(ctx, "telling of events", "error", err) // they are found without
		}
		pause(ctx, leastGather)
	}
}

// Run publishes until ctx ends.
func (p *Publisher) Run(ctx context.Context) {
	listener := pq.NewListener(p.DB.URL(), leastPause, mostPause, nil)
	defer context.AfterFunc(ctx, func() { _ = listener.Close() })()
	_ = listener.Listen(channel) // fails only once it is closed
	var beside sync.WaitGroup
	defer beside.Wait()
	beside.Go(func() { postgres.Sparingly(ctx, lookEvery, "late events", p.lookNear) })
	beside.Go(func() { postgres.Sparingly(ctx, lookEvery, "older events", p.lookBehind) })
	look := leastLook
	for ctx.Err() == nil {
		began := time.Now()
		published, err := p.PublishAll(ctx)
		if err != nil && ctx.Err() == nil {
			slog.ErrorContext(ctx, "publishing events", "error", err)
			pause(ctx, afterFailure)
		}
		if published > 1 {
			look = leastLook
			pause(ctx, min(max(time.Since(began), leastGather), mostGather))
			continue
		}
		look = min(2*look, mostLook)
		timer := time.NewTimer(look)
		select {
		case <-ctx.Done():
		case <-p.told:
			look = leastLook
		case <-listener.Notify:
			look = leastLook
		case <-timer.C:
		}
		timer.Stop()
	}
}

// pause waits, unless ctx ends.
func pause(ctx context.Context, length time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(length):
	}
}

// PublishAll publishes all that waits, numbers some of the older events, and returns how
// many were published; 0 also while another process does.
func (p *Publisher) PublishAll(ctx context.Context) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := 0
	if !p.end.known {
		first, err := p.first(ctx, 0, math.MaxInt64, []uuid.UUID{})
		if err != nil {
			return 0, err
		}
		// Some places back, as somebody may be about to commit.
		from := mark{first - recent, first - recent, time.Now()}
		p.end = horizon{known: true, from: from.place, late: from, veryLate: from}
		p.stuck.applications = []uuid.UUID{}
	}
	for {
		now, err := p.publish(ctx)
		all += now.Published
		switch {
		case err != nil && ctx.Err() == nil && !postgres.IsUnavailable(err):
			count, err := p.oneByOne(ctx)
			return all + count, err
		case err != nil:
			return all, err
		case now.Full:
			continue
		case now.Unnumbered:
			err = p.Number(ctx)
		}
		return all, err
	}
}

// Drain publishes until nothing that has committed waits, whoever publishes it, or ctx ends.
func (p *Publisher) Drain(ctx context.Context) error {
	for {
		_, err := p.PublishAll(ctx)
		var waiting bool
		if err == nil {
			err = p.DB.GetContext(ctx, &waiting, `SELECT EXISTS (SELECT FROM outbox)`)
		}
		if err != nil || !waiting {
			return err
		}
		if err := p.lookBehind(ctx); err != nil {
			return err
		}
		pause(ctx, leastGather)
	}
}

// round is what one statement published.
type round struct {
	Published int `db:"published"`
	// Full tells that more may wait.
	Full bool `db:"is_full"`
	// Last is the place in the outbox of the last event that was taken, Newest the
	// last that was given to any.
	Last   int64 `db:"last"`
	Newest int64 `db:"newest"`
	// Unnumbered tells that there are events from before there were numbers.
	Unnumbered bool `db:"unnumbered"`
}

// feedKey is violated by whoever gives a position that another process has just given.
const feedKey = "feed_pkey"

// publish is one statement and so one transaction, since each of its own costs as much as
// the events of several.
func (p *Publisher) publish(ctx context.Context) (round, error) {
	if len(p.stuck.applications) > 0 && time.Now().After(p.stuck.again) {
		p.end.from = min(p.end.from, p.stuck.from)
		p.stuck.applications = []uuid.UUID{}
	}
	now, err := take(ctx, p.DB.Engine(), p.end.from, eventsTogether, p.stuck.applications)
	if postgres.IsUnique(err, feedKey) || postgres.IsLockTimeout(err) {
		// Another process published between this one's look at the feed and its lock, or is
		// about to.
		return round{Full: true}, nil
	}
	switch {
	case err != nil:
		return now, err
	case now.Full:
		p.end.from = max(p.end.from, now.Last)
	default:
		p.end.late.turn(late, now.Newest)
		p.end.veryLate.turn(veryLate, now.Newest)
		p.end.from = p.end.late.place
	}
	return now, nil
}

// takeDue publishes up to $1 of the events that wait from a place in the outbox on, but of the
// applications in $3 and of those that are overtaken: their last event before these committed
// late, and waits before that place. The lock of the head keeps others from it until the
// positions are committed; what another process has taken since this statement's look is there
// still, but to be deleted it is looked at anew, and then passed over. Rows of the outbox are
// deleted by where they are, since an index would have to pass by all that somebody's
// transaction keeps from being removed; so would the places before that one, hence the CASE. The
// limit, of all rows, has the planner expect one, and look for each where it is.
//
// The job's row is that which the queue's client would write, its times the
// database's: by those the queue decides which jobs are due.
const takeDue = `
	WITH head AS MATERIALIZED (
		SELECT position FROM feed_head FOR UPDATE SKIP LOCKED
	), waiting AS MATERIALIZED (
		SELECT outbox_id, row, before_row, application_uid, sequence,
		       sum(deliveries) OVER (ORDER BY outbox_id) - deliveries AS ahead
		  FROM ((SELECT outbox_id, ctid AS row, NULL::tid AS before_row, application_uid, sequence,
		                cardinality(owed) AS deliveries
		           FROM outbox
		          WHERE outbox_id >= $2
		            AND application_uid <> ALL ($3::uuid[])
		            AND EXISTS (SELECT FROM head)
		          ORDER BY outbox_id
		          LIMIT $1)
		         UNION ALL
		        (SELECT outbox_id, NULL, ctid, application_uid, NULL, 0
		           FROM feed_outbox
		          WHERE EXISTS (SELECT FROM head)
		          ORDER BY outbox_id
		          LIMIT $1)) AS both_kinds
		 ORDER BY outbox_id
		 LIMIT $1
	), overtaken AS MATERIALIZED (
		SELECT application_uid
		  FROM waiting w
		 WHERE (SELECT true
		          FROM outbox earlier
		         WHERE earlier.application_uid = w.application_uid
		           AND earlier.sequence = w.sequence - 1
		           AND CASE WHEN earlier.outbox_id < $2 THEN true ELSE false END
		         LIMIT 1)
	), due AS MATERIALIZED (
		SELECT row, before_row
		  FROM waiting
		 WHERE ahead < $4
		   AND application_uid <> ALL (ARRAY(SELECT application_uid FROM overtaken))
		 LIMIT $1
	), taken AS (
		DELETE FROM outbox
		 USING due
		 WHERE ctid = due.row
		RETURNING outbox_id, event_uid, occurred_at, recorded_at, kind, status, merchant_uid,
		          application_uid, owed, delivery_uids
	), taken_before AS (
		DELETE FROM feed_outbox
		 USING due
		 WHERE ctid = due.before_row
		RETURNING outbox_id, event_uid, occurred_at, merchant_uid, application_uid, kind
	), placed AS (
		INSERT INTO feed (position, event_uid, occurred_at, merchant_uid, application_uid, kind)
		SELECT h.position + row_number() OVER (ORDER BY t.outbox_id), t.event_uid,
		       t.occurred_at, t.merchant_uid, t.application_uid, t.kind
		  FROM (SELECT outbox_id, event_uid, occurred_at, merchant_uid, application_uid, kind
		          FROM taken
		         UNION ALL
		        SELECT outbox_id, event_uid, occurred_at, merchant_uid, application_uid, kind
		          FROM taken_before) AS t
		 CROSS JOIN head h
		RETURNING position
	), owed AS MATERIALIZED (
		SELECT s.subscription_uid, s.delivery_uid, t.outbox_id, t.event_uid, t.occurred_at,
		       t.recorded_at, t.kind, t.status, t.application_uid
		  FROM taken t
		 CROSS JOIN LATERAL unnest(t.owed, t.delivery_uids) AS s (subscription_uid, delivery_uid)
	), delivery AS (
		INSERT INTO deliveries (delivery_uid, created_at, subscription_uid, event_uid, event_at,
		                        event, application_uid, status, state, next_attempt_at, queued)
		SELECT delivery_uid, recorded_at, subscription_uid, event_uid, occurred_at, kind,
		       application_uid, status, 'pending', recorded_at, true
		  FROM owed
	), job AS (
		INSERT INTO river_job (args, created_at, kind, max_attempts, metadata, priority, queue,
		                       scheduled_at, state, tags)
		SELECT jsonb_build_object('delivery_uid', delivery_uid, 'number', 1, 'created_at',
		           to_char(recorded_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')),
		       now(), $5, $6, '{}', $7, $8, now(), 'available', '{}'
		  FROM owed
		 ORDER BY outbox_id
	), tell AS (
		SELECT pg_notify($9, max(position)::text) FROM placed HAVING count(*) > 0
	), tell_queue AS (
		SELECT pg_notify(current_schema() || '.river_insert', $10)
		 WHERE EXISTS (SELECT FROM owed)
	)
	SELECT (SELECT count(*) FROM placed)
	           + 0 * (SELECT count(*) FROM tell) + 0 * (SELECT count(*) FROM tell_queue) AS published,
	       EXISTS (SELECT FROM due)
	           AND (SELECT count(*) >= $1 OR max(ahead) >= $4 FROM waiting) AS is_full,
	       coalesce((SELECT max(outbox_id) FROM taken), 0) AS last,
	       coalesce(pg_sequence_last_value('feed_outbox_outbox_id_seq'), 0) AS newest,
	       EXISTS (SELECT FROM feed_head WHERE numbered_until IS NOT NULL) AS unnumbered`

// queueNotification tells the queue's workers that a job came in.
const queueNotification = `{"queue": "` + delivery.Queue + `"}`

// take publishes up to so many events but of some applications.
func take(
	ctx context.Context, on sqlx.QueryerContext, from int64, most int, but []uuid.UUID,
) (now round, err error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	err = sqlx.GetContext(ctx, on, &now, takeDue, most, from, pq.Array(but), deliveriesTogether,
		delivery.Args{}.Kind(), delivery.MaxRuns, delivery.FirstPriority, delivery.Queue,
		feed.Channel, queueNotification)
	if err != nil {
		return round{}, fmt.Errorf("publishing events: %w", err)
	}
	return now, nil
}

// oneByOne publishes what waits by a transaction each, after one for several failed: an event
// that cannot be published holds up those of its application, and nobody else's.
func (p *Publisher) oneByOne(ctx context.Context) (all int, faults error) {
	p.stuck = stuck{[]uuid.UUID{}, math.MaxInt64, time.Now().Add(stuckFor)}
	for {
		var now round
		err := p.DB.InTx(ctx, func(tx *postgres.Tx) (err error) {
			now, err = take(ctx, tx, p.end.from, 1, p.stuck.applications)
			return err
		})
		switch {
		case ctx.Err() != nil || postgres.IsUnavailable(err):
			return all, errors.Join(faults, err)
		case err == nil && now.Published == 0:
			return all, faults
		case err == nil:
			all += now.Published
			continue
		case postgres.IsUnique(err, feedKey): // as in publish
			continue
		}
		var next struct {
			Place       int64     `db:"outbox_id"`
			Application uuid.UUID `db:"application_uid"`
		}
		nextErr := p.DB.GetContext(ctx, &next, `
			SELECT outbox_id, application_uid
			  FROM outbox
			 WHERE outbox_id >= $1
			   AND application_uid <> ALL ($2)
			 ORDER BY outbox_id
			 LIMIT 1`, p.end.from, pq.Array(p.stuck.applications))
		if nextErr != nil {
			return all, errors.Join(faults, err, nextErr)
		}
		faults = errors.Join(faults,
			fmt.Errorf("an event of application %s waits: %w", next.Application, err))
		p.stuck.applications = append(p.stuck.applications, next.Application)
		p.stuck.from = min(p.stuck.from, next.Place)
	}
}

const (
	// late is how old a place in the outbox must be at least, and twice that at most, for
	// a round that does not go back to it, and veryLate for a look beside the rounds that does
	// not: it is quick, so that what took longer than usual to commit waits for a second.
	late, veryLate = 2 * time.Second, time.Minute
	// recent is how many places may be given within that time, by far.
	recent = 10_000
	// lookEvery is the least time between two looks behind that, for what transactions
	// recorded that took longer.
	lookEvery = time.Second
)

// horizon is where rounds begin: behind what was taken. While somebody's transaction is open,
// that stays in the index, and whoever looks from the beginning passes by all of it.
type horizon struct {
	known bool
	from  int64
	// late and veryLate are behind what may still be about to commit.
	late, veryLate mark
}

// mark is a place in the outbox that was the last one to be given between one and two spans of
// time ago.
type mark struct {
	place, next int64
	turned      time.Time
}

func (m *mark) turn(span time.Duration, newest int64) {
	if now := time.Now(); now.Sub(m.turned) > span {
		m.place, m.next, m.turned = m.next, newest, now
	}
}

// first is the place of the first event that waits between two places but of some
// applications; of none the second place, or the last that was given.
func (p *Publisher) first(
	ctx context.Context, from, before int64, but []uuid.UUID,
) (place int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	err = p.DB.GetContext(ctx, &place, `
		SELECT coalesce(min(outbox_id), least($1,
		           coalesce(pg_sequence_last_value('feed_outbox_outbox_id_seq'), 0)))
		  FROM outbox
		 WHERE outbox_id < $1
		   AND outbox_id >= $3
		   AND application_uid <> ALL ($2)`, before, pq.Array(but), from)
	if err != nil {
		return 0, fmt.Errorf("looking for the first event that waits: %w", err)
	}
	return place, nil
}

// lookNear looks for what took longer than usual to commit.
func (p *Publisher) lookNear(ctx context.Context) error {
	p.mu.Lock()
	from := p.end.veryLate.place
	p.mu.Unlock()
	return p.look(ctx, from)
}

// lookBehind looks for all that waits behind the horizon.
func (p *Publisher) lookBehind(ctx context.Context) error { return p.look(ctx, 0) }

// look has the next round begin at what waits between a place and the horizon. Nobody waits
// for it.
func (p *Publisher) look(ctx context.Context, from int64) error {
	p.mu.Lock()
	known, before, but := p.end.known, p.end.from, p.stuck.applications
	p.mu.Unlock()
	if !known {
		return nil
	}
	first, err := p.first(ctx, from, before, but)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.end.from = min(p.end.from, first)
	return nil
}

// Number gives their numbers to the events of some applications that are older than
// this rule, by their times, and leads them into the feed. It does nothing once all have
// theirs, and tries again later where somebody holds one of the applications: publishing
// must not wait for that.
func (p *Publisher) Number(ctx context.Context) error {
	err := p.DB.InTx(ctx, func(tx *postgres.Tx) error {
		if _, err := tx.ExecContext(ctx, `SET LOCAL lock_timeout = '100ms'`); err != nil {
			return fmt.Errorf("bounding the wait for applications: %w", err)
		}
		var from *uuid.UUID
		err := tx.GetContext(ctx, &from,
			`SELECT numbered_until FROM feed_head FOR UPDATE SKIP LOCKED`)
		if postgres.IsNoRows(err) || err == nil && from == nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("asking which events have no number: %w", err)
		}
		var done []uuid.UUID
		err = tx.SelectContext(ctx, &done, `
			WITH next AS MATERIALIZED (
				SELECT application_uid, last_sequence
				  FROM applications
				 WHERE application_uid > $1
				 ORDER BY application_uid
				 LIMIT $2
				   FOR UPDATE
			), numbered AS (
				UPDATE applications a
				   SET last_sequence = drawbridge_number_events(a.application_uid)
				  FROM next
				 WHERE a.application_uid = next.application_uid
				   AND next.last_sequence IS NULL
			)
			SELECT application_uid FROM next ORDER BY application_uid`, from, numberedTogether)
		if err != nil {
			return fmt.Errorf("numbering older events: %w", err)
		}
		var until *uuid.UUID
		if len(done) > 0 {
			until = &done[len(done)-1]
		}
		if _, err := tx.ExecContext(ctx,
			`UPDATE feed_head SET numbered_until = $1`, until); err != nil {
			return fmt.Errorf("keeping up to where events are numbered: %w", err)
		}
		return nil
	})
	if postgres.IsLockTimeout(err) {
		return nil
	}
	return err
}
