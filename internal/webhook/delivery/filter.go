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
	// Waiting keeps, without a State, those that an attempt is to come of: pending and
	// retrying ones.
	Waiting bool
	Event   lending.EventKind
	// HTTPStatus is the last answer's status, HTTPClass its first digit, 1 to 9.
	HTTPStatus, HTTPClass int
	// ErrorClass is the last attempt's.
	ErrorClass sender.ErrorClass
	// Test and Resend tell apart test events and re-sends, nil for both kinds.
	Test, Resend *bool
	// Open leaves out those that were made good.
	Open bool
	// Slow keeps those whose last attempt took SlowAfter or longer.
	Slow bool
	// Since is inclusive, Until exclusive; both compare the creation time.
	Since, Until time.Time
	// Reader keeps what a partner's client may see; nil keeps everything.
	Reader *Reader `json:"-"`
}

// ParseAnswer reads which answers a filter is about: a status such as 503, or a class of them
// such as 5xx. Both are 0 without a text, and ok is false for any other one.
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

// Narrow adds every condition but that of the partner. Values of closed lists
// are in the text, where the planner sees them: partial indexes and the
// frequency of a value decide how a list is read.
func (f Filter) Narrow(c *postgres.Conditions) {
	c.When(f.SubscriptionUID != uuid.Nil, `d.subscription_uid = ?`, f.SubscriptionUID)
	// As a join, it would be taken for rarer than it is among the partner's own,
	// and all of them be read and sorted.
	c.When(f.MerchantUID != uuid.Nil, `(d.application_uid IN (
			SELECT application_uid FROM applications WHERE merchant_uid = ?)) IS TRUE`, f.MerchantUID)
	if f.Reader != nil {
		f.Reader.narrow(c)
	}
	narrowApplication(c, `d`, f.ApplicationUID)
	c.When(f.EventUID != uuid.Nil, `d.event_uid = ?`, f.EventUID)
	// What was not answered by 2xx has an error class, which the index of trouble is about.
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

// olderThan keeps the deliveries d after a place in the list. The first condition says nothing
// new, except to the planner, which leaves out the months after the place.
func olderThan(c *postgres.Conditions, place postgres.Cursor) {
	c.When(!place.IsZero(), `d.created_at <= ?`, place.At)
	c.OlderThan(place, `d.created_at`, `d.delivery_uid`)
}

// narrowApplication adds the condition on the application, the sample one for tests.
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

// refused tells whether only answers other than 2xx are asked for.
func (f Filter) refused() bool {
	return f.HTTPStatus != 0 && f.HTTPStatus/100 != 2 || f.HTTPClass != 0 && f.HTTPClass != 2
}

// newestFirst is the order of the list, which every index of it shares.
const newestFirst = ` ORDER BY d.created_at DESC, d.delivery_uid DESC`

// Newest renders the statement that selects columns of the limit newest
// deliveries that match.
func (f Filter) Newest(columns string, limit int) (string, []any) {
	return f.newestFrom(f.spread(false), columns, postgres.Paging{Limit: limit})
}

// newestFrom renders the statement that selects columns of the newest deliveries that match,
// up to a page, taken from where the spread says.
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
		f.MerchantUID = uuid.Nil // the spread says it
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

// ofState renders those of one state instead: the index of states has each of them in order.
func (f Filter) ofState(state State, after postgres.Cursor, most string) string {
	f.State, f.Waiting = state, false
	c := f.conditions() // with the same arguments, for a state has none
	olderThan(&c, after)
	//nolint:unqueryvet // as in newestFrom
	return `(SELECT d.* FROM deliveries d` + c.Where() + newestFirst + ` LIMIT ` + most + `)`
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
// about, whomever they belong to.
func (f Filter) isRare() bool {
	return f.refused() || f.ErrorClass != "" || f.Slow || f.EventUID != uuid.Nil ||
		f.State != "" && f.State != StateDelivered || f.Waiting ||
		f.Test != nil && *f.Test || f.Resend != nil && *f.Resend
}

// scope is a filter whose owners are known, which decides how it is read.
type scope struct {
	Filter
	// none tells that the filter's owners exclude each other: nothing matches.
	none bool
	// few tells that the merchant has few applications.
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

// countQuery renders the statement that counts at most limit deliveries. It
// reads them in the list's order, so that it stops as early as the list; those
// of a merchant by its applications in any order, unless they are rare. The inner
// limit keeps the planner from reading all deliveries and looking which of them are
// the merchant's.
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

// fewApplications is up to how many applications a merchant's rows are listed
// application by application. Each costs a look into every month; beyond it is
// cheaper to go through what is newest of the partner until a page is full.
const fewApplications = 120

// scopeOf finds out who owns what the filter names: a merchant's deliveries are
// all among its partner's.
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
		found.PartnerUID = uuid.Nil // the subscription says it
	}
	return found, nil
}

// excludesAll tells whether its answers and its state exclude each other: delivered is what was
// answered by 2xx, and nothing else is.
func (f Filter) excludesAll() bool {
	success := f.HTTPStatus/100 == 2 || f.HTTPClass == 2
	failure := f.refused() || f.ErrorClass != ""
	unsettled := f.State == StateFailed || f.State == StateRetrying || f.Waiting
	return success && (unsettled || failure) || failure && f.State == StateDelivered
}

type owners struct {
	Merchant     uuid.NullUUID `db:"merchant"`
	Subscription uuid.NullUUID `db:"subscription"`
	// Applications are how many the merchant has, up to one more than a few.
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

// narrowTo has a filter keep what belongs to one more partner, and tells whether nothing can.
func narrowTo(filter *uuid.UUID, partner uuid.NullUUID) (none bool) {
	none = !partner.Valid || *filter != uuid.Nil && *filter != partner.UUID
	*filter = partner.UUID
	return none
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
// merchant; the zero spread for neither. What is rare is in one index for all
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
