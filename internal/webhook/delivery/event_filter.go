package delivery

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/lib/pq"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
)

// EventFilter narrows a list of events; zero fields do not.
type EventFilter struct {
	Kind           lending.EventKind
	PartnerUID     uuid.UUID
	MerchantUID    uuid.UUID
	ApplicationUID uuid.UUID
	// Since is inclusive, Until exclusive; both apply to the event's time.
	Since, Until time.Time
}

// latestEvents is the order of the list; every index for the list has this order.
const latestEvents = ` ORDER BY e.occurred_at DESC, e.event_uid DESC`

// eventScope is a filter together with how many applications its merchant has.
type eventScope struct {
	EventFilter
	// none means that the merchant is not the partner's: nothing matches.
	none bool
	// few means that the merchant has few applications.
	few bool
}

// eventScopeOf looks up which partner the filter's merchant belongs to: all its events
// are among that partner's, for which there is an index.
func eventScopeOf(ctx context.Context, db *postgres.DB, f EventFilter) (eventScope, error) {
	if f.MerchantUID == uuid.Nil {
		return eventScope{EventFilter: f}, nil
	}
	found, err := ownersOf(ctx, db, f.MerchantUID, uuid.Nil)
	if err != nil {
		return eventScope{}, fmt.Errorf("finding the owner of events: %w", err)
	}
	none := narrowTo(&f.PartnerUID, found.Merchant)
	return eventScope{EventFilter: f, none: none, few: found.Applications <= fewApplications}, nil
}

// newest renders the statement that selects columns of the newest events that match, up to
// a page: application by application where the merchant has few of them.
func (f eventScope) newest(columns string, page postgres.Paging) (string, []any) {
	var c postgres.Conditions
	// Redundant, but it lets the planner leave out later months.
	c.When(!page.From.IsZero(), `e.occurred_at <= ?`, page.From.At)
	c.OlderThan(page.From, `e.occurred_at`, `e.event_uid`)
	if !f.few || f.ApplicationUID != uuid.Nil {
		f.narrow(&c)
		return `SELECT ` + columns + ` FROM events e` + c.Where() + latestEvents +
			` LIMIT ` + c.Bind(page.Limit), c.Args
	}
	c.Add(`e.application_uid = o.application_uid`)
	most, merchant := c.Bind(page.Limit), c.Bind(f.MerchantUID)
	f.withoutOwner().narrow(&c)
	//nolint:unqueryvet // the caller names the columns; the planner drops the rest
	return `SELECT ` + columns + `
		  FROM applications o
		 CROSS JOIN LATERAL (
		       SELECT e.* FROM events e` + c.Where() + latestEvents + ` LIMIT ` + most + `) e
		 WHERE o.merchant_uid = ` + merchant + latestEvents + ` LIMIT ` + most, c.Args
}

// withoutOwner is the filter for events of applications known to be the merchant's.
func (f eventScope) withoutOwner() EventFilter {
	f.MerchantUID, f.PartnerUID = uuid.Nil, uuid.Nil
	return f.EventFilter
}

// countQuery renders the statement that counts at most limit events that match, in any
// order when they are read through a merchant's applications.
func (f eventScope) countQuery(limit int) (string, []any) {
	if f.MerchantUID == uuid.Nil || f.ApplicationUID != uuid.Nil {
		newest, args := f.newest(`1`, postgres.Paging{Limit: limit})
		return `SELECT count(*) FROM (` + newest + `) AS matching`, args
	}
	var c postgres.Conditions
	most, merchant := c.Bind(limit), c.Bind(f.MerchantUID)
	c.Add(`e.application_uid = o.application_uid`)
	f.withoutOwner().narrow(&c)
	return countOfMerchant(`events e`+c.Where(), merchant, most), c.Args
}

// narrow adds the conditions of the filter. The kind is a literal, so that the planner
// sees it: partial indexes and the kind's frequency decide how a list is read.
func (f EventFilter) narrow(c *postgres.Conditions) {
	c.When(f.Kind != "", `e.kind = `+pq.QuoteLiteral(string(f.Kind)))
	c.When(f.PartnerUID != uuid.Nil, `e.partner_uid = ?`, f.PartnerUID)
	c.When(f.MerchantUID != uuid.Nil, `e.merchant_uid = ?`, f.MerchantUID)
	narrowApplication(c, `e`, f.ApplicationUID)
	c.When(!f.Since.IsZero(), `e.occurred_at >= ?`, f.Since)
	c.When(!f.Until.IsZero(), `e.occurred_at < ?`, f.Until)
}
