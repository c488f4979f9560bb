package delivery

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/lib/pq"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
	"drawbridge/internal/webhook/sender"
)

// SlowAfter is the shortest duration of an attempt that is called slow. An index holds
// the deliveries whose last attempt was slow; it repeats this figure.
const SlowAfter = 5 * time.Second

// Filter narrows a list of deliveries; zero fields do not.
type Filter struct {
	SubscriptionUID uuid.UUID
	PartnerUID      uuid.UUID
	MerchantUID     uuid.UUID
	ApplicationUID  uuid.UUID
	EventUID        uuid.UUID
	State           State
	// Waiting, without a State, keeps deliveries that will be attempted: pending and
	// retrying ones.
	Waiting bool
	Event   lending.EventKind
	// HTTPStatus is the last answer's status, HTTPClass the first digit of it, 1 to 9.
	HTTPStatus, HTTPClass int
	// ErrorClass is the last attempt's error class.
	ErrorClass sender.ErrorClass
	// Test and Resend select test events and re-sends, or leave them out; nil keeps both.
	Test, Resend *bool
	// Open leaves out deliveries that were made good.
	Open bool
	// Slow keeps those whose last attempt took SlowAfter or longer.
	Slow bool
	// Since is inclusive, Until exclusive; both apply to the creation time.
	Since, Until time.Time
	// Reader keeps the deliveries that a partner's client may see; nil keeps all.
	Reader *Reader `json:"-"`
}

// ParseAnswer parses which answers a filter selects: a status such as 503, or a class
// such as 5xx. Both results are 0 for an empty text; ok is false for any other text.
func ParseAnswer(text string) (status, class int, ok bool) {
	digits, isClass := strings.CutSuffix(strings.ToLower(text), "xx")
	number, err := strconv.Atoi(digits)
	switch {
	case text == "":
		return 0, 0, true
	case err == nil && isClass && number >= 1 && number <= 9:
		return 0, number, true
	case err == nil && !isClass && number >= 100 && number <= 999:
		return number, 0, true
	}
	return 0, 0, false
}

func (f Filter) conditions() postgres.Conditions {
	var c postgres.Conditions
	c.When(f.PartnerUID != uuid.Nil, `d.subscription_uid IN (
			SELECT subscription_uid FROM subscriptions WHERE partner_uid = ?)`, f.PartnerUID)
	f.Narrow(&c)
	return c
}

// Narrow adds every condition but that on the partner. Values of closed lists are
// literals, so that the planner sees them: partial indexes and the frequency of a value
// decide how a list is read.
func (f Filter) Narrow(c *postgres.Conditions) {
	c.When(f.SubscriptionUID != uuid.Nil, `d.subscription_uid = ?`, f.SubscriptionUID)
	// As a join, the planner would take it for rarer than it is among the partner's own
	// deliveries, and would read and sort all of them.
	c.When(f.MerchantUID != uuid.Nil, `(d.application_uid IN (
			SELECT application_uid FROM applications WHERE merchant_uid = ?)) IS TRUE`, f.MerchantUID)
	if f.Reader != nil {
		f.Reader.narrow(c)
	}
	narrowApplication(c, `d`, f.ApplicationUID)
	c.When(f.EventUID != uuid.Nil, `d.event_uid = ?`, f.EventUID)
	// Every answer but 2xx has an error class; the partial index on errors needs the condition.
	c.When(f.State != "", `d.state = `+pq.QuoteLiteral(string(f.State)))
	c.When(f.Waiting, `d.state IN ('pending', 'retrying')`)
	c.When(f.HTTPStatus != 0, fmt.Sprintf(`d.last_http_status = %d`, f.HTTPStatus))
	c.When(f.HTTPClass != 0,
		fmt.Sprintf(`d.last_http_status BETWEEN %d00 AND %d99`, f.HTTPClass, f.HTTPClass))
	c.When(f.ErrorClass != "", `d.last_error_class = `+pq.QuoteLiteral(string(f.ErrorClass)))
	c.When(f.refused(), `d.last_error_class IS NOT NULL`)
	c.When(f.Open, `d.made_good_by IS NULL`)
	c.When(f.Slow, fmt.Sprintf(`d.last_duration_us >= %d`, SlowAfter.Microseconds()))
	c.When(f.Event != "", `d.event = `+pq.QuoteLiteral(string(f.Event)))
	c.When(f.Test != nil, sqlNot(!postgres.OrZero(f.Test))+`d.test`)
	c.When(f.Resend != nil, `d.resend_of IS `+sqlNot(postgres.OrZero(f.Resend))+`NULL`)
	c.When(!f.Since.IsZero(), `d.created_at >= ?`, f.Since)
	c.When(!f.Until.IsZero(), `d.created_at < ?`, f.Until)
}

