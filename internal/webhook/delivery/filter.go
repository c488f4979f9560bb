package delivery

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/lib/pq"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
	"drawbridge/internal/webhook/sender"
)

// SlowAfter is how long an attempt takes at least to be called slow. An index
// holds the deliveries whose last attempt was; it names the same figure.
const SlowAfter = 5 * time.Second

// Filter narrows a list of deliveries; a zero field does not.
type Filter struct {
	SubscriptionUID uuid.UUID
	PartnerUID      uuid.UUID
	MerchantUID     uuid.UUID
	ApplicationUID  uuid.UUID
	EventUID        uuid.UUID
	State           State
	Event           lending.EventKind
	// HTTPStatus is the last answer's status, HTTPClass its first digit, 1 to 9.
	HTTPStatus, HTTPClass int
	// ErrorClass is the last attempt's.
	ErrorClass sender.ErrorClass
	// Test and Resend tell apart test events and re-sends, nil for both kinds.
	Test, Resend *bool
	// Slow keeps those whose last attempt took SlowAfter or longer.
	Slow bool
	// Since is inclusive, Until exclusive; both compare the creation time.
	Since, Until time.Time
	Cursor       postgres.Cursor
	// Limit is from 1 to postgres.MaxPage.
	Limit int
}

// where renders the filter, after conditions of the caller's own, as a WHERE
// clause over deliveries d and its arguments.
func (f Filter) where(conditions ...string) (string, []any) {
	var c postgres.Conditions
	for _, condition := range conditions {
		c.Add(condition)
	}
	if f.PartnerUID != uuid.Nil {
		c.Add(`d.subscription_uid IN (
			SELECT subscription_uid FROM subscriptions WHERE partner_uid = ?)`, f.PartnerUID)
	}
	f.Narrow(&c)
	return c.Where(), c.Args
}

// Narrow adds every condition but that of the partner. Values of closed lists
// stand in the text, where the planner sees them: partial indexes and the
// frequency of a value decide how a list is read.
func (f Filter) Narrow(c *postgres.Conditions) {
	f.narrowPlaces(c)
	f.narrowOutcome(c)
	if f.Event != "" {
		c.Add(`d.event = ` + pq.QuoteLiteral(string(f.Event)))
	}
	if f.Test != nil {
		c.Add(sqlNot(!*f.Test) + `d.test`)
	}
	if f.Resend != nil {
		c.Add(`d.resend_of IS ` + sqlNot(*f.Resend) + `NULL`)
	}
	if !f.Since.IsZero() {
		c.Add(`d.created_at >= ?`, f.Since)
	}
	if !f.Until.IsZero() {
		c.Add(`d.created_at < ?`, f.Until)
	}
	if !f.Cursor.IsZero() {
		// The first condition says nothing new, except to the planner, which
		// leaves out the months after the cursor.
		c.Add(`d.created_at <= ?`, f.Cursor.At)
		c.Add(`(d.created_at, d.delivery_uid) < (?, ?)`, f.Cursor.At, f.Cursor.UID)
	}
}

func sqlNot(not bool) string {
	if not {
		return `NOT `
	}
	return ``
}

// narrowPlaces adds the conditions on where a delivery comes from and goes to.
func (f Filter) narrowPlaces(c *postgres.Conditions) {
	if f.SubscriptionUID != uuid.Nil {
		c.Add(`d.subscription_uid = ?`, f.SubscriptionUID)
	}
	if f.MerchantUID != uuid.Nil {
		// As a join, it would be taken for rarer than it is among the partner's own,
		// and all of them be read and sorted.
		c.Add(`(d.application_uid IN (
			SELECT application_uid FROM applications WHERE merchant_uid = ?)) IS TRUE`, f.MerchantUID)
	}
	switch f.ApplicationUID {
	case uuid.Nil:
	case sampleApplication:
		c.Add(`d.application_uid IS NULL`)
	default:
		c.Add(`d.application_uid = ?`, f.ApplicationUID)
	}
	if f.EventUID != uuid.Nil {
		c.Add(`d.event_uid = ?`, f.EventUID)
	}
}

