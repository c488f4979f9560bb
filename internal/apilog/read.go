package apilog

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/lib/pq"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
)

// MaxPage is the largest limit of a list.
const MaxPage = 500

// Outcome sorts answers by the first digit of their status.
type Outcome string

// The outcomes.
const (
	OutcomeOK      Outcome = "ok"      // 2xx and 3xx
	OutcomeRefused Outcome = "refused" // 4xx
	OutcomeFailed  Outcome = "failed"  // 5xx
)

// Outcomes lists every outcome once.
func Outcomes() []Outcome { return []Outcome{OutcomeOK, OutcomeRefused, OutcomeFailed} }

// Filter narrows a list of requests; zero fields do not.
type Filter struct {
	Outcome   Outcome
	ErrorCode lending.Code
	// Method and Route match as a whole; Route is a pattern of the route table.
	Method, Route string
	ClientID      string
	PartnerUID    uuid.UUID
	MerchantUID   uuid.UUID
	// ApplicationUID is the application or loan that the request was about.
	ApplicationUID uuid.UUID
	RequestID      string
	IdempotencyKey string
	Since, Until   time.Time
	// Cursor is where the page begins, Limit how many it holds, 1 to MaxPage.
	Cursor postgres.Cursor
	Limit  int
}

// Request is a request in the log, with the names of who sent it.
type Request struct {
	Entry

	PartnerName  string         `db:"partner_name"`
	MerchantName string         `db:"merchant_name"`
	Fields       pq.StringArray `db:"error_fields"`
	DurationUS   int64          `db:"duration_us"`
}

// Page is one page of a list.
type Page struct {
	Requests []Request
	// Next is where the following page begins, zero on the last one.
	Next postgres.Cursor
}

const selectRequests = `
	SELECT r.request_uid, r.at, r.request_id, r.method, r.route, r.path,
	       coalesce(r.client_id, '') AS client_id, r.authenticated,
	       coalesce(r.partner_uid, '00000000-0000-0000-0000-000000000000') AS partner_uid,
	       coalesce(r.merchant_uid, '00000000-0000-0000-0000-000000000000') AS merchant_uid,
	       coalesce(r.application_uid, '00000000-0000-0000-0000-000000000000') AS application_uid,
	       r.status, coalesce(r.error_code, '') AS error_code, r.error_fields,
	       coalesce(r.idempotency_key, '') AS idempotency_key, r.replayed, r.duration_us,
	       r.bytes_in, r.bytes_out, r.address, r.user_agent,
	       coalesce(p.name, '') AS partner_name, coalesce(m.name, '') AS merchant_name
	  FROM api_requests r
	  LEFT JOIN partners p ON p.partner_uid = r.partner_uid
	  LEFT JOIN merchants m ON m.merchant_uid = r.merchant_uid`

// List returns one page of the requests that match, newest first. Error:
// VALIDATION_ERROR for the limit.
func (s *Service) List(ctx context.Context, filter Filter) (Page, error) {
	if filter.Limit < 1 || filter.Limit > MaxPage {
		return Page{}, lending.Invalid("limit", `"limit" must be from 1 to %d`, MaxPage)
	}
	query, args := filter.query()
	var rows []Request
	if err := s.DB.SelectContext(ctx, &rows, query, args...); err != nil {
		return Page{}, fmt.Errorf("listing API requests: %w", err)
	}
	for i := range rows {
		rows[i].complete()
	}
	rows, next := postgres.Page(rows, filter.Limit, func(r Request) postgres.Cursor {
		return postgres.Cursor{At: r.At, UID: r.UID}
	})
	return Page{Requests: rows, Next: next}, nil
}

// Count counts the requests that match, at most limit of them. The filter's
// cursor and limit do not count.
func (s *Service) Count(ctx context.Context, filter Filter, limit int) (int, error) {
	filter.Cursor = postgres.Cursor{}
	conditions, args := filter.where()
	args = append(args, limit)
	var count int
	err := s.DB.GetContext(ctx, &count, `SELECT count(*) FROM (SELECT 1 FROM api_requests r`+
		conditions+fmt.Sprintf(` LIMIT $%d) AS matching`, len(args)), args...)
	if err != nil {
		return 0, fmt.Errorf("counting API requests: %w", err)
	}
	return count, nil
}

// Get returns one request by its uid. Error: NOT_FOUND, also once it is no
// longer kept.
func (s *Service) Get(ctx context.Context, uid uuid.UUID) (Request, error) {
	// The uid's time part leads to the partition.
	seconds, nanos := uid.Time().UnixTime()
	at := time.Unix(seconds, nanos).UTC()
	var found Request
	err := s.DB.GetContext(ctx, &found, selectRequests+`
		 WHERE r.request_uid = $1
		   AND r.at >= $2
		   AND r.at < $3`, uid, at.Truncate(time.Millisecond), at.Add(2*time.Millisecond))
	if postgres.IsNoRows(err) {
		return Request{}, lending.NewError(lending.CodeNotFound,
			"no request has the id %s; the log keeps requests for some days only", uid)
	}
	if err != nil {
		return Request{}, fmt.Errorf("loading API request %s: %w", uid, err)
	}
	found.complete()
	return found, nil
}

