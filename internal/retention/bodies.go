package retention

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/lib/pq"

	"drawbridge/internal/postgres"
)

// bodyBatch is how many rows one transaction clears.
const bodyBatch = 500

// bodyKind is one kind of body and how its rows are processed, oldest first.
type bodyKind struct {
	name string
	// next selects the identifiers and times of the rows from $1 on and before $2, at least $3 of them
	// and all rows with the last one's time, and locks them.
	next string
	// clear empties the bodies of rows ($1 identifiers, $2 times) at the time $3.
	clear string
	// leave, which may be empty, records the rows that had to keep theirs. It selects the rows that
	// clear left: a delivery may have ended since.
	leave string
}

// legallyHeld selects the applications under a legal hold, which lose nothing.
const legallyHeld = `SELECT application_uid FROM application_holds WHERE released_at IS NULL`

// nothingToSend reports that event e has no open delivery and does not wait in the outbox for its
// deliveries. The transaction that takes it out of the outbox makes them, so a single statement
// sees one or the other.
const nothingToSend = `NOT EXISTS (
	SELECT 1
	  FROM deliveries d
	 WHERE d.event_uid = e.event_uid
	   AND d.state IN ('pending', 'retrying'))
	AND NOT ` + unpublished

// unpublished reports that event e waits in the outbox, which has an index by application.
const unpublished = `EXISTS (
	SELECT 1
	  FROM outbox o
	 WHERE o.application_uid = e.application_uid
	   AND o.event_uid = e.event_uid)`

// nextLocked locks the next rows before another statement checks for open deliveries: a re-send,
// which takes the same lock, is either visible to it or finds the body gone. Rows are locked in the
// order of re-sends, but chosen by time alone, so that a batch never splits rows of one time; the
// two bounds exclude the partitions of other months.
func nextLocked(table, uid, at string) string {
	return `
		SELECT ` + uid + ` AS uid, ` + at + ` AS at
		  FROM ` + table + `
		 WHERE ` + at + ` >= $1
		   AND ` + at + ` < $2
		   AND ` + at + ` <= (SELECT max(` + at + `)
		          FROM (SELECT ` + at + `
		                  FROM ` + table + `
		                 WHERE ` + at + ` >= $1
		                   AND ` + at + ` < $2
		                 ORDER BY ` + at + `
		                 LIMIT $3) AS due)
		 ORDER BY ` + at + `, ` + uid + `
		   FOR NO KEY UPDATE`
}

// bodyKinds are the kinds of bodies, in the order in which they are removed.
var bodyKinds = []bodyKind{
	{
		name: "events",
		next: nextLocked("events", "event_uid", "occurred_at"),
		clear: `
			UPDATE events e
			   SET body = '', body_removed_at = $3
			  FROM unnest($1::uuid[], $2::timestamptz[]) AS row (uid, at)
			 WHERE e.event_uid = row.uid
			   AND e.occurred_at = row.at
			   AND e.body_removed_at IS NULL
			   AND (e.application_uid IS NULL OR e.application_uid NOT IN (` + legallyHeld + `))
			   AND ` + nothingToSend,
		leave: `
			INSERT INTO retention_leftovers (event_uid, occurred_at)
			SELECT e.event_uid, e.occurred_at
			  FROM unnest($1::uuid[], $2::timestamptz[]) AS row (uid, at)
			  JOIN events e ON e.event_uid = row.uid AND e.occurred_at = row.at
			 WHERE e.body_removed_at IS NULL
			   AND (e.application_uid IS NULL OR e.application_uid NOT IN (` + legallyHeld + `))
			    ON CONFLICT DO NOTHING`,
	},
	{
		name: "attempts",
		next: `
			SELECT delivery_uid AS uid, created_at AS at
			  FROM deliveries
			 WHERE created_at >= $1
			   AND created_at < $2
			 ORDER BY created_at
			 FETCH FIRST $3 ROWS WITH TIES`,
		clear: `
			UPDATE attempts a
			   SET request_headers = '[]', response_headers = '[]', response_body = NULL,
			       content_removed_at = $3
			  FROM unnest($1::uuid[], $2::timestamptz[]) AS row (uid, at)
			  JOIN deliveries d ON d.delivery_uid = row.uid AND d.created_at = row.at
			 WHERE a.delivery_uid = row.uid
			   AND a.delivery_created_at = row.at
			   AND a.content_removed_at IS NULL
			   AND (d.application_uid IS NULL OR d.application_uid NOT IN (` + legallyHeld + `))`,
	},
	{
		name: "emails",
		next: nextLocked("emails", "email_uid", "created_at"),
		clear: `
			UPDATE emails e
			   SET html_body = '', text_body = '', source = '', params = '{}',
			       content_removed_at = $3
			  FROM unnest($1::uuid[], $2::timestamptz[]) AS row (uid, at)
			 WHERE e.email_uid = row.uid
			   AND e.created_at = row.at
			   AND e.content_removed_at IS NULL
			   AND e.state <> 'queued'
			   AND (e.application_uid IS NULL OR e.application_uid NOT IN (` + legallyHeld + `))`,
		leave: `
			INSERT INTO retention_email_leftovers (email_uid)
			SELECT e.email_uid
			  FROM unnest($1::uuid[], $2::timestamptz[]) AS row (uid, at)
			  JOIN emails e ON e.email_uid = row.uid AND e.created_at = row.at
			 WHERE e.content_removed_at IS NULL
			   AND (e.application_uid IS NULL OR e.application_uid NOT IN (` + legallyHeld + `))
			    ON CONFLICT DO NOTHING`,
	},
}