// narrowOutcome adds the conditions on how far a delivery came. Whoever was not
// answered by 2xx has an error class, which the index of trouble is about.
func (f Filter) narrowOutcome(c *postgres.Conditions) {
	if f.State != "" {
		c.Add(`d.state = ` + pq.QuoteLiteral(string(f.State)))
	}
	if f.HTTPStatus != 0 {
		c.Add(fmt.Sprintf(`d.last_http_status = %d`, f.HTTPStatus))
	}
	if f.HTTPClass != 0 {
		c.Add(fmt.Sprintf(`d.last_http_status BETWEEN %d00 AND %d99`, f.HTTPClass, f.HTTPClass))
	}
	if f.ErrorClass != "" {
		c.Add(`d.last_error_class = ` + pq.QuoteLiteral(string(f.ErrorClass)))
	}
	if f.refused() {
		c.Add(`d.last_error_class IS NOT NULL`)
	}
	if f.Slow {
		c.Add(fmt.Sprintf(`d.last_duration_us >= %d`, SlowAfter.Microseconds()))
	}
}

// refused tells whether only answers other than 2xx are asked for.
func (f Filter) refused() bool {
	return f.HTTPStatus != 0 && f.HTTPStatus/100 != 2 || f.HTTPClass != 0 && f.HTTPClass != 2
}

// newestFirst is the order of the list, which every index of it shares.
const newestFirst = ` ORDER BY d.created_at DESC, d.delivery_uid DESC`

// Newest renders the statement that selects columns of the limit newest
// deliveries that match.
func (f Filter) Newest(columns string, limit int) (string, []any) {
	return f.newestFrom(f.spread(false), columns, newestFirst, limit)
}

// newestFrom renders the statement that selects columns of the limit newest
// deliveries that match, taken from where the spread says; any of them without
// an order.
func (f Filter) newestFrom(from spread, columns, order string, limit int) (string, []any) {
	if from.table == "" {
		conditions, args := f.where()
		c := postgres.Conditions{Args: args}
		return `SELECT ` + columns + ` FROM deliveries d` + conditions + order +
			` LIMIT ` + c.Bind(limit), c.Args
	}
	var c postgres.Conditions
	c.Add(`d.` + from.key + ` = o.` + from.key)
	if from.owner == "merchant_uid" {
		f.MerchantUID = uuid.Nil // the spread says it
	}
	f.Narrow(&c)
	most, owner := c.Bind(limit), c.Bind(from.uid)
	//nolint:unqueryvet // the caller names the columns; the planner drops the rest
	return `SELECT ` + columns + `
		  FROM ` + from.table + ` o
		 CROSS JOIN LATERAL (
		       SELECT d.* FROM ` + f.source(from.key) + c.Where() + newestFirst + ` LIMIT ` + most + `) d
		 WHERE o.` + from.owner + ` = ` + owner + order + ` LIMIT ` + most, c.Args
}

// source is what the deliveries of one owner are taken from. Those of an
// application are few: they are read before it is asked which of them are rare,
// or the planner might go through all that are, once for each application.
func (f Filter) source(key string) string {
	if key != "application_uid" || !f.isRare() {
		return `deliveries d`
	}
	return `(SELECT * FROM deliveries WHERE application_uid = o.application_uid OFFSET 0) d`
}

// isRare tells whether an index holds just the few deliveries that the filter is
// about, whoever they belong to.
func (f Filter) isRare() bool {
	return f.refused() || f.ErrorClass != "" || f.Slow || f.EventUID != uuid.Nil ||
		f.State != "" && f.State != StateDelivered ||
		f.Test != nil && *f.Test || f.Resend != nil && *f.Resend
}

// query renders the statement of a page, with one row more than the limit.
func (s scope) query() (string, []any) {
	rows, args := s.newestFrom(s.spread(s.few), `d.*`, newestFirst, s.Limit+1)
	return `SELECT ` + deliveryColumns + `
		  FROM (` + rows + `) d
		  JOIN subscriptions s USING (subscription_uid)
		  JOIN partners p USING (partner_uid)` + newestFirst, args
}

// countQuery renders the statement that counts at most limit deliveries. It
// reads them in the list's order, so that it stops as early as the list; those
// of a merchant by its applications in any order, unless they are rare.
func (s scope) countQuery(limit int) (string, []any) {
	s.Cursor = postgres.Cursor{}
	if s.MerchantUID != uuid.Nil && s.ApplicationUID == uuid.Nil && (s.few || !s.isRare()) {
		return s.countByApplication(limit)
	}
	rows, args := s.newestFrom(s.spread(false), `1`, newestFirst, limit)
	return `SELECT count(*) FROM (` + rows + `) matching`, args
}

