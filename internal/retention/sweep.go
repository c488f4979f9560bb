package retention

import (
	"context"
	"fmt"
	"time"

	"drawbridge/internal/postgres"
)

// sweeps remove data of one application ($1) that its hold kept beyond its time: the bodies before
// $2 and those of e-mails before $3, at $5, and the metadata before $4. Like batches of bodies they
// lock events before they check for open deliveries; and attempts go with their deliveries, of
// which one may end meanwhile.
var sweeps = []string{
	`SELECT
	   FROM events
	  WHERE application_uid = $1
	    AND occurred_at < $2
	    AND body_removed_at IS NULL
	  ORDER BY occurred_at, event_uid
	    FOR NO KEY UPDATE`,
	`UPDATE events e
	    SET body = '', body_removed_at = $5
	  WHERE e.application_uid = $1
	    AND e.occurred_at < $2
	    AND e.body_removed_at IS NULL
	    AND ` + nothingToSend,
	`UPDATE attempts a
	    SET request_headers = '[]', response_headers = '[]', response_body = NULL,
	        content_removed_at = $5
	   FROM deliveries d
	  WHERE d.application_uid = $1
	    AND d.created_at < $2
	    AND a.delivery_uid = d.delivery_uid
	    AND a.delivery_created_at = d.created_at
	    AND a.content_removed_at IS NULL`,
	`UPDATE emails
	    SET html_body = '', text_body = '', source = '', params = '{}', content_removed_at = $5
	  WHERE application_uid = $1
	    AND created_at < $3
	    AND state <> 'queued'
	    AND content_removed_at IS NULL`,
	`, gone AS (
	 DELETE FROM deliveries
	  WHERE application_uid = $1
	    AND created_at < $4
	    AND state NOT IN ('pending', 'retrying')
	 RETURNING delivery_uid, created_at)
	 DELETE FROM attempts a
	  USING gone
	  WHERE a.delivery_uid = gone.delivery_uid
	    AND a.delivery_created_at = gone.created_at`,
	`DELETE FROM events e
	  WHERE e.application_uid = $1
	    AND e.occurred_at < $4
	    AND NOT EXISTS (SELECT 1 FROM deliveries d WHERE d.event_uid = e.event_uid)
	    AND NOT ` + unpublished,
	`INSERT INTO retention_leftovers (event_uid, occurred_at)
	 SELECT e.event_uid, e.occurred_at
	   FROM events e
	  WHERE e.application_uid = $1
	    AND e.occurred_at < $2
	    AND e.body_removed_at IS NULL
	     ON CONFLICT DO NOTHING`,
	`INSERT INTO retention_email_leftovers (email_uid)
	 SELECT email_uid
	   FROM emails
	  WHERE application_uid = $1
	    AND created_at < $3
	    AND content_removed_at IS NULL
	     ON CONFLICT DO NOTHING`,
}

// sweepReleased returns the batch that removes what released legal holds had kept of an application
// that is under no other hold by now.
func (s Settings) sweepReleased(now time.Time) batch {
	return func(ctx context.Context, tx *postgres.Tx) (swept int, more bool, err error) {
		var application string
		err = tx.GetContext(ctx, &application, `
			SELECT h.application_uid
			  FROM application_holds h
			 WHERE h.released_at IS NOT NULL
			   AND h.swept_at IS NULL
			   AND h.application_uid NOT IN (`+legallyHeld+`)
			 ORDER BY h.hold_id
			 LIMIT 1`)
		if postgres.IsNoRows(err) {
			return 0, false, nil
		}
		if err != nil {
			return 0, false, fmt.Errorf("choosing a released legal hold: %w", err)
		}
		for _, sweep := range sweeps {
			// Every statement gets all the times, so each names those that it does not use.
			_, err := tx.ExecContext(ctx, `WITH times AS (SELECT $1::uuid, $2::timestamptz,
				$3::timestamptz, $4::timestamptz, $5::timestamptz) `+sweep,
				application, s.bodyCutoff(now), s.emailCutoff(now), s.monthCutoff(now), tx.Now)
			if err != nil {
				return 0, false, fmt.Errorf("sweeping application %s: %w", application, err)
			}
		}
		_, err = tx.ExecContext(ctx, `
			UPDATE application_holds
			   SET swept_at = $2
			 WHERE application_uid = $1
			   AND released_at IS NOT NULL
			   AND swept_at IS NULL`, application, tx.Now)
		if err != nil {
			return 0, false, fmt.Errorf("noting the sweep of application %s: %w", application, err)
		}
		return 1, true, nil
	}
}
