package bulk

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jmoiron/sqlx"

	"drawbridge/internal/postgres"
	"drawbridge/internal/webhook/subscription"
)

// Targets returns the subscriptions of a confirmed bulk re-send with the outcomes of
// their items, the largest share first.
func (s *Service) Targets(ctx context.Context, uid uuid.UUID) ([]Target, error) {
	return targetsOf(ctx, s.DB, uid, ` ORDER BY l.waiting + l.sent + l.delivered + l.failed +
		l.cancelled + l.skipped DESC, l.subscription_uid`)
}

// inOrder sorts targets by subscription.
const inOrder = ` ORDER BY l.subscription_uid`

// targetsOf loads targets; rest is appended after the condition.
func targetsOf(
	ctx context.Context, db sqlx.QueryerContext, uid uuid.UUID, rest string,
) ([]Target, error) {
	var targets []Target
	err := sqlx.SelectContext(ctx, db, &targets, `
		SELECT l.subscription_uid, `+subscription.EndpointColumns+`, s.state, s.rate, l.paced_at,
		       l.moved_at, l.waiting, l.sent, l.delivered, l.failed, l.cancelled, l.skipped
		  FROM bulk_resend_lanes l
		  JOIN subscriptions s USING (subscription_uid)
		 WHERE l.bulk_uid = $1`+rest, uid)
	if err != nil {
		return nil, fmt.Errorf("loading the targets of bulk re-send %s: %w", uid, err)
	}
	return targets, nil
}

// ItemFilter selects items of a bulk re-send.
type ItemFilter struct {
	// State is one of ItemStates, empty for all.
	State ItemState
	// After is the position after which the page begins, 0 for the first page.
	After int
	// Limit is from 1 to postgres.MaxPage.
	Limit int
}

// Items returns a page of the items of a bulk re-send in the order of sending, and the
// position after which the next page begins, 0 on the last page. Error: VALIDATION_ERROR
// for the limit.
func (s *Service) Items(
	ctx context.Context, uid uuid.UUID, filter ItemFilter,
) ([]Item, int, error) {
	if err := postgres.CheckLimit(filter.Limit); err != nil {
		return nil, 0, err
	}
	var c postgres.Conditions
	c.Add(`i.bulk_uid = ?`, uid)
	c.Add(`i.position > ?`, filter.After)
	c.When(filter.State != "", `i.state = ?`, string(filter.State))
	text := `
		SELECT i.position, i.subscription_uid, ` + subscription.EndpointColumns + `, i.event_uid,
		       i.event_at, i.event,
		       i.application_uid, i.status, i.delivery_uid, i.state, i.skip_reason, i.new_uid,
		       d.last_http_status, d.last_error_class
		  FROM bulk_resend_items i
		  JOIN subscriptions s USING (subscription_uid)
		  LEFT JOIN deliveries d ON d.delivery_uid = i.new_uid
		                        AND d.created_at = i.new_created_at` + c.Where() +
		` ORDER BY i.position LIMIT ` + c.Bind(filter.Limit+1)
	var items []Item
	if err := s.DB.SelectContext(ctx, &items, text, c.Args...); err != nil {
		return nil, 0, fmt.Errorf("listing the items of bulk re-send %s: %w", uid, err)
	}
	if len(items) <= filter.Limit {
		return items, 0, nil
	}
	items = items[:filter.Limit]
	return items, items[len(items)-1].Position, nil
}

// OfDelivery returns the bulk re-send that created a delivery, the nil UUID if none did.
func (s *Service) OfDelivery(ctx context.Context, uid uuid.UUID) (uuid.UUID, error) {
	var bulk uuid.UUID
	err := s.DB.GetContext(ctx, &bulk,
		`SELECT bulk_uid FROM bulk_resend_items WHERE new_uid = $1`, uid)
	if err != nil && !postgres.IsNoRows(err) {
		return uuid.Nil, fmt.Errorf("looking for the bulk re-send of delivery %s: %w", uid, err)
	}
	return bulk, nil
}

// ReplayTargets returns the subscriptions to which an event can be replayed: those whose
// current configuration selects it and that have no delivery of it.
func (s *Service) ReplayTargets(ctx context.Context, eventUID uuid.UUID) ([]uuid.UUID, error) {
	var targets []uuid.UUID
	err := s.DB.SelectContext(ctx, &targets, `
		SELECT s.subscription_uid
		  FROM events e
		  JOIN subscriptions s ON s.partner_uid = e.partner_uid
		 WHERE e.event_uid = $1
		   AND e.merchant_uid IS NOT NULL
		   AND e.body_removed_at IS NULL
		   AND s.state <> 'deleted'`+wanted+missing, eventUID)
	if err != nil {
		return nil, fmt.Errorf("looking where event %s can be replayed: %w", eventUID, err)
	}
	return targets, nil
}