// countByApplication renders the statement that counts at most limit deliveries
// of a merchant. The inner limit keeps the planner from reading all deliveries
// and looking which of them are the merchant's.
func (s scope) countByApplication(limit int) (string, []any) {
	var c postgres.Conditions
	most, merchant := c.Bind(limit), c.Bind(s.MerchantUID)
	c.Add(`d.application_uid = o.application_uid`)
	s.MerchantUID = uuid.Nil
	s.Narrow(&c)
	return `SELECT count(*)
		  FROM (SELECT 1
		          FROM applications o
		         CROSS JOIN LATERAL (
		               SELECT 1 FROM ` + s.source("application_uid") + c.Where() + ` LIMIT ` + most + `) d
		         WHERE o.merchant_uid = ` + merchant + `
		         LIMIT ` + most + `) matching`, c.Args
}

// fewApplications is up to how many applications a merchant's rows are listed
// application by application. Each costs a look into every month; beyond it is
// cheaper to go through what is newest of the partner until a page is full.
const fewApplications = 120

// scopeOf is a filter whose owners are known, which decides how it is read.
type scope struct {
	Filter
	// none tells that the filter's owners exclude each other: nothing matches.
	none bool
	// few tells that the merchant has few applications.
	few bool
}

// scopeOf finds out who owns what the filter names: a merchant's deliveries are
// all among its partner's.
func scopeOf(ctx context.Context, db *postgres.DB, f Filter) (scope, error) {
	if f.excludesItself() {
		return scope{none: true}, nil
	}
	if f.MerchantUID == uuid.Nil && (f.SubscriptionUID == uuid.Nil || f.PartnerUID == uuid.Nil) {
		return scope{Filter: f}, nil
	}
	var owners struct {
		Merchant     uuid.NullUUID `db:"merchant"`
		Subscription uuid.NullUUID `db:"subscription"`
		Applications int           `db:"applications"`
	}
	err := db.GetContext(ctx, &owners, `
		SELECT (SELECT partner_uid FROM merchants WHERE merchant_uid = $1) AS merchant,
		       (SELECT partner_uid FROM subscriptions WHERE subscription_uid = $2) AS subscription,
		       (SELECT count(*)
		          FROM (SELECT 1 FROM applications WHERE merchant_uid = $1 LIMIT $3) found
		       ) AS applications`, f.MerchantUID, f.SubscriptionUID, fewApplications+1)
	if err != nil {
		return scope{}, fmt.Errorf("finding the owners of deliveries: %w", err)
	}
	found := scope{Filter: f, few: owners.Applications <= fewApplications}
	if f.MerchantUID != uuid.Nil {
		found.narrowTo(owners.Merchant)
	}
	if f.SubscriptionUID != uuid.Nil {
		found.narrowTo(owners.Subscription)
		found.PartnerUID = uuid.Nil // the subscription says it
	}
	return found, nil
}

// excludesItself tells whether no delivery can match, since delivered is what
// was answered by 2xx, and nothing else is.
func (f Filter) excludesItself() bool {
	success := f.HTTPStatus/100 == 2 || f.HTTPClass == 2
	failure := f.refused() || f.ErrorClass != ""
	unsettled := f.State == StateFailed || f.State == StateRetrying
	return success && (unsettled || failure) || failure && f.State == StateDelivered
}

// narrowTo keeps what belongs to one more partner.
func (s *scope) narrowTo(partner uuid.NullUUID) {
	if !partner.Valid || s.PartnerUID != uuid.Nil && s.PartnerUID != partner.UUID {
		s.none = true
	}
	s.PartnerUID = partner.UUID
}

// spread says what the deliveries of a list are taken from, in order, and then
// merged, where the newest of all would have to be searched for the few that
// match.
type spread struct {
	// table has the column key in common with deliveries, owner picks its rows.
	table, key, owner string
	uid               uuid.UUID
}

// spread is over the subscriptions of a partner, or the applications of a
// merchant; the zero spread for neither. What is rare stands in one index for all
// partners, which would be gone through once for each subscription.
func (f Filter) spread(byApplication bool) spread {
	switch {
	case f.SubscriptionUID != uuid.Nil || f.ApplicationUID != uuid.Nil:
	case f.MerchantUID != uuid.Nil && byApplication:
		return spread{"applications", "application_uid", "merchant_uid", f.MerchantUID}
	case f.PartnerUID != uuid.Nil && !f.isRare():
		return spread{"subscriptions", "subscription_uid", "partner_uid", f.PartnerUID}
	}
	return spread{}
}
