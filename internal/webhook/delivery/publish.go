package delivery

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
	"drawbridge/internal/webhook/subscription"
)

// Queue is the name of the queue of delivery jobs.
const Queue = "webhook"

// Args are the arguments of a job for one attempt of one delivery.
type Args struct {
	DeliveryUID uuid.UUID `db:"delivery_uid" json:"delivery_uid"`
	// CreatedAt is the delivery's creation time, which determines its partition.
	CreatedAt time.Time `db:"created_at" json:"created_at"`
	// Number is the attempt's number, from 1.
	Number int `db:"number" json:"number"`
}

// Kind names the job in the queue.
func (Args) Kind() string { return "webhook_deliver" }

// InsertOpts puts the job in its queue.
func (Args) InsertOpts() river.InsertOpts {
	return river.InsertOpts{Queue: Queue, MaxAttempts: MaxRuns}
}

// MaxRuns is how often the queue runs a job that ends with an internal error.
const MaxRuns = river.MaxAttemptsDefault

// FirstPriority is the priority of first attempts' jobs, which go before those that have
// waited already.
const FirstPriority = river.PriorityDefault

var _ rivertype.JobArgs = Args{}

// Event is a fact about an application that its partner is notified of.
type Event struct {
	UID            uuid.UUID
	Kind           lending.EventKind
	ApplicationUID uuid.UUID
	Status         string
	// Subject names the object whose state the event reports, such as task/UID.
	Subject string
	// Head and Tail are the body before and after its timestamp, which Publish sets.
	Head, Tail []byte
}

// publishEvents records events of different applications, and in the outbox the
// subscriptions that each must be delivered to. It is one statement, because this is the
// hot path of every change, and most of a statement's cost is fixed.
//
// The applications' rows are locked, and the time of each one's last event is moved on by at
// least a microsecond, so that application, status and timestamp together never name two
// events (specification section 6.1), even when a clock steps back. Under the same lock each
// event takes the application's next number, after those of events that are older than the
// numbering, and its place in the outbox. The statement also sets the application's
// updated_at, so callers that record an event need not. Partner and merchant are the
// application's. The subscriptions are read as they are when this statement begins, not when
// it commits: what follows from the event is decided here, and only carried out later.
var publishEvents = `
	WITH subject AS MATERIALIZED (
		UPDATE applications a
		   SET updated_at = ` + postgres.Later(`$2`, `a.updated_at`) + `,
		       last_event_at = greatest($2, a.last_event_at + interval '1 microsecond'),
		       last_sequence = 1 + coalesce(a.last_sequence,
		                                    drawbridge_number_events(a.application_uid))
		  FROM json_to_recordset($1) AS recorded (
		           application_uid uuid, event_uid uuid, kind text, choices text[], status text,
		           subject text, head text, tail text, place integer)
		 WHERE a.application_uid = recorded.application_uid
		RETURNING a.partner_uid, a.merchant_uid, a.last_event_at, a.last_sequence,
		          a.external_reference, a.updated_at, recorded.*
	), considered AS MATERIALIZED (
		SELECT a.event_uid,
		       s.subscription_uid,
		       s.version,
		       CASE
		           WHEN NOT s.events && a.choices THEN 'event'
		           WHEN NOT s.all_merchants AND NOT EXISTS (
		                    SELECT 1
		                      FROM subscription_merchants m
		                     WHERE m.subscription_uid = s.subscription_uid
		                       AND m.merchant_uid = a.merchant_uid) THEN 'merchant'
		       END AS passed_over
		  FROM subject a
		  JOIN subscriptions s USING (partner_uid)
		 WHERE s.state <> 'deleted'
	), verdict AS MATERIALIZED (
		SELECT event_uid,
		       array_agg(subscription_uid) FILTER (WHERE passed_over IS NULL) AS owed,
		       array_agg(drawbridge_uid($2)) FILTER (WHERE passed_over IS NULL) AS deliveries,
		       jsonb_agg(jsonb_build_object(
		           's', subscription_uid, 'v', version, 'w', passed_over))
		           FILTER (WHERE passed_over IS NOT NULL) AS passed_over
		  FROM considered
		 GROUP BY event_uid
	), event AS (
		INSERT INTO events (event_uid, occurred_at, kind, partner_uid, merchant_uid,
		                    application_uid, sequence, subject, reference, status, body,
		                    traceparent, passed_over)
		SELECT event_uid, last_event_at, kind, partner_uid, merchant_uid, application_uid,
		       last_sequence, subject, external_reference, status,
		       convert_to(head || to_char(last_event_at AT TIME ZONE 'UTC',
		           'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') || tail, 'UTF8'), $3,
		       coalesce(v.passed_over, '[]')
		  FROM subject
		  LEFT JOIN verdict v USING (event_uid)
	), unpublished AS (
		INSERT INTO outbox (event_uid, occurred_at, recorded_at, kind, status, merchant_uid,
		                    application_uid, sequence, owed, delivery_uids)
		SELECT event_uid, last_event_at, $2, kind, status, merchant_uid, application_uid,
		       last_sequence, coalesce(v.owed, '{}'), coalesce(v.deliveries, '{}')
		  FROM subject
		  LEFT JOIN verdict v USING (event_uid)
		 ORDER BY place
	)
	SELECT (SELECT count(*) FROM subject) AS recorded,
	       (SELECT count(*) FROM considered WHERE passed_over IS NULL) AS deliveries,
	       (SELECT coalesce(max(updated_at), $2) FROM subject) AS updated_at`

// publishEvent is publishEvents for a single event. The server plans it for a single row,
// which in the usual case avoids a scan of all applications.
var publishEvent = strings.Replace(publishEvents, "json_to_recordset", "json_to_record", 1)