// olderThan keeps the deliveries d that come after a cursor in the list. The first
// condition is redundant, but lets the planner leave out the months after the cursor.
func olderThan(c *postgres.Conditions, place postgres.Cursor) {
	c.When(!place.IsZero(), `d.created_at <= ?`, place.At)
	c.OlderThan(place, `d.created_at`, `d.delivery_uid`)
}

// narrowApplication adds the condition on the application; test events have the sample one.
func narrowApplication(c *postgres.Conditions, table string, uid uuid.UUID) {
	c.When(uid == sampleApplication, table+`.application_uid IS NULL`)
	c.When(uid != uuid.Nil && uid != sampleApplication, table+`.application_uid = ?`, uid)
}

func sqlNot(not bool) string {
	if not {
		return `NOT `
	}
	return ``
}

// refused reports whether the filter selects only answers other than 2xx.
func (f Filter) refused() bool {
	return f.HTTPStatus != 0 && f.HTTPStatus/100 != 2 || f.HTTPClass != 0 && f.HTTPClass != 2
}

// newestFirst is the order of the list; every index for the list has this order.
const newestFirst = ` ORDER BY d.created_at DESC, d.delivery_uid DESC`

// Newest renders the statement that selects columns of the limit newest
// deliveries that match.
func (f Filter) Newest(columns string, limit int) (string, []any) {
	return f.newestFrom(f.spread(false), columns, postgres.Paging{Limit: limit})
}

// newestFrom renders the statement that selects columns of the newest deliveries that
// match, up to a page, read as the spread says.
func (f Filter) newestFrom(from spread, columns string, page postgres.Paging) (string, []any) {
	if from.table == "" {
		c := f.conditions()
		olderThan(&c, page.From)
		most := c.Bind(page.Limit)
		of := `deliveries d` + c.Where()
		if f.Waiting {
			of = `(` + f.ofState(StatePending, page.From, most) + ` UNION ALL ` +
				f.ofState(StateRetrying, page.From, most) + `) d`
		}
		return `SELECT ` + columns + ` FROM ` + of + newestFirst + ` LIMIT ` + most, c.Args
	}
	var c postgres.Conditions
	c.Add(`d.` + from.key + ` = o.` + from.key)
	if from.owner == "merchant_uid" {
		f.MerchantUID = uuid.Nil // the spread selects it
	}
	f.Narrow(&c)
	olderThan(&c, page.From)
	most, owner := c.Bind(page.Limit), c.Bind(from.uid)
	//nolint:unqueryvet // the caller names the columns; the planner drops the rest
	return `SELECT ` + columns + `
		  FROM ` + from.table + ` o
		 CROSS JOIN LATERAL (
		       SELECT d.* FROM ` + f.source(from.key) + c.Where() + newestFirst + ` LIMIT ` + most + `) d
		 WHERE o.` + from.owner + ` = ` + owner + newestFirst + ` LIMIT ` + most, c.Args
}

// ofState renders the select for one state: the index on states has each state in this order.
func (f Filter) ofState(state State, after postgres.Cursor, most string) string {
	f.State, f.Waiting = state, false
	c := f.conditions() // the same arguments: a state adds none
	olderThan(&c, after)
	//nolint:unqueryvet // as in newestFrom
	return `(SELECT d.* FROM deliveries d` + c.Where() + newestFirst + ` LIMIT ` + most + `)`
}

// source is the table expression for the deliveries of one owner. An application has few
// deliveries: they are read before the rare condition is applied, or the planner might
// scan all rare deliveries once for each application.
func (f Filter) source(key string) string {
	if key != "application_uid" || !f.isRare() {
		return `deliveries d`
	}
	return `(SELECT * FROM deliveries WHERE application_uid = o.application_uid OFFSET 0) d`
}

// isRare reports whether an index holds just the few deliveries that the filter selects,
// whoever owns them.
func (f Filter) isRare() bool {
	return f.refused() || f.ErrorClass != "" || f.Slow || f.EventUID != uuid.Nil ||
		f.State != "" && f.State != StateDelivered || f.Waiting ||
		f.Test != nil && *f.Test || f.Resend != nil && *f.Resend
}

// scope is a filter whose owners have been looked up, which decides how it is read.
type scope struct {
	Filter
	// none means that the filter's owners exclude each other: nothing matches.
	none bool
	// few means that the merchant has few applications.
	few bool
}

// query renders the statement of a page, with one row more than the limit.
func (s scope) query(page postgres.Paging) (string, []any) {
	rows, args := s.newestFrom(s.spread(s.few), `d.*`, page.OneMore())
	return `SELECT ` + deliveryColumns + `
		  FROM (` + rows + `) d
		  JOIN subscriptions s USING (subscription_uid)
		  JOIN partners p USING (partner_uid)` + newestFirst, args
}

