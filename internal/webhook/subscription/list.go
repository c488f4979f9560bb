package subscription

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

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
	Cursor     postgres.Cursor
	// Limit is from 1 to postgres.MaxPage.
	Limit int
}

// List returns one page of the subscriptions that are not deleted,
// newest first. Error: VALIDATION_ERROR for the limit.
func (s *Service) List(
	ctx context.Context, filter Filter,
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
	var rows []Row
	err := s.DB.SelectContext(ctx, &rows, `
		SELECT `+columns+`
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
	rows, next := postgres.Page(rows, filter.Limit, func(row Row) postgres.Cursor {
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