// place is the identifier of a row and its time.
type place struct {
	UID uuid.UUID `db:"uid"`
	At  time.Time `db:"at"`
}

// before returns the batch that clears the next rows from before cutoff and advances the mark at
// which the following batch begins.
func (m bodyKind) before(cutoff time.Time) batch {
	return func(ctx context.Context, tx *postgres.Tx) (count int, more bool, err error) {
		mark := time.Unix(0, 0).UTC()
		err = tx.GetContext(ctx, &mark,
			`SELECT done_until FROM retention_progress WHERE matter = $1 FOR UPDATE`, m.name)
		if err != nil && !postgres.IsNoRows(err) {
			return 0, false, fmt.Errorf("loading the mark: %w", err)
		}
		var rows []place
		if err := tx.SelectContext(ctx, &rows, m.next, mark, cutoff, bodyBatch); err != nil {
			return 0, false, fmt.Errorf("choosing the next rows: %w", err)
		}
		if count, err = m.clearRows(ctx, tx, rows); err != nil {
			return 0, false, err
		}
		next := cutoff
		if more = len(rows) >= bodyBatch; more {
			next = rows[len(rows)-1].At.Add(time.Microsecond)
		}
		// Never back: a longer retention does not restore bodies.
		_, err = tx.ExecContext(ctx, `
			INSERT INTO retention_progress AS p (matter, done_until)
			VALUES ($1, $2)
			ON CONFLICT (matter) DO UPDATE
			   SET done_until = greatest(p.done_until, excluded.done_until)`, m.name, next)
		if err != nil {
			return 0, false, fmt.Errorf("moving the mark: %w", err)
		}
		return count, more, nil
	}
}

func (m bodyKind) clearRows(ctx context.Context, tx *postgres.Tx, rows []place) (int, error) {
	if len(rows) == 0 {
		return 0, nil
	}
	uids, times := make([]string, len(rows)), make([]time.Time, len(rows))
	for i, row := range rows {
		uids[i], times[i] = row.UID.String(), row.At
	}
	count, err := postgres.Affected(
		tx.ExecContext(ctx, m.clear, pq.Array(uids), pq.Array(times), tx.Now))
	if err != nil {
		return 0, fmt.Errorf("clearing %d rows: %w", len(rows), err)
	}
	if m.leave == "" {
		return count, nil
	}
	if _, err := tx.ExecContext(ctx, m.leave, pq.Array(uids), pq.Array(times)); err != nil {
		return 0, fmt.Errorf("noting what had to stay: %w", err)
	}
	return count, nil
}

// removeLeftovers clears events that have nothing left to send, with the attempts of their
// deliveries. Those under a legal hold by now wait for its release.
func removeLeftovers(ctx context.Context, tx *postgres.Tx) (count int, more bool, err error) {
	var rows []place
	err = tx.SelectContext(ctx, &rows, `
		SELECT e.event_uid AS uid, e.occurred_at AS at
		  FROM retention_leftovers l
		  JOIN events e ON e.event_uid = l.event_uid AND e.occurred_at = l.occurred_at
		 WHERE `+nothingToSend+`
		   AND (e.application_uid IS NULL OR e.application_uid NOT IN (`+legallyHeld+`))
		 ORDER BY e.occurred_at, e.event_uid
		 LIMIT $1
		   FOR NO KEY UPDATE OF e`, bodyBatch)
	if err != nil || len(rows) == 0 {
		return 0, false, err
	}
	if _, err := bodyKinds[0].clearRows(ctx, tx, rows); err != nil {
		return 0, false, err
	}
	uids := make([]string, len(rows))
	for i, row := range rows {
		uids[i] = row.UID.String()
	}
	_, err = tx.ExecContext(ctx, `
		WITH cleared AS (
			UPDATE attempts a
			   SET request_headers = '[]', response_headers = '[]', response_body = NULL,
			       content_removed_at = $2
			  FROM deliveries d
			 WHERE d.event_uid = ANY ($1::uuid[])
			   AND a.delivery_uid = d.delivery_uid
			   AND a.delivery_created_at = d.created_at
			   AND a.content_removed_at IS NULL
		)
		DELETE FROM retention_leftovers l
		 USING events e
		 WHERE l.event_uid = ANY ($1::uuid[])
		   AND e.event_uid = l.event_uid
		   AND e.occurred_at = l.occurred_at
		   AND e.body_removed_at IS NOT NULL`, pq.Array(uids), tx.Now)
	if err != nil {
		return 0, false, fmt.Errorf("clearing attempts: %w", err)
	}
	return len(rows), len(rows) == bodyBatch, nil
}