// countQuery renders the statement that counts at most limit deliveries. It reads them in
// the list's order, so that it stops as early as the list does. A merchant's deliveries,
// unless they are rare, it reads through the applications in any order; the inner limit
// keeps the planner from reading all deliveries and checking which of them are the
// merchant's.
func (s scope) countQuery(limit int) (string, []any) {
	if s.MerchantUID == uuid.Nil || s.ApplicationUID != uuid.Nil || !s.few && s.isRare() {
		rows, args := s.newestFrom(s.spread(false), `1`, postgres.Paging{Limit: limit})
		return `SELECT count(*) FROM (` + rows + `) matching`, args
	}
	var c postgres.Conditions
	most, merchant := c.Bind(limit), c.Bind(s.MerchantUID)
	c.Add(`d.application_uid = o.application_uid`)
	s.MerchantUID = uuid.Nil
	s.Narrow(&c)
	return countOfMerchant(s.source("application_uid")+c.Where(), merchant, most), c.Args
}

// countOfMerchant renders the statement that counts rows of the applications o of a merchant.
func countOfMerchant(rows, merchant, most string) string {
	return `SELECT count(*)
		  FROM (SELECT 1
		          FROM applications o
		         CROSS JOIN LATERAL (SELECT 1 FROM ` + rows + ` LIMIT ` + most + `) of_one
		         WHERE o.merchant_uid = ` + merchant + `
		         LIMIT ` + most + `) matching`
}

// fewApplications is the largest number of applications for which a merchant's rows are
// listed application by application. Each application costs an index lookup in every month;
// beyond this number it is cheaper to read the partner's newest rows until a page is full.
const fewApplications = 120

// scopeOf looks up the owners of what the filter names: a merchant's deliveries are all
// among its partner's.
func scopeOf(ctx context.Context, db *postgres.DB, f Filter) (scope, error) {
	if f.excludesAll() {
		return scope{none: true}, nil
	}
	if f.MerchantUID == uuid.Nil && (f.SubscriptionUID == uuid.Nil || f.PartnerUID == uuid.Nil) {
		return scope{Filter: f}, nil
	}
	owners, err := ownersOf(ctx, db, f.MerchantUID, f.SubscriptionUID)
	if err != nil {
		return scope{}, fmt.Errorf("finding the owners of deliveries: %w", err)
	}
	found := scope{Filter: f, few: owners.Applications <= fewApplications}
	if f.MerchantUID != uuid.Nil {
		found.none = narrowTo(&found.PartnerUID, owners.Merchant)
	}
	if f.SubscriptionUID != uuid.Nil {
		found.none = narrowTo(&found.PartnerUID, owners.Subscription) || found.none
		found.PartnerUID = uuid.Nil // the subscription implies it
	}
	return found, nil
}

// excludesAll reports whether the filter's answers and state exclude each other: a
// delivery is delivered exactly when it was answered with 2xx.
func (f Filter) excludesAll() bool {
	success := f.HTTPStatus/100 == 2 || f.HTTPClass == 2
	failure := f.refused() || f.ErrorClass != ""
	unsettled := f.State == StateFailed || f.State == StateRetrying || f.Waiting
	return success && (unsettled || failure) || failure && f.State == StateDelivered
}

type owners struct {
	Merchant     uuid.NullUUID `db:"merchant"`
	Subscription uuid.NullUUID `db:"subscription"`
	// Applications counts the merchant's applications, up to fewApplications + 1.
	Applications int `db:"applications"`
}

func ownersOf(
	ctx context.Context, db *postgres.DB, merchant, subscription uuid.UUID,
) (found owners, err error) {
	err = db.GetContext(ctx, &found, `
		SELECT (SELECT partner_uid FROM merchants WHERE merchant_uid = $1) AS merchant,
		       (SELECT partner_uid FROM subscriptions WHERE subscription_uid = $2) AS subscription,
		       (SELECT count(*)
		          FROM (SELECT 1 FROM applications WHERE merchant_uid = $1 LIMIT $3) found
		       ) AS applications`, merchant, subscription, fewApplications+1)
	return found, err
}

// narrowTo narrows a filter to one more partner, and reports whether nothing can match then.
func narrowTo(filter *uuid.UUID, partner uuid.NullUUID) (none bool) {
	none = !partner.Valid || *filter != uuid.Nil && *filter != partner.UUID
	*filter = partner.UUID
	return none
}

// spread names a table whose rows are joined to their deliveries. Each row's deliveries
// are read in order and then merged, where otherwise the newest of all deliveries would
// have to be searched for the few that match.
type spread struct {
	// table shares the column key with deliveries; owner is the column that selects its rows.
	table, key, owner string
	uid               uuid.UUID
}

// spread returns the spread over the subscriptions of a partner or the applications of a
// merchant, and the zero spread otherwise. Rare deliveries are in one index for all
// partners, which would be scanned once for each subscription.
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
