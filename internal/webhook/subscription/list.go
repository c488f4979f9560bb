package subscription

import (
	"context"

	"github.com/google/uuid"
	"github.com/lib/pq"

	"drawbridge/internal/postgres"
)

// Get returns one subscription, deleted ones included, or NOT_FOUND.
func (s *Service) Get(ctx context.Context, uid uuid.UUID) (Subscription, error) {
	row, err := load(ctx, s.DB, uid, anyState)
	if err != nil {
		return Subscription{}, err
	}
	return s.subscription(row), nil
}

// Filter narrows a list of subscriptions; zero fields do not.
type Filter struct {
	PartnerUID uuid.UUID
	State      State
	// Merchants keeps those that cover one of them; if empty but not nil, those that cover all.
	Merchants []uuid.UUID
}

// List returns one page of the subscriptions that are not deleted,
// newest first. Error: VALIDATION_ERROR for the limit.
func (s *Service) List(
	ctx context.Context, filter Filter, page postgres.Paging,
) ([]Subscription, postgres.Cursor, error) {
	var c postgres.Conditions
	c.Add(`s.state <> 'deleted'`)
	c.When(filter.PartnerUID != uuid.Nil, `s.partner_uid = ?`, filter.PartnerUID)
	c.When(filter.State != "", `s.state = ?`, string(filter.State))
	c.When(filter.Merchants != nil, `(s.all_merchants OR EXISTS (
	           SELECT FROM subscription_merchants m
	            WHERE m.subscription_uid = s.subscription_uid AND m.merchant_uid = ANY (?)))`,
		pq.Array(filter.Merchants))
	rows, next, err := postgres.List[Row]{
		What: "subscriptions", Select: `SELECT ` + columns + ` FROM subscriptions s`,
		At: `s.created_at`, UID: `s.subscription_uid`,
		Place: func(row Row) postgres.Cursor {
			return postgres.Cursor{At: row.CreatedAt, UID: row.UID}
		},
	}.Page(ctx, s.DB, c, page)
	subscriptions := make([]Subscription, 0, len(rows))
	for _, row := range rows {
		subscriptions = append(subscriptions, s.subscription(row))
	}
	return subscriptions, next, err
}
