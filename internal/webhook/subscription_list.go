package webhook

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/postgres"
)

// Subscription returns one subscription, deleted ones included, or NOT_FOUND.
func (s *Service) Subscription(ctx context.Context, uid uuid.UUID) (Subscription, error) {
	var row subscriptionRow
	err := s.DB.GetContext(ctx, &row,
		`SELECT `+subscriptionColumns+` FROM subscriptions s WHERE s.subscription_uid = $1`, uid)
	if postgres.IsNoRows(err) {
		return Subscription{}, errNoSubscription(uid)
	}
	if err != nil {
		return Subscription{}, fmt.Errorf("loading subscription %s: %w", uid, err)
	}
	return s.subscription(row)
}

// SubscriptionFilter narrows a list of subscriptions; a zero field does not.
type SubscriptionFilter struct {
	PartnerUID uuid.UUID
	State      State
	Cursor     postgres.Cursor
	// Limit is from 1 to postgres.MaxPage.
	Limit int
}

// Subscriptions returns one page of the subscriptions that are not deleted,
// newest first. Error: VALIDATION_ERROR for the limit.
func (s *Service) Subscriptions(
	ctx context.Context, filter SubscriptionFilter,
) ([]Subscription, postgres.Cursor, error) {
	if err := postgres.CheckLimit(filter.Limit); err != nil {
		return nil, postgres.Cursor{}, err
	}
	var partner *uuid.UUID
	if filter.PartnerUID != uuid.Nil {
		partner = &filter.PartnerUID
	}
	var at *time.Time
	if !filter.Cursor.IsZero() {
		at = &filter.Cursor.At
	}
	var rows []subscriptionRow
	err := s.DB.SelectContext(ctx, &rows, `
		SELECT `+subscriptionColumns+`
		  FROM subscriptions s
		 WHERE s.state <> 'deleted'
		   AND ($1::uuid IS NULL OR s.partner_uid = $1)
		   AND ($2 = '' OR s.state = $2)
		   AND ($3::timestamptz IS NULL OR (s.created_at, s.subscription_uid) < ($3, $4))
		 ORDER BY s.created_at DESC, s.subscription_uid DESC
		 LIMIT $5`, partner, string(filter.State), at, filter.Cursor.UID, filter.Limit+1)
	if err != nil {
		return nil, postgres.Cursor{}, fmt.Errorf("listing subscriptions: %w", err)
	}
	rows, next := postgres.Page(rows, filter.Limit, func(row subscriptionRow) postgres.Cursor {
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
