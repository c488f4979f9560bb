package delivery

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/postgres"
	"drawbridge/internal/webhook/sender"
)

// Count counts the deliveries that match, at most limit of them: an exact count of a long
// log is not worth its cost.
func (l *Log) Count(ctx context.Context, filter Filter, limit int) (int, error) {
	scope, err := scopeOf(ctx, l.DB, filter)
	if err != nil || scope.none {
		return 0, err
	}
	query, args := scope.countQuery(limit)
	count, err := l.DB.Count(ctx, query, args...)
	if err != nil {
		return 0, fmt.Errorf("counting deliveries: %w", err)
	}
	return count, nil
}

// CountNewer counts the deliveries that match and come before a page of the list, that
// is, that arrived since that page was read; it counts at most the page's limit.
func (l *Log) CountNewer(ctx context.Context, filter Filter, page postgres.Paging) (int, error) {
	c := filter.conditions()
	c.Add(`d.created_at >= ?`, page.From.At) // redundant, for the planner only
	c.Add(`(d.created_at, d.delivery_uid) >= (?, ?)`, page.From.At, page.From.UID)
	text := `SELECT count(*) FROM (SELECT 1 FROM deliveries d` + c.Where() + newestFirst +
		` LIMIT ` + c.Bind(page.Limit) + `) AS newer`
	var count int
	err := l.DB.GetContext(ctx, &count, text, c.Args...)
	if err != nil {
		return 0, fmt.Errorf("counting newer deliveries: %w", err)
	}
	return count, nil
}

// FailureGroup counts the deliveries that ended in the same way.
type FailureGroup struct {
	Class sender.ErrorClass `db:"last_error_class"`
	// Status is 0 if no answer came.
	Status int `db:"last_http_status"`
	Count  int `db:"count"`
	// First and Last are when the first and the last of them failed.
	First time.Time `db:"first"`
	Last  time.Time `db:"last"`
}

// FailureGroups groups the deliveries that match, at most limit of the newest, by the
// outcome of their last attempts, the most frequent first.
func (l *Log) FailureGroups(ctx context.Context, filter Filter, limit int) ([]FailureGroup, error) {
	rows, args := filter.Newest(
		`d.last_error_class, d.last_http_status, coalesce(d.finished_at, d.created_at) AS ended_at`,
		limit)
	var groups []FailureGroup
	err := l.DB.SelectContext(ctx, &groups, `
		SELECT coalesce(last_error_class, '') AS last_error_class,
		       coalesce(last_http_status, 0) AS last_http_status, count(*) AS count,
		       min(ended_at) AS first, max(ended_at) AS last
		  FROM (`+rows+`) AS matching
		 GROUP BY 1, 2
		 ORDER BY count(*) DESC, 1, 2`, args...)
	if err != nil {
		return nil, fmt.Errorf("splitting failures: %w", err)
	}
	return groups, nil
}

// OldestFailed considers the newest limit failed deliveries of a subscription that were
// not made good, and of these the ones that failed at since or later. It returns when the
// oldest was created, zero for none. That may be long before since: a delivery waits
// while its subscription is paused, and between its attempts.
func (l *Log) OldestFailed(
	ctx context.Context, subscription uuid.UUID, since time.Time, limit int,
) (time.Time, error) {
	rows, args := Filter{
		SubscriptionUID: subscription, State: StateFailed, Open: true, Test: new(false),
	}.Newest(`d.created_at, d.finished_at`, limit)
	var oldest *time.Time
	err := l.DB.GetContext(ctx, &oldest, `SELECT min(created_at) FROM (`+rows+`) AS failed
		 WHERE finished_at >= `+fmt.Sprintf(`$%d`, len(args)+1), append(args, since)...)
	if err != nil {
		return time.Time{}, fmt.Errorf("looking for what failed at subscription %s: %w",
			subscription, err)
	}
	return postgres.OrZero(oldest), nil
}

// maxResends bounds the re-sends that one delivery's page lists.
const maxResends = 50

// ResendsOf returns the latest re-sends of a delivery, newest first.
func (l *Log) ResendsOf(ctx context.Context, uid uuid.UUID) ([]Delivery, error) {
	var rows []Delivery
	err := l.DB.SelectContext(ctx, &rows, `SELECT `+deliveryColumns+deliveryTables+`
		WHERE d.resend_of = $1
`+newestFirst+` LIMIT $2`, uid, maxResends)
	if err != nil {
		return nil, fmt.Errorf("listing the re-sends of delivery %s: %w", uid, err)
	}
	return rows, nil
}

// NewerDelivered reports whether the subscription already received a later event of the
// same application, which a re-send would now overtake.
func (l *Log) NewerDelivered(ctx context.Context, delivery Delivery) (bool, error) {
	var found bool
	err := l.DB.GetContext(ctx, &found, `
		SELECT EXISTS (
			SELECT 1
			  FROM deliveries
			 WHERE application_uid = $1
			   AND subscription_uid = $2
			   AND event_at > $3
			   AND state = 'delivered')`,
		delivery.ApplicationUID, delivery.SubscriptionUID, delivery.EventAt)
	if err != nil {
		return false, fmt.Errorf("looking for events after delivery %s: %w", delivery.UID, err)
	}
	return found, nil
}

// Neighbours returns the deliveries adjacent to one in the list of a filter: the next
// newer and the next older one, the zero UUID at either end.
func (l *Log) Neighbours(
	ctx context.Context, filter Filter, of Delivery,
) (newer, older uuid.UUID, err error) {
	next, _, err := l.List(ctx, filter, postgres.Paging{From: of.Place(), Limit: 1})
	if err != nil {
		return uuid.Nil, uuid.Nil, err
	}
	if len(next) > 0 {
		older = next[0].UID
	}
	c := filter.conditions()
	c.Add(`d.created_at >= ?`, of.CreatedAt)
	c.Add(`(d.created_at, d.delivery_uid) > (?, ?)`, of.CreatedAt, of.UID)
	err = l.DB.GetContext(ctx, &newer, `SELECT d.delivery_uid FROM deliveries d`+c.Where()+`
		 ORDER BY d.created_at, d.delivery_uid LIMIT 1`, c.Args...)
	if err != nil && !postgres.IsNoRows(err) {
		return uuid.Nil, uuid.Nil, fmt.Errorf("looking beside delivery %s: %w", of.UID, err)
	}
	return newer, older, nil
}
