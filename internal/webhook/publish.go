package webhook

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
)

// Queue is the name of the queue that deliveries are worked in.
const Queue = "webhook"

// DeliverArgs asks for one attempt of one delivery.
type DeliverArgs struct {
	DeliveryUID uuid.UUID `json:"delivery_uid"`
	// CreatedAt is the delivery's, and leads to its partition.
	CreatedAt time.Time `json:"created_at"`
	// Number is the attempt's, from 1.
	Number int `json:"number"`
}

// Kind names the job in the queue.
func (DeliverArgs) Kind() string { return "webhook_deliver" }

// InsertOpts puts the job in its queue.
func (DeliverArgs) InsertOpts() river.InsertOpts { return river.InsertOpts{Queue: Queue} }

// Inserter is the part of the queue's client that adds jobs to the caller's
// transaction; it is the one seam to the queue on this side.
type Inserter interface {
	InsertManyFastTx(
		ctx context.Context, tx *sql.Tx, params []river.InsertManyParams,
	) (int, error)
}

var _ rivertype.JobArgs = DeliverArgs{}

// Event is a fact to tell a partner, with its body rendered for good.
type Event struct {
	UID            uuid.UUID
	Kind           lending.EventKind
	OccurredAt     time.Time
	PartnerUID     uuid.UUID
	MerchantUID    uuid.UUID
	ApplicationUID uuid.UUID
	Status         string
	Body           []byte
}

// Publish writes the event, one delivery for each subscription of the partner
// that wants it, and the delivery's job, all in the caller's transaction, and
// returns how many deliveries that made.
//
// Event and deliveries are one statement: this is the hot path of every
// change. It also writes down which subscriptions it passed over and why, so
// that Verdicts need not guess. A paused subscription gets its delivery and job too; the job parks
// the delivery under a lock, which a simultaneous resumption cannot miss.
func (s *Service) Publish(ctx context.Context, tx *postgres.Tx, e Event) (int, error) {
	rows, err := tx.QueryContext(ctx, `
		WITH considered AS MATERIALIZED (
			SELECT s.subscription_uid,
			       s.version,
			       CASE
			           WHEN s.events <> ARRAY['all'] AND $3 <> ALL (s.events) THEN 'event'
			           WHEN NOT s.all_merchants AND NOT EXISTS (
			                    SELECT 1
			                      FROM subscription_merchants m
			                     WHERE m.subscription_uid = s.subscription_uid
			                       AND m.merchant_uid = $5) THEN 'merchant'
			       END AS passed_over
			  FROM subscriptions s
			 WHERE s.partner_uid = $4
			   AND s.state <> 'deleted'
		), event AS (
			INSERT INTO events (event_uid, occurred_at, kind, partner_uid, merchant_uid,
			                    application_uid, status, body, traceparent, passed_over)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $10, (
			            SELECT coalesce(jsonb_agg(jsonb_build_object(
			                       's', subscription_uid, 'v', version, 'w', passed_over)), '[]')
			              FROM considered
			             WHERE passed_over IS NOT NULL))
		)
		INSERT INTO deliveries (delivery_uid, created_at, subscription_uid, event_uid, event_at,
		                        event, application_uid, status, state, next_attempt_at, queued)
		SELECT drawbridge_uid($9), $9, subscription_uid, $1, $2, $3, $6, $7, 'pending', $9, true
		  FROM considered
		 WHERE passed_over IS NULL
		RETURNING delivery_uid`,
		e.UID, e.OccurredAt, string(e.Kind), e.PartnerUID, e.MerchantUID,
		e.ApplicationUID, e.Status, e.Body, tx.Now, traceparent(ctx))
	if err != nil {
		return 0, fmt.Errorf("inserting event %s: %w", e.Kind, err)
	}
	uids, err := scanUIDs(rows)
	if err != nil {
		return 0, fmt.Errorf("inserting deliveries of event %s: %w", e.Kind, err)
	}
	jobs := make([]DeliverArgs, 0, len(uids))
	for _, uid := range uids {
		jobs = append(jobs, DeliverArgs{DeliveryUID: uid, CreatedAt: tx.Now, Number: 1})
	}
	return len(uids), s.enqueue(ctx, tx, jobs)
}

// enqueue adds the jobs to the caller's transaction.
func (s *Service) enqueue(ctx context.Context, tx *postgres.Tx, jobs []DeliverArgs) error {
	if len(jobs) == 0 {
		return nil
	}
	params := make([]river.InsertManyParams, 0, len(jobs))
	for _, job := range jobs {
		// First attempts go before those that have waited already.
		priority := river.PriorityDefault
		if job.Number > 1 {
			priority++
		}
		params = append(params, river.InsertManyParams{
			Args: job, InsertOpts: &river.InsertOpts{Priority: priority},
		})
	}
	if _, err := s.Jobs.InsertManyFastTx(ctx, tx.Tx.Tx, params); err != nil {
		return fmt.Errorf("inserting %d delivery jobs: %w", len(jobs), err)
	}
	return nil
}

func scanUIDs(rows *sql.Rows) ([]uuid.UUID, error) {
	defer rows.Close()
	var uids []uuid.UUID
	for rows.Next() {
		var uid uuid.UUID
		if err := rows.Scan(&uid); err != nil {
			return nil, fmt.Errorf("reading an identifier: %w", err)
		}
		uids = append(uids, uid)
	}
	return uids, rows.Err()
}
