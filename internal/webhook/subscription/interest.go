package subscription

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/lib/pq"

	"drawbridge/internal/lending"
)

// Interest counts the subscriptions that would get an event.
type Interest struct {
	// Subscriptions counts all of them, Paused those among them that are paused and would
	// send it once resumed.
	Subscriptions int `db:"subscriptions"`
	Paused        int `db:"paused"`
}

// Interests counts, for each kind of event, the subscriptions that would get it if it
// happened to a merchant now. Kinds that no subscription wants are missing.
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
	// The same conditions as in Publish.
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
