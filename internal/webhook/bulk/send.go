package bulk

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/lib/pq"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
	"drawbridge/internal/webhook/subscription"
)

const (
	// advanceInterval is how often a bulk re-send that has something to send advances.
	advanceInterval = time.Second
	// longestRest is the longest pause of a bulk re-send that only waits for outcomes.
	longestRest = 30 * time.Second
	// burst bounds how much a bulk re-send catches up after a standstill, as time at the pace.
	burst = 2 * time.Second
	// window bounds, as time at the pace, how much may be under way to one subscription:
	// behind a slow or failing endpoint a bulk re-send slows down instead of queueing in
	// front of new events.
	window = 30 * time.Second
	// minWindow is the smallest such bound, in deliveries.
	minWindow = 50
	// settleCost is how long, for each delivery under way, to wait between two reads of
	// their outcomes: the more there are to read, the less often they are read.
	settleCost = time.Millisecond
)

// Advance advances a bulk re-send: it sends what the pace allows now, records the
// outcomes of sent deliveries, and closes the re-send after the last one. It returns how
// long to wait before calling it again; zero means never.
//
// All of it is one transaction that holds the row of the bulk re-send, so any number of
// workers may call: one works, the others return. An item and its new delivery are
// written by one statement, so a worker that dies leaves an item either waiting or sent,
// never both.
func (s *Service) Advance(ctx context.Context, job Args) (time.Duration, error) {
	var next time.Duration
	err := s.DB.InTx(ctx, func(tx *postgres.Tx) error {
		bulk, wait, err := take(ctx, tx, job)
		if next = wait; err != nil || bulk == nil {
			return err
		}
		since := tx.Now.Sub(postgres.OrZero(bulk.SettledAt))
		if since >= time.Duration(bulk.Counts.Sent)*settleCost {
			if err := settle(ctx, tx, bulk.UID); err != nil {
				return err
			}
		}
		targets, err := targetsOf(ctx, tx, bulk.UID, ` AND l.waiting + l.sent > 0`+inOrder)
		if err != nil {
			return err
		}
		if err := bulk.sendAll(ctx, tx, targets); err != nil {
			return err
		}
		next, err = bulk.rest(ctx, tx, targets)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("moving bulk re-send %s on: %w", job.BulkUID, err)
	}
	return next, nil
}

// take locks the row of a bulk re-send. If it returns none, it says when to try again:
// soon if another worker has it, never if the job is out of date.
func take(ctx context.Context, tx *postgres.Tx, job Args) (*row, time.Duration, error) {
	row, err := get(ctx, tx, job.BulkUID)
	if lending.ErrorCode(err) == lending.CodeNotFound {
		return nil, 0, nil
	}
	if err != nil || row.Run != job.Run {
		return nil, 0, err
	}
	var taken uuid.UUID
	err = tx.GetContext(ctx, &taken, `
		SELECT bulk_uid
		  FROM bulk_resends
		 WHERE bulk_uid = $1
		   FOR NO KEY UPDATE SKIP LOCKED`, job.BulkUID)
	if postgres.IsNoRows(err) {
		return nil, advanceInterval, nil
	}
	if err != nil {
		return nil, 0, err
	}
	// Read it again now that nobody else can change it.
	row, err = get(ctx, tx, job.BulkUID)
	if err != nil || row.Run != job.Run {
		return nil, 0, err
	}
	return &row, 0, nil
}

// portion is what goes to one target now.
type portion struct {
	target      *Target
	pace, count int
	// pacedAt is the time up to which the pace is used up once the portion is sent.
	pacedAt time.Time
}

// sendAll sends each target what may go to it now.
func (r row) sendAll(ctx context.Context, tx *postgres.Tx, targets []Target) error {
	var portions []portion
	for i := range targets {
		target := &targets[i]
		switch {
		case r.State != StateRunning, target.Waiting == 0, target.State == subscription.StatePaused:
		case target.State == subscription.StateDeleted:
			if err := r.skipTarget(ctx, tx, target); err != nil {
				return err
			}
		default:
			portions = append(portions, r.portionOf(target, tx.Now))
		}
	}
	portions = slices.DeleteFunc(portions, func(due portion) bool { return due.count == 0 })
	if err := r.lockEvents(ctx, tx, portions); err != nil {
		return err
	}
	for _, due := range portions {
		if err := r.send(ctx, tx, due); err != nil {
			return err
		}
	}
	return nil
}

// portionOf returns how many waiting items a target's pace and its open deliveries allow.
func (r row) portionOf(target *Target, now time.Time) portion {
	pace := target.PaceOf(r.Options.Pace)
	pacedAt := target.PacedAt
	// A time far in the past means a standstill, one far in the future a clock that ran ahead.
	if earliest := now.Add(-burst); pacedAt.Before(earliest) || pacedAt.After(now.Add(burst)) {
		pacedAt = earliest
	}
	each := time.Second / time.Duration(pace)
	room := max(minWindow, int(window.Seconds())*pace) - target.Sent
	count := max(min(int(now.Sub(pacedAt)/each), target.Waiting, room), 0)
	return portion{target, pace, count, pacedAt.Add(time.Duration(count) * each)}
}

// lockEvents locks the events that are sent now against the removal of their bodies and against
// other bulk re-sends of them, in the order in which retention and other re-sends lock events.
// The statement after it sees which are gone, and which another re-send has sent meanwhile.
func (r row) lockEvents(ctx context.Context, tx *postgres.Tx, portions []portion) error {
	if len(portions) == 0 {
		return nil
	}
	uids, counts := make([]string, len(portions)), make([]int64, len(portions))
	for i, due := range portions {
		uids[i], counts[i] = due.target.SubscriptionUID.String(), int64(due.count)
	}
	_, err := tx.ExecContext(ctx, `
		SELECT e.event_uid
		  FROM unnest($2::uuid[], $3::bigint[]) AS due (subscription_uid, count)
		 CROSS JOIN LATERAL (
		           SELECT event_uid, event_at
		             FROM bulk_resend_items
		            WHERE bulk_uid = $1
		              AND subscription_uid = due.subscription_uid
		              AND state = 'waiting'
		            ORDER BY position
		            LIMIT due.count) i
		  JOIN events e ON e.event_uid = i.event_uid AND e.occurred_at = i.event_at
		 ORDER BY e.occurred_at, e.event_uid
		   FOR NO KEY UPDATE OF e`, r.UID, pq.Array(uids), pq.Array(counts))
	if err != nil {
		return fmt.Errorf("locking the events: %w", err)
	}
	return nil
}

// send creates the new deliveries that may go to one subscription now. They fall due one
// after the other at the pace, alongside new events.
func (r row) send(ctx context.Context, tx *postgres.Tx, due portion) error {
	target := due.target
	var states []ItemState
	err := tx.SelectContext(ctx, &states, sendItems,
		r.UID, target.SubscriptionUID, due.count, tx.Now, r.PartnerUID,
		r.Kind == KindRecover || r.Kind == KindReplay || r.Options.SkipDelivered, r.Options.SkipNewer,
		r.ConfirmedBy, r.Reason, due.pace)
	if err != nil {
		return fmt.Errorf("sending to subscription %s: %w", target.SubscriptionUID, err)
	}
	sent := 0
	for _, state := range states {
		if state == ItemSent {
			sent++
		}
	}
	skipped := len(states) - sent
	target.Waiting -= len(states)
	target.Sent += sent
	target.MovedAt = tx.Now
	_, err = tx.ExecContext(ctx, `
		UPDATE bulk_resend_lanes
		   SET waiting = waiting - $3 - $4, sent = sent + $3, skipped = skipped + $4,
		       paced_at = $5,
		       moved_at = $6
		 WHERE bulk_uid = $1
		   AND subscription_uid = $2`,
		r.UID, target.SubscriptionUID, sent, skipped, due.pacedAt, tx.Now)
	if err != nil {
		return fmt.Errorf("counting what was sent to %s: %w", target.SubscriptionUID, err)
	}
	return nil
}

// sendItems turns waiting items into new deliveries, in one statement.
//
// The event is searched for only among those of the bulk re-send's own partner. Items
// that have become pointless since the set was frozen are skipped: an event that is on
// its way by now; one of a recovery or a replay that has arrived; one that was delivered
// or overtaken, if the options leave those out.
var sendItems = `
	WITH claimed AS MATERIALIZED (
		SELECT position, event_uid, event_at, event, application_uid, status, test,
		       delivery_uid, drawbridge_uid($4) AS uid
		  FROM bulk_resend_items
		 WHERE bulk_uid = $1
		   AND subscription_uid = $2
		   AND state = 'waiting'
		 ORDER BY position
		 LIMIT $3
		   FOR UPDATE SKIP LOCKED
	), judged AS MATERIALIZED (
		SELECT position, c.event_uid, event_at, event, c.application_uid, c.status, test,
		       delivery_uid, uid,
		       CASE WHEN e.event_uid IS NULL OR e.body_removed_at IS NOT NULL THEN 'body_removed'
		            WHEN $6 AND b.delivered THEN 'delivered_already'
		            WHEN b.under_way THEN 'under_way'
		            WHEN max(l.newest_at) OVER (PARTITION BY c.application_uid) > event_at
		                THEN 'newer_delivered'
		       END AS skip
		  FROM (SELECT position, event_uid, event_at, event, application_uid, status, test,
		               delivery_uid, uid,
		               row_number() OVER (PARTITION BY application_uid ORDER BY event_at) AS nth
		          FROM claimed) c
		  ` + eventByKey("c", "e.partner_uid = $5") + `
		 ` + gotEvent("c", "$2", "true") + `
		 ` + gotNewest("c", "$2", "$7 AND c.nth = 1") + `
	), made AS (
		INSERT INTO deliveries (delivery_uid, created_at, subscription_uid, event_uid, event_at,
		                        event, application_uid, status, test, state,
		                        next_attempt_at, queued, resend_of, resent_by, resend_reason)
		SELECT uid, $4, $2, event_uid, event_at, event, application_uid, status, test,
		       'pending',
		       $4 + (row_number() OVER (ORDER BY position) - 1) * interval '1 second' / $10::integer,
		       false, delivery_uid,
		       CASE WHEN delivery_uid IS NOT NULL THEN $8 END,
		       CASE WHEN delivery_uid IS NOT NULL THEN $9 END
		  FROM judged
		 WHERE skip IS NULL
	)
	UPDATE bulk_resend_items i
	   SET state = CASE WHEN j.skip IS NULL THEN 'sent' ELSE 'skipped' END,
	       skip_reason = j.skip,
	       new_uid = CASE WHEN j.skip IS NULL THEN j.uid END,
	       new_created_at = CASE WHEN j.skip IS NULL THEN $4 END
	  FROM judged j
	 WHERE i.bulk_uid = $1
	   AND i.position = j.position
	RETURNING i.state`

// skipTarget skips the items that wait for a deleted subscription.
func (r row) skipTarget(ctx context.Context, tx *postgres.Tx, target *Target) error {
	_, err := tx.ExecContext(ctx, `
		WITH item AS (
			UPDATE bulk_resend_items
			   SET state = 'skipped',
			       skip_reason = 'subscription_deleted'
			 WHERE bulk_uid = $1
			   AND subscription_uid = $2
			   AND state = 'waiting'
		)
		UPDATE bulk_resend_lanes
		   SET skipped = skipped + waiting,
		       waiting = 0,
		       moved_at = $3
		 WHERE bulk_uid = $1
		   AND subscription_uid = $2`, r.UID, target.SubscriptionUID, tx.Now)
	if err != nil {
		return fmt.Errorf("giving up on subscription %s: %w", target.SubscriptionUID, err)
	}
	target.Waiting = 0
	return nil
}
