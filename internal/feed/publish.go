package feed

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"
	"github.com/lib/pq"

	"drawbridge/internal/postgres"
)

const (
	// outboxChannel is where the recording of an event is told.
	outboxChannel = "drawbridge_outbox"
	// publishedTogether is how many events one transaction publishes at most.
	publishedTogether = 500
	// numberedTogether is of how many applications one transaction numbers the events
	// from before there were numbers.
	numberedTogether = 100
	// After a round that published something the next one waits for so long, so that under
	// load events share a transaction.
	gather = 25 * time.Millisecond
	// After one that did not, the outbox is looked at as soon as something is told, soon
	// again, since not every event is told of, and then less and less often.
	leastLook, mostLook = 5 * time.Millisecond, 40 * time.Millisecond
	// The pauses before the connection is made again that listens.
	leastPause, mostPause = 100 * time.Millisecond, 10 * time.Second
)

// Publisher gives events their position in the feed. Any number of processes may run
// one: of those that want to publish at the same time, one does.
//
// The order is that in which events are found, neither a time nor a transaction: an event
// is found once it is committed, so one that commits late comes later, and nobody waits
// for a transaction that is open. Positions are given under a lock that is held until they
// are committed, so whoever sees one sees all before it. Of one application's events, the
// lock on the application makes the outbox's own order that of their numbers.
type Publisher struct {
	DB *postgres.DB
}

// Run publishes until ctx ends.
func (p *Publisher) Run(ctx context.Context) {
	listener := pq.NewListener(p.DB.URL(), leastPause, mostPause, nil)
	defer context.AfterFunc(ctx, func() { _ = listener.Close() })()
	_ = listener.Listen(outboxChannel) // fails only once it is closed
	look := leastLook
	for {
		published, err := p.publishAll(ctx)
		if err != nil && ctx.Err() == nil {
			slog.ErrorContext(ctx, "publishing events to the feed", "error", err)
		}
		pause, told := min(2*look, mostLook), listener.Notify
		look = pause
		if published > 0 {
			pause, told, look = gather, nil, leastLook
		}
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			return
		case <-told:
			look = leastLook
		case <-timer.C:
		}
		timer.Stop()
	}
}

// publishAll publishes all that waits, and numbers some of the older events.
func (p *Publisher) publishAll(ctx context.Context) (int, error) {
	all := 0
	for {
		now, err := p.publish(ctx)
		if all += now.Published; err != nil || now.Published < publishedTogether {
			if err == nil && now.Unnumbered {
				err = p.Number(ctx)
			}
			return all, err
		}
	}
}

// Publish publishes some of the events that wait and returns how many; 0 also while
// another process does.
func (p *Publisher) Publish(ctx context.Context) (int, error) {
	now, err := p.publish(ctx)
	return now.Published, err
}

// round is what one statement published.
type round struct {
	Published int `db:"published"`
	// Unnumbered tells that there are events from before there were numbers.
	Unnumbered bool `db:"unnumbered"`
}

// publish is one statement and so one transaction, since each of its own costs as much as
// the events of several. It has the head as it stands when it has locked it, which may be
// newer than the outbox that it sees: what another process has published since is there still, but
// to be deleted it is looked at anew, and then passed over.
func (p *Publisher) publish(ctx context.Context) (round, error) {
	var now round
	err := p.DB.GetContext(ctx, &now, `
		WITH head AS MATERIALIZED (
			SELECT position FROM feed_head FOR UPDATE SKIP LOCKED
		), taken AS (
			DELETE FROM feed_outbox
			 WHERE outbox_id IN (
			           SELECT outbox_id
			             FROM feed_outbox
			            WHERE EXISTS (SELECT FROM head)
			            ORDER BY outbox_id
			            LIMIT $1)
			RETURNING *
		), placed AS (
			INSERT INTO feed (position, event_uid, occurred_at, merchant_uid, application_uid, kind)
			SELECT h.position + row_number() OVER (ORDER BY t.outbox_id), t.event_uid,
			       t.occurred_at, t.merchant_uid, t.application_uid, t.kind
			  FROM taken t
			 CROSS JOIN head h
			RETURNING position
		), counted AS (
			SELECT count(*) AS n, max(position) AS head FROM placed
		), moved AS (
			UPDATE feed_head h
			   SET position = c.head
			  FROM counted c
			 WHERE c.n > 0
		)
		SELECT n AS published,
		       EXISTS (SELECT FROM feed_head WHERE numbered_until IS NOT NULL) AS unnumbered
		  FROM counted
		 CROSS JOIN LATERAL (
		           SELECT CASE WHEN n > 0 THEN pg_notify($2, head::text) END
		       ) AS told`, publishedTogether, feedChannel)
	if err != nil {
		return round{}, fmt.Errorf("publishing events to the feed: %w", err)
	}
	return now, nil
}

// Number gives their numbers to the events of some applications that are older than
// this rule, by their times, and leads them into the feed. It does nothing once all have
// theirs, and tries again later where somebody holds one of the applications: publishing
// must not wait for that.
func (p *Publisher) Number(ctx context.Context) error {
	err := p.DB.InTx(ctx, p.number(ctx))
	if postgres.IsLockTimeout(err) {
		return nil
	}
	return err
}

func (p *Publisher) number(ctx context.Context) func(tx *postgres.Tx) error {
	return func(tx *postgres.Tx) error {
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
	}
}
