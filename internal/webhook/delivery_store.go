package webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
)

// MaxPage is the largest limit of a list.
const MaxPage = 500

// sampleApplication is what test events name; no application has it.
var sampleApplication = uuid.MustParse(lending.SampleApplicationUID)

const deliveryColumns = `
	d.delivery_uid,
	d.created_at,
	d.subscription_uid,
	s.partner_uid,
	p.name AS partner_name,
	s.url,
	d.event_uid,
	d.event_at,
	d.event,
	coalesce(d.application_uid, '` + lending.SampleApplicationUID + `') AS application_uid,
	d.status,
	d.test,
	d.state,
	d.attempt_count,
	d.next_attempt_at,
	d.parked,
	d.last_http_status,
	d.last_error_class,
	d.last_duration_us,
	d.finished_at,
	d.resend_of,
	d.resent_by,
	d.resend_reason`

const deliveryTables = `
	 FROM deliveries d
	 JOIN subscriptions s USING (subscription_uid)
	 JOIN partners p USING (partner_uid)`

// checkLimit answers VALIDATION_ERROR for a limit that no page can have.
func checkLimit(limit int) error {
	if limit < 1 || limit > MaxPage {
		return lending.Invalid("limit", `"limit" must be from 1 to %d`, MaxPage)
	}
	return nil
}

// Deliveries returns one page of the deliveries that match, newest first.
// Error: VALIDATION_ERROR for the limit.
func (s *Service) Deliveries(ctx context.Context, filter DeliveryFilter) (DeliveryPage, error) {
	if err := checkLimit(filter.Limit); err != nil {
		return DeliveryPage{}, err
	}
	scope, err := s.scope(ctx, filter)
	if err != nil || scope.none {
		return DeliveryPage{}, err
	}
	query, args := scope.query()
	var rows []Delivery
	if err := s.DB.SelectContext(ctx, &rows, query, args...); err != nil {
		return DeliveryPage{}, fmt.Errorf("listing deliveries: %w", err)
	}
	rows, next := postgres.Page(rows, filter.Limit, Delivery.Place)
	return DeliveryPage{Deliveries: rows, Next: next}, nil
}

// Delivery returns a delivery with its attempts, or NOT_FOUND.
func (s *Service) Delivery(ctx context.Context, uid uuid.UUID) (DeliveryDetail, error) {
	var detail DeliveryDetail
	err := s.DB.GetContext(ctx, &detail.Delivery,
		`SELECT `+deliveryColumns+deliveryTables+` WHERE d.delivery_uid = $1`, uid)
	if postgres.IsNoRows(err) {
		return DeliveryDetail{}, lending.NewError(lending.CodeNotFound,
			"no delivery has the id %s", uid)
	}
	if err != nil {
		return DeliveryDetail{}, fmt.Errorf("loading delivery %s: %w", uid, err)
	}
	err = s.DB.QueryRowContext(ctx, `
		SELECT body, body_removed_at
		  FROM events
		 WHERE event_uid = $1
		   AND occurred_at = $2`, detail.EventUID, detail.EventAt,
	).Scan(&detail.Body, &detail.BodyRemovedAt)
	if err != nil {
		return DeliveryDetail{}, fmt.Errorf("loading the event of delivery %s: %w", uid, err)
	}
	if detail.Attempts, err = s.attempts(ctx, detail.Delivery); err != nil {
		return DeliveryDetail{}, err
	}
	err = s.DB.SelectContext(ctx, &detail.Resends,
		`SELECT delivery_uid FROM deliveries WHERE resend_of = $1 ORDER BY created_at`, uid)
	if err != nil {
		return DeliveryDetail{}, fmt.Errorf("loading the re-sends of delivery %s: %w", uid, err)
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

func (s *Service) attempts(ctx context.Context, delivery Delivery) ([]AttemptRecord, error) {
	var rows []attemptRow
	err := s.DB.SelectContext(ctx, &rows, `
		SELECT number,
		       started_at,
		       subscription_version,
		       url,
		       http_status,
		       error_class,
		       error,
		       note,
		       address,
		       dns_us,
		       connect_us,
		       tls_us,
		       first_byte_us,
		       duration_us,
		       request_headers,
		       response_headers,
		       response_body,
		       protocol,
		       reused,
		       tls_version,
		       certificate_expires,
		       content_removed_at
		  FROM attempts
		 WHERE delivery_uid = $1
		   AND delivery_created_at = $2
		 ORDER BY number`, delivery.UID, delivery.CreatedAt)
	if err != nil {
		return nil, fmt.Errorf("loading the attempts of delivery %s: %w", delivery.UID, err)
	}
	records := make([]AttemptRecord, 0, len(rows))
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

func (r attemptRow) record() (AttemptRecord, error) {
	record := AttemptRecord{
		Number:              r.Number,
		StartedAt:           r.StartedAt,
		Duration:            micros(&r.Duration),
		DNS:                 micros(r.DNS),
		Connect:             micros(r.Connect),
		TLS:                 micros(r.TLS),
		FirstByte:           micros(r.FirstByte),
		SubscriptionVersion: orZero(r.Version),
		URL:                 orZero(r.URL),
		HTTPStatus:          orZero(r.HTTPStatus),
		ErrorClass:          ErrorClass(orZero(r.ErrorClass)),
		Error:               orZero(r.Error),
		Note:                orZero(r.Note),
		Address:             orZero(r.Address),
		ResponseBody:        r.ResponseBody,
		Protocol:            orZero(r.Protocol),
		Reused:              r.Reused,
		TLSVersion:          orZero(r.TLSVersion),
		CertificateExpires:  r.CertificateExpires,
		ContentRemovedAt:    r.ContentRemovedAt,
	}
	if err := json.Unmarshal(r.RequestHeaders, &record.RequestHeaders); err != nil {
		return AttemptRecord{}, fmt.Errorf("reading request headers: %w", err)
	}
	if err := json.Unmarshal(r.ResponseHeaders, &record.ResponseHeaders); err != nil {
		return AttemptRecord{}, fmt.Errorf("reading response headers: %w", err)
	}
	return record, nil
}

func micros(n *int64) time.Duration { return time.Duration(orZero(n)) * time.Microsecond }

func orZero[T any](value *T) T {
	if value == nil {
		var zero T
		return zero
	}
	return *value
}
