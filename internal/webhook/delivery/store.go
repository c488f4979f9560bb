package delivery

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
	"drawbridge/internal/webhook/sender"
)

// sampleApplication is what test events name; no application has it.
var sampleApplication = uuid.MustParse(lending.SampleApplicationUID)

const deliveryColumns = `
	d.delivery_uid, d.created_at, d.subscription_uid, s.partner_uid, p.name AS partner_name,
	s.url, d.event_uid, d.event_at, d.event,
	coalesce(d.application_uid, '` + lending.SampleApplicationUID + `') AS application_uid,
	d.status, d.test, d.state, d.attempt_count, d.next_attempt_at, d.parked, d.last_http_status,
	d.last_error_class, d.last_duration_us, d.finished_at, d.resend_of, d.resent_by,
	d.resend_reason`

const deliveryTables = `
	 FROM deliveries d
	 JOIN subscriptions s USING (subscription_uid)
	 JOIN partners p USING (partner_uid)`

// List returns one page of the deliveries that match, newest first.
// Error: VALIDATION_ERROR for the limit.
func (s *Service) List(ctx context.Context, filter Filter) (Page, error) {
	if err := postgres.CheckLimit(filter.Limit); err != nil {
		return Page{}, err
	}
	scope, err := scopeOf(ctx, s.DB, filter)
	if err != nil || scope.none {
		return Page{}, err
	}
	query, args := scope.query()
	var rows []Delivery
	if err := s.DB.SelectContext(ctx, &rows, query, args...); err != nil {
		return Page{}, fmt.Errorf("listing deliveries: %w", err)
	}
	rows, next := postgres.Page(rows, filter.Limit, Delivery.place)
	return Page{Deliveries: rows, Next: next}, nil
}

// Get returns a delivery with its attempts, or NOT_FOUND.
func (s *Service) Get(ctx context.Context, uid uuid.UUID) (Detail, error) {
	var detail Detail
	err := s.DB.GetContext(ctx, &detail.Delivery,
		`SELECT `+deliveryColumns+deliveryTables+` WHERE d.delivery_uid = $1`, uid)
	if postgres.IsNoRows(err) {
		return Detail{}, lending.NewError(lending.CodeNotFound,
			"no delivery has the id %s", uid)
	}
	if err != nil {
		return Detail{}, fmt.Errorf("loading delivery %s: %w", uid, err)
	}
	err = s.DB.QueryRowContext(ctx, `
		SELECT body, body_removed_at
		  FROM events
		 WHERE event_uid = $1
		   AND occurred_at = $2`, detail.EventUID, detail.EventAt,
	).Scan(&detail.Body, &detail.BodyRemovedAt)
	if err != nil {
		return Detail{}, fmt.Errorf("loading the event of delivery %s: %w", uid, err)
	}
	if detail.Attempts, err = loadAttempts(ctx, s.DB, detail.Delivery); err != nil {
		return Detail{}, err
	}
	err = s.DB.SelectContext(ctx, &detail.Resends,
		`SELECT delivery_uid FROM deliveries WHERE resend_of = $1 ORDER BY created_at`, uid)
	if err != nil {
		return Detail{}, fmt.Errorf("loading the re-sends of delivery %s: %w", uid, err)
	}
	return detail, nil
}

// attemptRow is an attempt as the table holds it.
type attemptRow struct {
	Number          int       `db:"number"`
	StartedAt       time.Time `db:"started_at"`
	Version         *int      `db:"subscription_version"`
	URL             *string   `db:"url"`
	HTTPStatus      *int      `db:"http_status"`
	ErrorClass      *string   `db:"error_class"`
	Cause           *string   `db:"cause"`
	Error           *string   `db:"error"`
	Note            *string   `db:"note"`
	Address         *string   `db:"address"`
	DNS             *int64    `db:"dns_us"`
	Connect         *int64    `db:"connect_us"`
	TLS             *int64    `db:"tls_us"`
	FirstByte       *int64    `db:"first_byte_us"`
	Duration        int64     `db:"duration_us"`
	RequestHeaders  []byte    `db:"request_headers"`
	ResponseHeaders []byte    `db:"response_headers"`
	ResponseBody    []byte    `db:"response_body"`

	Protocol           *string    `db:"protocol"`
	Reused             *bool      `db:"reused"`
	TLSVersion         *string    `db:"tls_version"`
	CertificateExpires *time.Time `db:"certificate_expires"`
	ContentRemovedAt   *time.Time `db:"content_removed_at"`
}

func loadAttempts(ctx context.Context, db *postgres.DB, delivery Delivery) ([]Attempt, error) {
	var rows []attemptRow
	err := db.SelectContext(ctx, &rows, `
		SELECT number, started_at, subscription_version, url, http_status, error_class, cause,
		       error, note, address, dns_us, connect_us, tls_us, first_byte_us, duration_us,
		       request_headers, response_headers, response_body, protocol, reused, tls_version,
		       certificate_expires, content_removed_at
		  FROM attempts
		 WHERE delivery_uid = $1
		   AND delivery_created_at = $2
		 ORDER BY number`, delivery.UID, delivery.CreatedAt)
	if err != nil {
		return nil, fmt.Errorf("loading the attempts of delivery %s: %w", delivery.UID, err)
	}
	records := make([]Attempt, 0, len(rows))
	for _, row := range rows {
		record, err := row.record()
		if err != nil {
			return nil, fmt.Errorf("reading attempt %d of delivery %s: %w",
				row.Number, delivery.UID, err)
		}
		records = append(records, record)
	}
	return records, nil
}

func (r attemptRow) record() (Attempt, error) {
	record := Attempt{
		Number:              r.Number,
		StartedAt:           r.StartedAt,
		Duration:            postgres.Duration(&r.Duration),
		DNS:                 postgres.Duration(r.DNS),
		Connect:             postgres.Duration(r.Connect),
		TLS:                 postgres.Duration(r.TLS),
		FirstByte:           postgres.Duration(r.FirstByte),
		SubscriptionVersion: postgres.OrZero(r.Version),
		URL:                 postgres.OrZero(r.URL),
		HTTPStatus:          postgres.OrZero(r.HTTPStatus),
		ErrorClass:          sender.ErrorClass(postgres.OrZero(r.ErrorClass)),
		Cause: cmp.Or(sender.Cause(postgres.OrZero(r.Cause)),
			sender.CauseOf(postgres.OrZero(r.Error))),
		Error:              postgres.OrZero(r.Error),
		Note:               postgres.OrZero(r.Note),
		Address:            postgres.OrZero(r.Address),
		ResponseBody:       r.ResponseBody,
		Protocol:           postgres.OrZero(r.Protocol),
		Reused:             r.Reused,
		TLSVersion:         postgres.OrZero(r.TLSVersion),
		CertificateExpires: r.CertificateExpires,
		ContentRemovedAt:   r.ContentRemovedAt,
	}
	if err := json.Unmarshal(r.RequestHeaders, &record.RequestHeaders); err != nil {
		return Attempt{}, fmt.Errorf("reading request headers: %w", err)
	}
	if err := json.Unmarshal(r.ResponseHeaders, &record.ResponseHeaders); err != nil {
		return Attempt{}, fmt.Errorf("reading response headers: %w", err)
	}
	return record, nil
}
