package delivery

import (
	"context"
	"fmt"

	"github.com/google/uuid"
)

// fewApplications is up to how many applications a merchant's rows are listed
// application by application. Each costs a look into every month; beyond it is
// cheaper to go through what is newest of the partner until a page is full.
const fewApplications = 120

// scope is a filter whose owners are known, which decides how it is read.
type scope struct {
	Filter
	// none tells that the filter's owners exclude each other: nothing matches.
	none bool
	// few tells that the merchant has few applications.
	few bool
}

// scope finds out who owns what the filter names: a merchant's deliveries are
// all among its partner's.
func (s *Service) scope(ctx context.Context, f Filter) (scope, error) {
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
	err := s.DB.GetContext(ctx, &owners, `
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
