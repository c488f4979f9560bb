package delivery

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/lib/pq"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
	"drawbridge/internal/webhook/sender"
	"drawbridge/internal/webhook/subscription"
)

// sampleApplication is the application named in test events; no application has this id.
var sampleApplication = uuid.MustParse(lending.SampleApplicationUID)

const deliveryColumns = `
	d.delivery_uid, d.created_at, d.subscription_uid, s.partner_uid, p.name AS partner_name,
	` + subscription.EndpointColumns + `, d.event_uid, d.event_at, d.event,
	coalesce(d.application_uid, '` + lending.SampleApplicationUID + `') AS application_uid,
	d.status, d.test, d.state, d.attempt_count, d.next_attempt_at, d.parked,
	s.state = 'paused' AS paused, d.last_http_status, d.last_error_class, d.last_duration_us,
	d.finished_at, d.resend_of, d.resent_by, d.resend_reason, d.made_good_by`

const deliveryTables = `
	 FROM deliveries d
	 JOIN subscriptions s USING (subscription_uid)
	 JOIN partners p USING (partner_uid)`

// List returns one page of the deliveries that match, newest first, and the cursor of the
// next. Error: VALIDATION_ERROR for the limit.
func (l *Log) List(
	ctx context.Context, filter Filter, page postgres.Paging,
) ([]Delivery, postgres.Cursor, error) {
	if err := page.Check(); err != nil {
		return nil, postgres.Cursor{}, err
	}
	scope, err := scopeOf(ctx, l.DB, filter)
	if err != nil || scope.none {
		return nil, postgres.Cursor{}, err
	}
	query, args := scope.query(page)
	var rows []Delivery
	if err := l.DB.SelectContext(ctx, &rows, query, args...); err != nil {
		return nil, postgres.Cursor{}, fmt.Errorf("listing deliveries: %w", err)
	}
	rows, next := postgres.Page(rows, page.Limit, Delivery.Place)
	return rows, next, nil
}

// ListNamed is List with Subject and LastURL filled in: what the event is about, and
// where the last attempt went.
func (l *Log) ListNamed(
	ctx context.Context, filter Filter, page postgres.Paging,
) ([]Delivery, postgres.Cursor, error) {
	rows, next, err := l.List(ctx, filter, page)
	if err != nil || len(rows) == 0 {
		return rows, next, err
	}
	deliveries, created := make([]uuid.UUID, len(rows)), make([]time.Time, len(rows))
	events, occurred := make([]uuid.UUID, len(rows)), make([]time.Time, len(rows))
	for i, row := range rows {
		deliveries[i], created[i] = row.UID, row.CreatedAt
		events[i], occurred[i] = row.EventUID, row.EventAt
	}
	var names []struct {
		Subject string `db:"subject"`
		URL     string `db:"url"`
	}
	// Each row is looked up by its key, which also determines the partition.
	err = l.DB.SelectContext(ctx, &names, `
		SELECT coalesce((SELECT subject
		                   FROM events
		                  WHERE event_uid = r.event_uid
		                    AND occurred_at = r.event_at), '') AS subject,
		       coalesce((SELECT url
		                   FROM attempts
		                  WHERE delivery_uid = r.delivery_uid
		                    AND delivery_created_at = r.created_at
		                  ORDER BY number DESC
		                  LIMIT 1), '') AS url
		  FROM unnest($1::uuid[], $2::timestamptz[], $3::uuid[], $4::timestamptz[])
		       WITH ORDINALITY AS r (delivery_uid, created_at, event_uid, event_at, place)
		 ORDER BY r.place`,
		pq.Array(deliveries), pq.Array(created), pq.Array(events), pq.Array(occurred))
	if err != nil {
		return nil, postgres.Cursor{}, fmt.Errorf("naming %d deliveries: %w", len(rows), err)
	}
	for i, name := range names {
		rows[i].Subject, rows[i].LastURL = name.Subject, name.URL
	}
	return rows, next, nil
}

