package apilog

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
)

// Request is a request in the log, with the names of its sender.
type Request struct {
	Entry

	PartnerName  string `db:"partner_name"`
	MerchantName string `db:"merchant_name"`
}

const requestColumns = `
	SELECT r.request_uid, r.at, r.request_id, r.method, r.route, r.path,
	       coalesce(r.client_id, '') AS client_id, r.authenticated, r.partner_uid, r.merchant_uid,
	       r.application_uid, r.status, coalesce(r.error_code, '') AS error_code, r.error_fields,
	       coalesce(r.idempotency_key, '') AS idempotency_key, r.replayed,
	       r.duration_us * 1000 AS duration, r.bytes_in, r.bytes_out, r.address, r.user_agent,
	       coalesce(p.name, '') AS partner_name, coalesce(m.name, '') AS merchant_name`

const requestOwners = `
	  LEFT JOIN partners p ON p.partner_uid = r.partner_uid
	  LEFT JOIN merchants m ON m.merchant_uid = r.merchant_uid`

// List returns one page of the matching requests, newest first, and the cursor of the next.
// Error: VALIDATION_ERROR for the limit.
func (s *Service) List(
	ctx context.Context, filter Filter, page postgres.Paging,
) ([]Request, postgres.Cursor, error) {
	if err := page.Check(); err != nil {
		return nil, postgres.Cursor{}, err
	}
	newest, args := filter.newest(`r.*`, page.OneMore())
	var rows []Request
	err := s.DB.SelectContext(ctx, &rows, requestColumns+` FROM (`+newest+`) r`+
		requestOwners+newestFirst, args...)
	if err != nil {
		return nil, postgres.Cursor{}, fmt.Errorf("listing API requests: %w", err)
	}
	rows, next := postgres.Page(rows, page.Limit, func(r Request) postgres.Cursor {
		return postgres.Cursor{At: r.At, UID: r.UID}
	})
	return rows, next, nil
}

// Count counts the matching requests, at most limit of them.
func (s *Service) Count(ctx context.Context, filter Filter, limit int) (int, error) {
	newest, args := filter.newest(`1`, postgres.Paging{Limit: limit})
	count, err := s.DB.Count(ctx, `SELECT count(*) FROM (`+newest+`) AS matching`, args...)
	if err != nil {
		return 0, fmt.Errorf("counting API requests: %w", err)
	}
	return count, nil
}

// Get returns one request by its uid. Error: NOT_FOUND, also if it is no longer kept.
func (s *Service) Get(ctx context.Context, uid uuid.UUID) (Request, error) {
	// The time in the uid identifies the partition.
	seconds, nanos := uid.Time().UnixTime()
	at := time.Unix(seconds, nanos).UTC()
	var found Request
	err := s.DB.GetContext(ctx, &found, requestColumns+` FROM api_requests r`+requestOwners+`
		 WHERE r.request_uid = $1
		   AND r.at >= $2
		   AND r.at < $3`, uid, at.Truncate(time.Millisecond), at.Add(2*time.Millisecond))
	return found, postgres.RowError(err, lending.NewError(lending.CodeNotFound,
		"no request has the id %s; the log keeps requests for some days only", uid),
		"loading API request %s", uid)
}

// Traffic is a sum of requests.
type Traffic struct {
	Requests int64 `db:"requests"`
	// Refused counts 4xx responses, Failed 5xx responses.
	Refused int64 `db:"refused"`
	Failed  int64 `db:"failed"`
}

// Scope selects whose traffic is summed; zero fields do not narrow it.
type Scope struct {
	PartnerUID  uuid.UUID
	MerchantUID uuid.UUID
	ClientID    string
}

// Traffic returns the traffic since the start of the hour that contains since. Traffic is summed
// by the hour as requests arrive, so this is cheap and reaches back further than the log.
func (s *Service) Traffic(ctx context.Context, scope Scope, since time.Time) (Traffic, error) {
	var c postgres.Conditions
	c.Add(`t.hour >= date_trunc('hour', ?::timestamptz, 'UTC')`, since.UTC())
	c.When(scope.PartnerUID != uuid.Nil,
		`t.client_id IN (SELECT client_id FROM clients WHERE partner_uid = ?)`, scope.PartnerUID)
	// Only the merchant's clients can have called for it.
	c.When(scope.MerchantUID != uuid.Nil, `t.merchant_uid = ? AND
		t.client_id IN (SELECT client_id FROM client_merchants WHERE merchant_uid = ?)`,
		scope.MerchantUID, scope.MerchantUID)
	c.When(scope.ClientID != "", `t.client_id = ?`, scope.ClientID)
	var traffic Traffic
	err := s.DB.GetContext(ctx, &traffic, `
		SELECT coalesce(sum(t.requests), 0)::bigint AS requests,
		       coalesce(sum(t.refused), 0)::bigint AS refused,
		       coalesce(sum(t.failed), 0)::bigint AS failed
		  FROM api_traffic t`+c.Where(), c.Args...)
	if err != nil {
		return Traffic{}, fmt.Errorf("summing up API traffic: %w", err)
	}
	return traffic, nil
}
