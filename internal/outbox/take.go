package outbox

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"drawbridge/internal/feed"
	"drawbridge/internal/webhook/delivery"
)

type batch struct {
	Published int `db:"published"`
	// Alone means that no other process published meanwhile, which would leave nothing to take.
	Alone bool `db:"alone"`
	// Full means that more may wait.
	Full bool `db:"is_full"`
	// Last is the outbox id of the last event that was taken, Newest the newest one assigned
	// to any event.
	Last   int64 `db:"last"`
	Newest int64 `db:"newest"`
	// Unnumbered means that there are events older than the numbering.
	Unnumbered bool `db:"unnumbered"`
}

// feedKey is violated when a position is assigned that another process has just assigned.
const feedKey = "feed_pkey"

// takeDue publishes up to $1 of the events that wait from outbox id $2 on. It leaves out the
// applications in $3 and those that are overtaken: their event before these committed late,
// and waits before $2. The lock on the head keeps other processes out until the positions
// are committed. Rows that another process has taken since this statement's snapshot are
// still visible in it, but DELETE checks them again and skips them. Rows of the outbox are
// deleted by ctid, since an index scan would step over all rows that an open transaction
// keeps from being removed; so would a scan of the ids before $2, hence the CASE. The limit,
// of all rows, makes the planner expect one row and look each up by its ctid.
//
// A server that was promoted may lack the last commits of the old primary. So that readers of those
// commits do not skip the events that get the same positions now, the head moves by feed.Gap as
// soon as the server's timeline has changed, in the first statement that publishes on it.
//
// The job's row is the one that the queue's client would write, with the database's
// times: by those the queue decides which jobs are due.
const takeDue = `
	WITH head AS MATERIALIZED (
		SELECT h.position + CASE WHEN f.timeline <> server.timeline THEN $11::bigint ELSE 0 END
		           AS position,
		       f.timeline AS former, server.timeline
		  FROM feed_head h
		 CROSS JOIN feed_floor f
		 CROSS JOIN (SELECT drawbridge_timeline() AS timeline) AS server
		   FOR UPDATE OF h, f SKIP LOCKED
	), promoted AS (
		UPDATE feed_floor f
		   SET position = h.position, timeline = h.timeline
		  FROM head h
		 WHERE h.timeline <> coalesce(h.former, '')
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
	       EXISTS (SELECT FROM head) AS alone,
	       EXISTS (SELECT FROM due)
	           AND (SELECT count(*) >= $1 OR max(ahead) >= $4 FROM waiting) AS is_full,
	       coalesce((SELECT max(outbox_id) FROM taken), 0) AS last,
	       coalesce(pg_sequence_last_value('feed_outbox_outbox_id_seq'), 0) AS newest,
	       EXISTS (SELECT FROM feed_head WHERE numbered_until IS NOT NULL) AS unnumbered`

// queueNotification tells the queue's workers that a job was inserted.
const queueNotification = `{"queue": "` + delivery.Queue + `"}`

// take publishes up to most events, leaving out those of some applications.
func take(
	ctx context.Context, on sqlx.QueryerContext, from int64, most int, except []uuid.UUID,
) (now batch, err error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	err = sqlx.GetContext(ctx, on, &now, takeDue, most, from, pq.Array(except), deliveriesTogether,
		delivery.Args{}.Kind(), delivery.MaxRuns, delivery.FirstPriority, delivery.Queue,
		feed.Channel, queueNotification, feed.Gap)
	if err != nil {
		return batch{}, fmt.Errorf("publishing events: %w", err)
	}
	return now, nil
}
