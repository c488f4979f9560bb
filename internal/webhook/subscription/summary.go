package subscription

import (
	"context"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/lib/pq"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
)

// Summary is a subscription as shown in a list, without secrets.
type Summary struct {
	UID         uuid.UUID `db:"subscription_uid"`
	PartnerName string    `db:"partner_name"`
	Endpoint
	State State `db:"state"`
	// Events holds kinds, or AllEvents and kinds that must be named to be chosen.
	Events pq.StringArray `db:"events"`
	// Merchants is how many merchants are covered, 0 for all of the partner's.
	Merchants int       `db:"merchants"`
	CreatedAt time.Time `db:"created_at"`
}

// SummaryFilter narrows a list of subscriptions; zero fields do not. Deleted ones are
// listed only when State selects them.
type SummaryFilter struct {
	PartnerUID uuid.UUID
	State      State
	// Event selects the subscriptions that receive the kind, chosen by name or by AllEvents.
	Event lending.EventKind
	// Host is a part of the URL's host and port; case is ignored.
	Host string
}

// urlHost is the host and port of a subscription's URL. Saved URLs have neither user info
// nor a fragment, so the third part is the whole authority.
const urlHost = `split_part(split_part(s.url, '/', 3), '?', 1)`

// conditions returns the SQL conditions of the filter.
func (f SummaryFilter) conditions() postgres.Conditions {
	var c postgres.Conditions
	c.When(f.State == "", `s.state <> 'deleted'`)
	c.When(f.State != "", `s.state = ?`, string(f.State))
	c.When(f.PartnerUID != uuid.Nil, `s.partner_uid = ?`, f.PartnerUID)
	c.When(f.Event != "", `s.events && ?::text[]`, pq.StringArray(f.Event.Choices()))
	if f.Host != "" { // bound first, because the SQL text contains a ? itself
		host := c.Bind(strings.ToLower(f.Host))
		c.Add(`strpos(` + urlHost + `, ` + host + `) > 0`)
	}
	return c
}

// Summaries returns one page of the subscriptions that match, newest
// first, and the cursor of the next. Error: VALIDATION_ERROR for the limit.
func (s *Service) Summaries(
	ctx context.Context, filter SummaryFilter, page postgres.Paging,
) ([]Summary, postgres.Cursor, error) {
	return postgres.List[Summary]{
		What: "summaries of subscriptions",
		Select: `
		SELECT s.subscription_uid, p.name AS partner_name, ` + EndpointColumns + `, s.state,
		       s.events,
		       (SELECT count(*)
		          FROM subscription_merchants m
		         WHERE m.subscription_uid = s.subscription_uid) AS merchants,
		       s.created_at
		  FROM subscriptions s
		  JOIN partners p USING (partner_uid)`,
		At: `s.created_at`, UID: `s.subscription_uid`,
		Place: func(row Summary) postgres.Cursor {
			return postgres.Cursor{At: row.CreatedAt, UID: row.UID}
		},
	}.Page(ctx, s.DB, filter.conditions(), page)
}

// CountSummaries counts the subscriptions that match, at most limit of them.
func (s *Service) CountSummaries(
	ctx context.Context, filter SummaryFilter, limit int,
) (int, error) {
	c := filter.conditions()
	return s.DB.CountUpTo(ctx, limit, "subscriptions", `FROM subscriptions s`+c.Where(), c.Args)
}
