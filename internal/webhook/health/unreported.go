package health

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/lib/pq"

	"drawbridge/internal/postgres"
)

// minMailInterval is the shortest time between mails to a partner's contact about a subscription.
const minMailInterval = time.Hour

// addUnreported counts deliveries that failed for good, for the mail to the partner's
// contact, if the partner has one.
func addUnreported(ctx context.Context, tx *postgres.Tx, rows []outcomeRow) error {
	var deliveries pq.StringArray
	var failures pq.Int64Array
	for _, row := range rows {
		if row.Failed != 0 && !row.MadeGood {
			deliveries = append(deliveries, row.Delivery.String())
			failures = append(failures, int64(row.Failed))
		}
	}
	if len(deliveries) == 0 {
		return nil
	}
	_, err := tx.ExecContext(ctx, `
		INSERT INTO untold_failures AS f (subscription_uid, event, failures, since)
		SELECT d.subscription_uid, d.event, sum(u.failures), min(d.event_at)
		  FROM unnest($1::uuid[], $2::integer[]) AS u (delivery_uid, failures)
		  JOIN deliveries d USING (delivery_uid)
		  JOIN subscriptions s USING (subscription_uid)
		  JOIN partners p USING (partner_uid)
		 WHERE p.contact IS NOT NULL
		 GROUP BY d.subscription_uid, d.event
		 ORDER BY d.subscription_uid, d.event
		    ON CONFLICT (subscription_uid, event) DO UPDATE
		   SET failures = f.failures + excluded.failures,
		       since = least(f.since, excluded.since)`, deliveries, failures)
	if err != nil {
		return fmt.Errorf("counting failures for the partners' contacts: %w", err)
	}
	// A delivery that succeeded late may have been reported as failed already: a negative
	// count would cancel out failures to come.
	if _, err := tx.ExecContext(ctx, `DELETE FROM untold_failures WHERE failures <= 0`); err != nil {
		return fmt.Errorf("forgetting failures that were none: %w", err)
	}
	return nil
}

// Unreported counts the deliveries to a subscription that failed for good since its
// partner's contact was last mailed.
type Unreported struct {
	Subscription uuid.UUID `db:"subscription_uid"`
	Name         string    `db:"name"`
	URL          string    `db:"url"`
	PartnerName  string    `db:"partner_name"`
	Contact      string    `db:"contact"`
	Event        string    `db:"event"`
	Failures     int64     `db:"failures"`
	// Since is the time of the first of the events.
	Since time.Time `db:"since"`
	// Deleted means that nothing can be sent to the subscription again.
	Deleted bool `db:"deleted"`
}

// TakeUnreported removes and returns the failures to mail to partners' contacts, by
// subscription and kind of event: each subscription at most once an hour. The caller must
// mail them in tx.
func (s *Service) TakeUnreported(ctx context.Context, tx *postgres.Tx) ([]Unreported, error) {
	_, err := tx.ExecContext(ctx, `
		DELETE FROM untold_failures f
		 USING subscriptions s
		  JOIN partners p USING (partner_uid)
		 WHERE s.subscription_uid = f.subscription_uid
		   AND p.contact IS NULL`)
	if err != nil {
		return nil, fmt.Errorf("forgetting failures of partners without a contact: %w", err)
	}
	var due []string
	err = tx.SelectContext(ctx, &due, `
		INSERT INTO contact_mails (subscription_uid, mailed_at)
		SELECT subscription_uid, $1
		  FROM untold_failures
		 WHERE failures > 0
		 GROUP BY subscription_uid
		 ORDER BY subscription_uid
		    ON CONFLICT (subscription_uid) DO UPDATE
		   SET mailed_at = excluded.mailed_at
		 WHERE contact_mails.mailed_at <= $2
		RETURNING subscription_uid`, tx.Now, tx.Now.Add(-minMailInterval))
	if err != nil {
		return nil, fmt.Errorf("looking for failures that no contact was told: %w", err)
	}
	if len(due) == 0 {
		return nil, nil
	}
	var unreported []Unreported
	err = tx.SelectContext(ctx, &unreported, `
		WITH taken AS (
		         DELETE FROM untold_failures
		          WHERE subscription_uid = ANY($1::uuid[])
		         RETURNING *)
		SELECT subscription_uid, coalesce(s.name, '') AS name, s.url, p.name AS partner_name,
		       p.contact, t.event, t.failures, t.since,
		       s.state = 'deleted' AS deleted
		  FROM taken t
		  JOIN subscriptions s USING (subscription_uid)
		  JOIN partners p USING (partner_uid)
		 WHERE t.failures > 0
		   AND p.contact IS NOT NULL
		 ORDER BY subscription_uid, t.event`, pq.StringArray(due))
	if err != nil {
		return nil, fmt.Errorf("taking failures that no contact was told: %w", err)
	}
	return unreported, nil
}
