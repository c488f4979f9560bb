package apilog

import (
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
)

// Outcome classifies responses by the first digit of their status.
type Outcome string

// The outcomes.
const (
	OutcomeOK      Outcome = "ok"      // 2xx and 3xx
	OutcomeRefused Outcome = "refused" // 4xx
	OutcomeFailed  Outcome = "failed"  // 5xx
)

// Outcomes lists every outcome once.
func Outcomes() []Outcome { return []Outcome{OutcomeOK, OutcomeRefused, OutcomeFailed} }

// Filter narrows a list of requests; zero fields do not narrow it.
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
}

// newestFirst is the order of the list, which all of its indexes share.
const newestFirst = ` ORDER BY r.at DESC, r.request_uid DESC`

// newest renders the query for columns of the newest matching requests, up to a page. If they
// are selected by partner or merchant and by nothing rarer, it reads them client by client and
// then merges them.
func (f Filter) newest(columns string, page postgres.Paging) (string, []any) {
	var c postgres.Conditions
	owner, uid := f.owner()
	c.When(f.Outcome == OutcomeOK, `r.status < 400`)
	c.When(f.Outcome == OutcomeRefused, `r.status >= 400 AND r.status < 500`)
	c.When(f.Outcome == OutcomeFailed, `r.status >= 500`)
	c.When(f.ErrorCode != "", `r.error_code = ?`, string(f.ErrorCode)) // only refusals have one
	c.When(f.Method != "", `r.method = ?`, f.Method)
	c.When(f.Route != "", `r.route = ?`, f.Route)
	c.When(f.ClientID != "", `r.client_id = ?`, f.ClientID)
	// Select by the partner's clients, for which there is an index. The condition is redundant if
	// the rows are already read client by client.
	c.When(f.PartnerUID != uuid.Nil && (owner == "" || f.MerchantUID != uuid.Nil),
		`r.client_id IN (SELECT client_id FROM clients WHERE partner_uid = ?)`, f.PartnerUID)
	c.When(f.MerchantUID != uuid.Nil, `r.merchant_uid = ?`, f.MerchantUID)
	c.When(f.ApplicationUID != uuid.Nil, `r.application_uid = ?`, f.ApplicationUID)
	c.When(f.RequestID != "", `r.request_id = ?`, f.RequestID)
	c.When(f.IdempotencyKey != "", `r.idempotency_key = ?`, f.IdempotencyKey)
	c.When(!f.Since.IsZero(), `r.at >= ?`, f.Since.UTC())
	c.When(!f.Until.IsZero(), `r.at < ?`, f.Until.UTC())
	// Only the first condition excludes later partitions.
	c.When(!page.From.IsZero(), `r.at <= ?`, page.From.At)
	c.OlderThan(page.From, `r.at`, `r.request_uid`)
	if owner == "" {
		return `SELECT ` + columns + ` FROM api_requests r` + c.Where() + newestFirst +
			` LIMIT ` + c.Bind(page.Limit), c.Args
	}
	c.Add(`r.client_id = o.client_id`)
	most := c.Bind(page.Limit)
	//nolint:unqueryvet // the caller names the columns; the planner drops the rest
	return `SELECT ` + columns + `
		  FROM (SELECT client_id FROM ` + owner + ` = ` + c.Bind(uid) + `) o
		 CROSS JOIN LATERAL (
		       SELECT r.* FROM api_requests r` + c.Where() + newestFirst + ` LIMIT ` + most + `) r` +
		newestFirst + ` LIMIT ` + most, c.Args
}

// owner returns the table of the clients from which the requests are read, with a condition to
// complete; it is empty without an owner, or if another index is better.
func (f Filter) owner() (table string, uid uuid.UUID) {
	refused := f.ErrorCode != "" || f.Outcome == OutcomeRefused || f.Outcome == OutcomeFailed
	rare := f.ApplicationUID != uuid.Nil || f.RequestID != "" || f.IdempotencyKey != ""
	switch {
	case refused || rare || f.ClientID != "":
	case f.MerchantUID != uuid.Nil:
		return `client_merchants WHERE merchant_uid`, f.MerchantUID
	case f.PartnerUID != uuid.Nil:
		return `clients WHERE partner_uid`, f.PartnerUID
	}
	return "", uuid.Nil
}
