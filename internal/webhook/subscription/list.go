package subscription

import (
	"context"
	"fmt"

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
	return s.subscription(row)
}

// Filter narrows a list of subscriptions; a zero field does not.
type Filter struct {
	PartnerUID uuid.UUID
	State      State
	// Merchants leaves those that cover one of them; of none, those for all merchants.
	Merchants []uuid.UUID
}

// newestFirst is the order of the lists.
const newestFirst = ` ORDER BY s.created_at DESC, s.subscription_uid DESC`

// List returns one page of the subscriptions that are not deleted,
// newest first. Error: VALIDATION_ERROR for the limit.
func (s *Service) List(
	ctx context.Context, filter Filter, page postgres.Paging,
) ([]Subscription, postgres.Cursor, error) {
	if err := page.Check(); err != nil {
		return nil, postgres.Cursor{}, err
	}
	var c postgres.Conditions
	c.Add(`s.state <> 'deleted'`)
	c.When(filter.PartnerUID != uuid.Nil, `s.partner_uid = ?`, filter.PartnerUID)
	c.When(filter.State != "", `s.state = ?`, string(filter.State))
	c.When(filter.Merchants != nil, `(s.all_merchants OR EXISTS (
	           SELECT FROM subscription_merchants m
	            WHERE m.subscription_uid = s.subscription_uid AND m.merchant_uid = ANY (?)))`,
		pq.Array(filter.Merchants))
	c.OlderThan(page.From, `s.created_at`, `s.subscription_uid`)
	var rows []Row
	text := `SELECT ` + columns + ` FROM subscriptions s` + c.Where() + newestFirst +
		` LIMIT ` + c.Bind(page.Limit+1)
	err := s.DB.SelectContext(ctx, &rows, text, c.Args...)
	if err != nil {
		return nil, postgres.Cursor{}, fmt.Errorf("listing subscriptions: %w", err)
	}
	rows, next := postgres.Page(rows, page.Limit, func(row Row) postgres.Cursor {
		return postgres.Cursor{At: row.CreatedAt, UID: row.UID}
	})
	subscriptions := make([]Subscription, 0, len(rows))
	for _, row := range rows {
		subscription, err := s.subscription(row)
		if err != nil {
			return nil, postgres.Cursor{}, err
		}
		subscriptions = append(subscriptions, subscription)
	}
	return subscriptions, next, nil
}
