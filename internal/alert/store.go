package alert

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
)

// finding is a problem that needs a person.
type finding struct {
	kind Kind
	// subject may be empty if it is a subscription.
	subject  string
	of       uuid.UUID // the subscription, zero for none
	severity Severity
	detail   string
	// count replaces the count of the open item, or is added to it if adds is set.
	count int
	adds  bool
	// since is when the problem began, seen when it was last found; a zero time means now.
	since, seen time.Time
}

// keep raises the finding if its count is not zero, and otherwise settles it.
func keep(ctx context.Context, tx *postgres.Tx, f finding, why string) error {
	if f.count == 0 {
		return settle(ctx, tx, f.kind, f.about(), why)
	}
	_, err := raise(ctx, tx, f)
	return err
}

func (f finding) about() string {
	if f.subject == "" {
		return f.of.String()
	}
	return f.subject
}

// raise opens an item for the finding or updates the open one. It reports whether the item is
// new.
func raise(ctx context.Context, tx *postgres.Tx, f finding) (opened bool, err error) {
	if f.since.IsZero() {
		f.since = tx.Now
	}
	if f.seen.IsZero() {
		f.seen = tx.Now
	}
	err = tx.GetContext(ctx, &opened, `
		INSERT INTO attention_items AS i (item_uid, kind, subject, subscription_uid, severity,
		                                  detail, count, opened_at, last_seen_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
		ON CONFLICT (kind, subject) WHERE closed_at IS NULL DO UPDATE
		   SET count = excluded.count + CASE WHEN $10 THEN i.count ELSE 0 END,
		       severity = excluded.severity,
		       detail = excluded.detail,
		       last_seen_at = greatest(i.last_seen_at, excluded.last_seen_at)
		RETURNING item_uid = $1`,
		postgres.NewUID(tx.Now), string(f.kind), f.about(),
		uuid.NullUUID{UUID: f.of, Valid: f.of != uuid.Nil}, string(f.severity), f.detail,
		max(f.count, 1), f.since, f.seen, f.adds)
	if err != nil {
		return false, fmt.Errorf("noting %s of %s: %w", f.kind, f.about(), err)
	}
	return opened, nil
}

// settle closes the open item, if any, because its cause is gone.
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
	Snoozed State = "snoozed"
	Closed  State = "closed"
)

// Filter narrows the list; zero fields do not narrow it.
type Filter struct {
	// State is one view, empty for all of them.
	State State
	Kind  Kind
	// Owner is an e-mail address; Unowned selects items without an owner instead.
	Owner        string
	Unowned      bool
	Subscription uuid.UUID
}

const itemColumns = `
	i.item_uid, i.kind, i.subject, i.subscription_uid, coalesce(p.name, '') AS partner_name,
	coalesce(s.name, '') AS subscription_name, coalesce(s.url, '') AS url, i.severity, i.detail,
	i.count, i.opened_at, i.last_seen_at, i.owner, i.snoozed_until, i.closed_at, i.closed_by, i.note`

const itemTables = `
	  FROM attention_items i
	  LEFT JOIN subscriptions s USING (subscription_uid)
	  LEFT JOIN partners p USING (partner_uid)`

// conditions returns the filter's conditions on items i.
func (f Filter) conditions(now time.Time) postgres.Conditions {
	var c postgres.Conditions
	switch f.State {
	case Waiting:
		c.Add(`i.closed_at IS NULL AND (i.snoozed_until IS NULL OR i.snoozed_until <= ?)`, now)
	case Snoozed:
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
	return postgres.List[Item]{
		What: "alerts", Select: `SELECT ` + itemColumns + itemTables,
		At: `i.opened_at`, UID: `i.item_uid`,
		Place: func(i Item) postgres.Cursor { return postgres.Cursor{At: i.OpenedAt, UID: i.UID} },
	}.Page(ctx, s.DB, filter.conditions(s.DB.Now().UTC()), page)
}

// Count counts the matching items, at most limit of them.
func (s *Service) Count(ctx context.Context, filter Filter, limit int) (int, error) {
	c := filter.conditions(s.DB.Now().UTC())
	return s.DB.CountUpTo(ctx, limit, "alerts", `FROM attention_items i`+c.Where()+
		` ORDER BY i.opened_at DESC, i.item_uid DESC`, c.Args)
}

// Get returns one item. Error: NOT_FOUND.
func (s *Service) Get(ctx context.Context, uid uuid.UUID) (Item, error) {
	return load(ctx, s.DB, uid, "")
}

// Lock returns an item, and keeps others from changing it until tx ends. Error: NOT_FOUND.
func (s *Service) Lock(ctx context.Context, tx *postgres.Tx, uid uuid.UUID) (Item, error) {
	return load(ctx, tx, uid, ` FOR UPDATE OF i`)
}

func load(ctx context.Context, db postgres.Querier, uid uuid.UUID, lock string) (Item, error) {
	var item Item
	err := db.GetContext(ctx, &item,
		`SELECT `+itemColumns+itemTables+` WHERE i.item_uid = $1`+lock, uid)
	return item, postgres.RowError(err,
		lending.NewError(lending.CodeNotFound, "There is no alert %s.", uid),
		"loading item %s", uid)
}