// Published is the result of publishing events.
type Published struct {
	// Deliveries is how many deliveries there will be.
	Deliveries int
	// ChangedAt is the latest updated_at that an application got.
	ChangedAt time.Time
}

// Publish writes events with their bodies, and the subscriptions of their partner that
// each must be delivered to, all in the caller's transaction. An event's time is tx.Now,
// or just after the application's last event. Once the transaction has committed, the
// outbox creates the deliveries and their jobs.
//
// It also records which subscriptions it passed over and why, so that the ledger need not
// guess. A paused subscription gets its delivery and job too; the job parks the delivery
// under a lock, which a simultaneous resumption cannot miss.
func (s *Service) Publish(
	ctx context.Context, tx *postgres.Tx, events ...Event,
) (all Published, err error) {
	for len(events) > 0 {
		// The first event of each application now, its other events in later iterations.
		var now, later []Event
		seen := make(map[uuid.UUID]bool, len(events))
		for _, event := range events {
			if seen[event.ApplicationUID] {
				later = append(later, event)
				continue
			}
			seen[event.ApplicationUID] = true
			now = append(now, event)
		}
		events = later
		made, err := s.publish(ctx, tx, now)
		if err != nil {
			return Published{}, fmt.Errorf("publishing %d events, the first %s of application %s: %w",
				len(now), now[0].Kind, now[0].ApplicationUID, err)
		}
		all.Deliveries += made.Deliveries
		if made.ChangedAt.After(all.ChangedAt) {
			all.ChangedAt = made.ChangedAt
		}
	}
	if s.Recorded != nil {
		tx.AfterCommit(s.Recorded)
	}
	return all, nil
}

type eventRow struct {
	ApplicationUID uuid.UUID         `json:"application_uid"`
	UID            uuid.UUID         `json:"event_uid"`
	Kind           lending.EventKind `json:"kind"`
	Choices        []string          `json:"choices"`
	Status         string            `json:"status"`
	Subject        string            `json:"subject"`
	Head           string            `json:"head"`
	Tail           string            `json:"tail"`
	Place          int               `json:"place"`
}

func (s *Service) publish(
	ctx context.Context, tx *postgres.Tx, events []Event,
) (made Published, err error) {
	rows := make([]eventRow, len(events))
	for place, e := range events {
		rows[place] = eventRow{
			e.ApplicationUID, e.UID, e.Kind, e.Kind.Choices(), e.Status, e.Subject,
			string(e.Head), string(e.Tail), place,
		}
	}
	statement, sent := publishEvents, any(rows)
	if len(rows) == 1 {
		statement, sent = publishEvent, rows[0]
	}
	encoded, err := json.Marshal(sent)
	if err != nil {
		return Published{}, fmt.Errorf("writing the events: %w", err)
	}
	var found int
	err = tx.QueryRowContext(ctx, statement, string(encoded), tx.Now, traceparent(ctx)).
		Scan(&found, &made.Deliveries, &made.ChangedAt)
	if err == nil && found != len(events) {
		err = fmt.Errorf("%d of them are of no application", len(events)-found)
	}
	return made, err
}

// enqueue adds the jobs to the caller's transaction.
func (s *Service) enqueue(ctx context.Context, tx *sql.Tx, jobs []Args) error {
	if len(jobs) == 0 {
		return nil
	}
	params := make([]river.InsertManyParams, 0, len(jobs))
	for _, job := range jobs {
		priority := FirstPriority
		if job.Number > 1 {
			priority++
		}
		params = append(params, river.InsertManyParams{
			Args: job, InsertOpts: &river.InsertOpts{Priority: priority},
		})
	}
	if _, err := s.Jobs.InsertManyFastTx(ctx, tx, params); err != nil {
		return fmt.Errorf("inserting %d delivery jobs: %w", len(jobs), err)
	}
	return nil
}

// Test sends a sample event of the kind to one subscription, whatever events
// it chose, and returns the delivery. It is marked as a test on the wire and
// counts in no statistics. Errors: NOT_FOUND, VALIDATION_ERROR for an unknown
// kind, INVALID_STATE while the subscription is paused.
func (s *Service) Test(
	ctx context.Context, tx *postgres.Tx, uid uuid.UUID, kind lending.EventKind,
) (uuid.UUID, error) {
	sample, err := lending.SampleEvent(kind)
	if err != nil {
		return uuid.Nil, err
	}
	row, err := subscription.Lock(ctx, tx, uid)
	if err != nil {
		return uuid.Nil, err
	}
	if row.State == subscription.StatePaused {
		return uuid.Nil, lending.NewError(lending.CodeInvalidState,
			"the subscription is paused; resume it to send a test event")
	}
	body, err := sample.Render(tx.Now)
	if err != nil {
		return uuid.Nil, err
	}
	eventUID, deliveryUID := postgres.NewUID(tx.Now), postgres.NewUID(tx.Now)
	_, err = tx.ExecContext(ctx, `
		WITH event AS (
			INSERT INTO events (event_uid, occurred_at, kind, partner_uid, status, body)
			VALUES ($1, $2, $3, $4, $5, $6)
		)
		INSERT INTO deliveries (delivery_uid, created_at, subscription_uid, event_uid, event_at,
		                        event, status, test, state, next_attempt_at, queued)
		VALUES ($7, $2, $8, $1, $2, $3, $5, true, 'pending', $2, true)`,
		eventUID, tx.Now, string(kind), row.PartnerUID, sample.Status, body, deliveryUID, uid)
	if err != nil {
		return uuid.Nil, fmt.Errorf("inserting a test event for subscription %s: %w", uid, err)
	}
	return deliveryUID, s.enqueue(ctx, tx.Tx.Tx,
		[]Args{{DeliveryUID: deliveryUID, CreatedAt: tx.Now, Number: 1}})
}