// Get returns a delivery with its attempts, or NOT_FOUND.
func (l *Log) Get(ctx context.Context, uid uuid.UUID) (Detail, error) {
	var detail Detail
	err := l.DB.GetContext(ctx, &detail.Delivery,
		`SELECT `+deliveryColumns+deliveryTables+` WHERE d.delivery_uid = $1`, uid)
	err = postgres.RowError(err,
		lending.NewError(lending.CodeNotFound, "no delivery has the id %s", uid),
		"loading delivery %s", uid)
	if err != nil {
		return Detail{}, err
	}
	err = l.DB.QueryRowContext(ctx, `
		SELECT body, body_removed_at, coalesce(subject, '')
		  FROM events
		 WHERE event_uid = $1
		   AND occurred_at = $2`, detail.EventUID, detail.EventAt,
	).Scan(&detail.Body, &detail.BodyRemovedAt, &detail.Subject)
	if err != nil {
		return Detail{}, fmt.Errorf("loading the event of delivery %s: %w", uid, err)
	}
	if detail.Attempts, err = loadAttempts(ctx, l.DB, detail.Delivery); err != nil {
		return Detail{}, err
	}
	if last := len(detail.Attempts) - 1; last >= 0 {
		detail.LastURL = detail.Attempts[last].URL
	}
	err = l.DB.SelectContext(ctx, &detail.Resends,
		`SELECT delivery_uid FROM deliveries WHERE resend_of = $1 ORDER BY created_at`, uid)
	if err != nil {
		return Detail{}, fmt.Errorf("loading the re-sends of delivery %s: %w", uid, err)
	}
	return detail, nil
}

func loadAttempts(ctx context.Context, db *postgres.DB, delivery Delivery) ([]Attempt, error) {
	var rows []struct {
		Attempt
		Request  []byte `db:"request_headers"`
		Response []byte `db:"response_headers"`
	}
	err := db.SelectContext(ctx, &rows, `
		SELECT number, started_at, duration_us * 1000 AS duration,
		       coalesce(dns_us, 0) * 1000 AS dns, coalesce(connect_us, 0) * 1000 AS connect,
		       coalesce(tls_us, 0) * 1000 AS tls, coalesce(first_byte_us, 0) * 1000 AS first_byte,
		       coalesce(subscription_version, 0) AS subscription_version,
		       coalesce(url, '') AS url, coalesce(http_status, 0) AS http_status,
		       coalesce(error_class, '') AS error_class, coalesce(cause, '') AS cause,
		       coalesce(error, '') AS error, coalesce(note, '') AS note,
		       coalesce(address, '') AS address, coalesce(protocol, '') AS protocol, reused,
		       coalesce(tls_version, '') AS tls_version, certificate_expires, content_removed_at,
		       request_headers, response_headers, response_body,
		       CASE WHEN number = 1 THEN coalesce((
		           SELECT fault
		             FROM sandbox_fault_uses
		            WHERE delivery_uid = $1), '') ELSE '' END AS fault
		  FROM attempts
		 WHERE delivery_uid = $1
		   AND delivery_created_at = $2
		 ORDER BY number`, delivery.UID, delivery.CreatedAt)
	if err != nil {
		return nil, fmt.Errorf("loading the attempts of delivery %s: %w", delivery.UID, err)
	}
	attempts := make([]Attempt, 0, len(rows))
	for _, row := range rows {
		row.Cause = cmp.Or(row.Cause, sender.CauseOf(row.Error))
		err := errors.Join(json.Unmarshal(row.Request, &row.RequestHeaders),
			json.Unmarshal(row.Response, &row.ResponseHeaders))
		if err != nil {
			return nil, fmt.Errorf("reading the headers of attempt %d of delivery %s: %w",
				row.Number, delivery.UID, err)
		}
		attempts = append(attempts, row.Attempt)
	}
	return attempts, nil
}
