package alert

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
)

// finding is something that needs a human.
type finding struct {
	kind     Kind
	subject  string
	of       uuid.UUID // the subscription, zero for none
	severity Severity
	detail   string
	// count is added to that of the open item, or replaces it with total.
	count int
	total bool
	// since is when it began, seen when it was last so.
	since, seen time.Time
}

// raise opens an item for the finding, or brings the open one up to date. It
// tells whether the item is new.
func raise(ctx context.Context, tx *postgres.Tx, f finding) (opened bool, err error) {
	err = tx.GetContext(ctx, &opened, `
		INSERT INTO attention_items AS i (item_uid, kind, subject, subscription_uid, severity,
		                                  detail, count, opened_at, last_seen_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
		ON CONFLICT (kind, subject) WHERE closed_at IS NULL DO UPDATE
		   SET count = CASE WHEN $10 THEN excluded.count ELSE i.count + excluded.count END,
		       severity = excluded.severity,
		       detail = excluded.detail,
		       last_seen_at = greatest(i.last_seen_at, excluded.last_seen_at)
		RETURNING item_uid = $1`,
		postgres.NewUID(tx.Now), string(f.kind), f.subject,
		uuid.NullUUID{UUID: f.of, Valid: f.of != uuid.Nil}, string(f.severity), f.detail,
		max(f.count, 1), f.since, f.seen, f.total)
	if err != nil {
		return false, fmt.Errorf("noting %s of %s: %w", f.kind, f.subject, err)
	}
	return opened, nil
}

// settle closes the open item, if there is one, because its cause is gone.
func settle(ctx context.Context, tx *postgres.Tx, kind Kind, subject, why string) error {
	_, err := tx.ExecContext(ctx, `
		UPDATE attention_items
		   SET closed_at = $3,
		       closed_by = 'system',
		       note = $4
		 WHERE kind = $1
		   AND subject = $2
		   AND closed_at IS NULL`, string(kind), subject, tx.Now, why)
	if err != nil {
		return fmt.Errorf("closing %s of %s: %w", kind, subject, err)
	}
	return nil
}

// State is a view of the queue.
type State string

// The views of the queue.
const (
	Waiting State = "open"
	Asleep  State = "snoozed"
	Closed  State = "closed"
)

// Filter narrows the list; a zero field does not.
type Filter struct {
	// State is one view, empty for all of them.
	State State
	Kind  Kind
	// Owner is an e-mail address; with Unowned nobody's items are kept instead.
	Owner        string
	Unowned      bool
	Subscription uuid.UUID
}

const itemColumns = `
	i.item_uid,
	i.kind,
	i.subject,
	i.subscription_uid,
	coalesce(p.name, '') AS partner_name,
	coalesce(s.name, '') AS subscription_name,
	coalesce(s.url, '') AS url,
	i.severity,
	i.detail,
	i.count,
	i.opened_at,
	i.last_seen_at,
	i.owner,
	i.snoozed_until,
	i.closed_at,
	i.closed_by,
	i.note`

const itemTables = `
	  FROM attention_items i
	  LEFT JOIN subscriptions s USING (subscription_uid)
	  LEFT JOIN partners p USING (partner_uid)`

// conditions are those of the filter over items i.
func (f Filter) conditions(now time.Time) postgres.Conditions {
	var c postgres.Conditions
	switch f.State {
	case Waiting:
		c.Add(`i.closed_at IS NULL AND (i.snoozed_until IS NULL OR i.snoozed_until <= ?)`, now)
	case Asleep:
		c.Add(`i.closed_at IS NULL AND i.snoozed_until > ?`, now)
	case Closed:
		c.Add(`i.closed_at IS NOT NULL`)
	}
	c.When(f.Kind != "", `i.kind = ?`, string(f.Kind))
	if f.Unowned {
		c.Add(`i.owner = ''`)
	} else if f.Owner != "" {
		c.Add(`i.owner = ?`, f.Owner)
	}
	c.When(f.Subscription != uuid.Nil, `i.subscription_uid = ?`, f.Subscription)
	return c
}

// List returns one page of items, newest first, and the cursor of the next.
// Error: VALIDATION_ERROR for the limit.
func (s *Service) List(
	ctx context.Context, filter Filter, page postgres.Paging,
) ([]Item, postgres.Cursor, error) {
	if err := page.Check(); err != nil {
		return nil, postgres.Cursor{}, err
	}
	c := filter.conditions(s.DB.Now().UTC())
	c.OlderThan(page.From, `i.opened_at`, `i.item_uid`)
	var items []Item
	err := s.DB.SelectContext(ctx, &items, `SELECT `+itemColumns+itemTables+c.Where()+
		` ORDER BY i.opened_at DESC, i.item_uid DESC LIMIT `+c.Bind(page.Limit+1), c.Args...)
	if err != nil {
		return nil, postgres.Cursor{}, fmt.Errorf("listing alerts: %w", err)
	}
	items, next := postgres.Page(items, page.Limit, func(item Item) postgres.Cursor {
		return postgres.Cursor{At: item.OpenedAt, UID: item.UID}
	})
	return items, next, nil
}

// Count counts the items that match, at most limit of them.
func (s *Service) Count(ctx context.Context, filter Filter, limit int) (int, error) {
	c := filter.conditions(s.DB.Now().UTC())
	count, err := s.DB.Count(ctx, `SELECT count(*) FROM (SELECT FROM attention_items i`+c.Where()+
		` ORDER BY i.opened_at DESC, i.item_uid DESC LIMIT `+c.Bind(limit)+`) AS matching`, c.Args...)
	if err != nil {
		return 0, fmt.Errorf("counting alerts: %w", err)
	}
	return count, nil
}

// Get returns one item. Error: NOT_FOUND.
func (s *Service) Get(ctx context.Context, uid uuid.UUID) (Item, error) {
	var item Item
	err := s.DB.GetContext(ctx, &item,
		`SELECT `+itemColumns+itemTables+` WHERE i.item_uid = $1`, uid)
	if postgres.IsNoRows(err) {
		return Item{}, errNoItem(uid)
	}
	if err != nil {
		return Item{}, fmt.Errorf("loading item %s: %w", uid, err)
	}
	return item, nil
}

func errNoItem(uid uuid.UUID) error {
	return lending.NewError(lending.CodeNotFound, "There is no alert %s.", uid)
}
