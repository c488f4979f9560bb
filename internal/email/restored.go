package email

import (
	"context"
	"fmt"
	"time"

	"drawbridge/internal/postgres"
)

// reasonRestored is why a mail was given up that was waiting when the backup was made.
const reasonRestored = "the database was restored from a backup; it may have been sent before"

// CountQueued counts the mails made up to a time that wait to be sent.
func (s *Service) CountQueued(ctx context.Context, db *postgres.DB, until time.Time) (int, error) {
	var count int
	err := db.GetContext(ctx, &count,
		`SELECT count(*) FROM emails WHERE state = 'queued' AND created_at <= $1`, until)
	if err != nil {
		return 0, fmt.Errorf("counting waiting e-mails: %w", err)
	}
	return count, nil
}

// GiveUpQueued marks every mail made up to a time that waits to be sent as not sent, and returns
// how many there were. It is for a restored database, while no worker runs. Each can be sent again
// by hand.
func (s *Service) GiveUpQueued(ctx context.Context, tx *postgres.Tx, until time.Time) (int, error) {
	_, err := tx.ExecContext(ctx, `
		UPDATE email_attempts a
		   SET outcome = CASE WHEN a.handed_over_at IS NULL THEN 'interrupted' ELSE 'unknown' END,
		       finished_at = $1
		  FROM emails e
		 WHERE e.email_uid = a.email_uid
		   AND e.state = 'queued'
		   AND e.created_at <= $2
		   AND a.outcome IS NULL`, tx.Now, until)
	if err != nil {
		return 0, fmt.Errorf("ending attempts to send e-mails: %w", err)
	}
	count, err := postgres.Affected(tx.ExecContext(ctx, `
		UPDATE emails
		   SET state           = 'not_sent',
		       reason          = $1,
		       next_attempt_at = NULL,
		       finished_at     = $2
		 WHERE state = 'queued'
		   AND created_at <= $3`, reasonRestored, tx.Now, until))
	if err != nil {
		return 0, fmt.Errorf("giving up waiting e-mails: %w", err)
	}
	return count, nil
}
