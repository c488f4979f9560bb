package subscription

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/lib/pq"

	"drawbridge/internal/lending"
)

// Interest is how many subscriptions would get an event.
type Interest struct {
	// Subscriptions counts all of them, Paused those among them that wait until
	// they are resumed.
	Subscriptions int `db:"subscriptions"`
	Paused        int `db:"paused"`
}

// Interests tells for each kind of event how many subscriptions would get it if
// it happened to a merchant now. A kind that nobody wants is missing.
func (s *Service) Interests(
	ctx context.Context, partnerUID, merchantUID uuid.UUID,
) (map[lending.EventKind]Interest, error) {
	var kinds, choices pq.StringArray
	for _, kind := range lending.AllEventKinds() {
		for _, choice := range kind.Choices() {
			kinds, choices = append(kinds, string(kind)), append(choices, choice)
		}
	}
	var rows []struct {
		Kind lending.EventKind `db:"kind"`
		Interest
	}
	// As Publish chooses them.
	err := s.DB.SelectContext(ctx, &rows, `
		SELECT kind,
		       count(DISTINCT s.subscription_uid) AS subscriptions,
		       count(DISTINCT s.subscription_uid) FILTER (WHERE s.state = 'paused') AS paused
		  FROM unnest($3::text[], $4::text[]) AS wanted (kind, choice)
		  JOIN subscriptions s ON choice = ANY (s.events)
		 WHERE s.partner_uid = $1
		   AND s.state <> 'deleted'
		   AND (s.all_merchants OR EXISTS (
		           SELECT 1
		             FROM subscription_merchants m
		            WHERE m.subscription_uid = s.subscription_uid
		              AND m.merchant_uid = $2))
		 GROUP BY kind`, partnerUID, merchantUID, kinds, choices)
	if err != nil {
		return nil, fmt.Errorf("counting the subscriptions of partner %s: %w", partnerUID, err)
	}
	interests := make(map[lending.EventKind]Interest, len(rows))
	for _, row := range rows {
		interests[row.Kind] = row.Interest
	}
	return interests, nil
}