func (r *Request) complete() {
	r.ErrorFields = r.Fields
	r.Duration = time.Duration(r.DurationUS) * time.Microsecond
}

// query renders the statement of a page, with one row more than the limit.
func (f Filter) query() (string, []any) {
	conditions, args := f.where()
	args = append(args, f.Limit+1)
	return selectRequests + conditions +
		fmt.Sprintf(` ORDER BY r.at DESC, r.request_uid DESC LIMIT $%d`, len(args)), args
}

// where renders the filter as a WHERE clause and its arguments.
func (f Filter) where() (string, []any) {
	var c postgres.Conditions
	text := func(condition, value string) {
		if value != "" {
			c.Add(condition, value)
		}
	}
	uid := func(condition string, value uuid.UUID) {
		if value != uuid.Nil {
			c.Add(condition, value)
		}
	}
	switch f.Outcome {
	case OutcomeOK:
		c.Add(`r.status < 400`)
	case OutcomeRefused:
		c.Add(`r.status >= 400 AND r.status < 500`)
	case OutcomeFailed:
		c.Add(`r.status >= 500`)
	}
	if f.ErrorCode != "" {
		// The status lets the partial index over refusals be used.
		c.Add(`r.status >= 400 AND r.error_code = ?`, string(f.ErrorCode))
	}
	text(`r.method = ?`, f.Method)
	text(`r.route = ?`, f.Route)
	text(`r.client_id = ?`, f.ClientID)
	// By the partner's clients, for which there is an index.
	uid(`r.client_id IN (SELECT client_id FROM clients WHERE partner_uid = ?)`, f.PartnerUID)
	uid(`r.client_id IN (SELECT client_id FROM client_merchants WHERE merchant_uid = ?)`,
		f.MerchantUID)
	uid(`r.merchant_uid = ?`, f.MerchantUID)
	uid(`r.application_uid = ?`, f.ApplicationUID)
	text(`r.request_id = ?`, f.RequestID)
	text(`r.idempotency_key = ?`, f.IdempotencyKey)
	f.between(&c)
	return c.Where(), c.Args
}

func (f Filter) between(c *postgres.Conditions) {
	if !f.Since.IsZero() {
		c.Add(`r.at >= ?`, f.Since.UTC())
	}
	if !f.Until.IsZero() {
		c.Add(`r.at < ?`, f.Until.UTC())
	}
	if !f.Cursor.IsZero() {
		// The first condition alone lets later partitions be left out.
		c.Add(`r.at <= ? AND (r.at, r.request_uid) < (?, ?)`,
			f.Cursor.At, f.Cursor.At, f.Cursor.UID)
	}
}

// Traffic sums requests up.
type Traffic struct {
	Requests int64 `db:"requests"`
	// Refused counts answers of 4xx, Failed those of 5xx.
	Refused int64 `db:"refused"`
	Failed  int64 `db:"failed"`
}

// Scope says whose traffic is meant; zero fields do not narrow it.
type Scope struct {
	PartnerUID  uuid.UUID
	MerchantUID uuid.UUID
	ClientID    string
}

// Traffic returns the traffic since a time, exact to the hour that the time lies
// in. It is summed up by the hour as requests come in, so it is cheap and goes
// back further than the log.
func (s *Service) Traffic(ctx context.Context, scope Scope, since time.Time) (Traffic, error) {
	conditions := `t.hour >= date_trunc('hour', $1::timestamptz, 'UTC')`
	args := []any{since.UTC()}
	add := func(condition string, value any) {
		args = append(args, value)
		conditions += fmt.Sprintf(condition, len(args))
	}
	if scope.PartnerUID != uuid.Nil {
		add(` AND t.client_id IN (SELECT client_id FROM clients WHERE partner_uid = $%d)`,
			scope.PartnerUID)
	}
	if scope.MerchantUID != uuid.Nil {
		// Only its clients can have called for it.
		add(` AND t.client_id IN (SELECT client_id FROM client_merchants WHERE merchant_uid = $%d)`,
			scope.MerchantUID)
		add(` AND t.merchant_uid = $%d`, scope.MerchantUID)
	}
	if scope.ClientID != "" {
		add(` AND t.client_id = $%d`, scope.ClientID)
	}
	var traffic Traffic
	err := s.DB.GetContext(ctx, &traffic, `
		SELECT coalesce(sum(t.requests), 0)::bigint AS requests,
		       coalesce(sum(t.refused), 0)::bigint AS refused,
		       coalesce(sum(t.failed), 0)::bigint AS failed
		  FROM api_traffic t
		 WHERE `+conditions, args...)
	if err != nil {
		return Traffic{}, fmt.Errorf("summing up API traffic: %w", err)
	}
	return traffic, nil
}
