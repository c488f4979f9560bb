package subscription

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/lib/pq"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
	"drawbridge/internal/webhook/sender"
)

// Summary is a subscription as a list shows it, without secrets.
type Summary struct {
	UID         uuid.UUID   `db:"subscription_uid"`
	PartnerUID  uuid.UUID   `db:"partner_uid"`
	PartnerName string      `db:"partner_name"`
	URL         string      `db:"url"`
	State       State       `db:"state"`
	Auth        sender.Auth `db:"auth"`
	// Events holds kinds, or AllEvents alone.
	Events pq.StringArray `db:"events"`
	// Merchants is how many are covered, 0 for all of the partner's.
	Merchants int       `db:"merchants"`
	CreatedAt time.Time `db:"created_at"`
}

// SummaryFilter narrows a list of subscriptions; a zero field does not. Deleted
// ones are listed only when State asks for them.
type SummaryFilter struct {
	PartnerUID uuid.UUID
	State      State
	// Event selects the subscriptions that receive the kind, chosen or among all.
	Event lending.EventKind
	// Host is a part of the URL's host and port, in any case.
	Host   string
	Cursor postgres.Cursor
	// Limit is from 1 to postgres.MaxPage.
	Limit int
}

// urlHost is the host and port of a subscription's URL. What is saved has
// neither user info nor a fragment, so the third part is the whole authority.
const urlHost = `split_part(split_part(s.url, '/', 3), '?', 1)`

// where returns the conditions and their arguments.
func (f SummaryFilter) where() (conditions string, args []any) {
	parts := []string{"s.state <> 'deleted'"}
	add := func(condition string, arg any) {
		args = append(args, arg)
		parts = append(parts, fmt.Sprintf(condition, len(args)))
	}
	if f.State != "" {
		parts = nil
		add("s.state = $%d", string(f.State))
	}
	if f.PartnerUID != uuid.Nil {
		add("s.partner_uid = $%d", f.PartnerUID)
	}
	if f.Event != "" {
		add("(s.events && ARRAY['"+AllEvents+"', $%d::text])", string(f.Event))
	}
	if f.Host != "" {
		add("strpos("+urlHost+", $%d) > 0", strings.ToLower(f.Host))
	}
	return " WHERE " + strings.Join(parts, " AND "), args
}

// Summaries returns one page of the subscriptions that match, newest
// first, and the cursor of the next. Error: VALIDATION_ERROR for the limit.
func (s *Service) Summaries(
	ctx context.Context, filter SummaryFilter,
) ([]Summary, postgres.Cursor, error) {
	if err := postgres.CheckLimit(filter.Limit); err != nil {
		return nil, postgres.Cursor{}, err
	}
	conditions, args := filter.where()
	if !filter.Cursor.IsZero() {
		args = append(args, filter.Cursor.At, filter.Cursor.UID)
		conditions += fmt.Sprintf(" AND (s.created_at, s.subscription_uid) < ($%d, $%d)",
			len(args)-1, len(args))
	}
	args = append(args, filter.Limit+1)
	var rows []Summary
	err := s.DB.SelectContext(ctx, &rows, `
		SELECT s.subscription_uid, s.partner_uid, p.name AS partner_name, s.url, s.state, s.auth,
		       s.events,
		       (SELECT count(*)
		          FROM subscription_merchants m
		         WHERE m.subscription_uid = s.subscription_uid) AS merchants,
		       s.created_at
		  FROM subscriptions s
		  JOIN partners p USING (partner_uid)`+conditions+fmt.Sprintf(`
		 ORDER BY s.created_at DESC, s.subscription_uid DESC
		 LIMIT $%d`, len(args)), args...)
	if err != nil {
		return nil, postgres.Cursor{}, fmt.Errorf("listing subscriptions: %w", err)
	}
	rows, next := postgres.Page(rows, filter.Limit, func(row Summary) postgres.Cursor {
		return postgres.Cursor{At: row.CreatedAt, UID: row.UID}
	})
	return rows, next, nil
}

// CountSummaries counts the subscriptions that match, at most limit of them.
func (s *Service) CountSummaries(
	ctx context.Context, filter SummaryFilter, limit int,
) (int, error) {
	conditions, args := filter.where()
	args = append(args, limit)
	count, err := s.DB.Count(ctx, `SELECT count(*) FROM (SELECT 1 FROM subscriptions s`+
		conditions+fmt.Sprintf(` LIMIT $%d) AS matching`, len(args)), args...)
	if err != nil {
		return 0, fmt.Errorf("counting subscriptions: %w", err)
	}
	return count, nil
}
