package delivery

import (
	"context"
	"fmt"
	"time"

	"drawbridge/internal/postgres"
	"drawbridge/internal/webhook/subscription"
)

// CountOpen counts the deliveries made until a time that are not final.
func (s *Service) CountOpen(ctx context.Context, until time.Time) (int, error) {
	var count int
	err := s.DB.GetContext(ctx, &count, `
		SELECT count(*)
		  FROM deliveries
		 WHERE state IN ('pending', 'retrying')
		   AND created_at <= $1`, until)
	if err != nil {
		return 0, fmt.Errorf("counting open deliveries: %w", err)
	}
	return count, nil
}

// CancelOpen ends every delivery made until a time that is not final, and pauses
// the bulk re-sends that would make more. It returns how many deliveries those
// were. It is for a database that was restored, while no worker runs: they may
// have been sent after the backup. Each can be sent again by hand.
func (s *Service) CancelOpen(
	ctx context.Context, tx *postgres.Tx, until time.Time,
) (int, error) {
	result, err := tx.ExecContext(ctx, `
		UPDATE deliveries d
		   SET `+subscription.Cancelled+`
		 WHERE d.state IN ('pending', 'retrying')
		   AND d.created_at <= $1`, until, tx.Now)
	if err != nil {
		return 0, fmt.Errorf("cancelling open deliveries: %w", err)
	}
	if _, err := tx.ExecContext(ctx,
		`UPDATE bulk_resends SET state = 'paused' WHERE state = 'running'`); err != nil {
		return 0, fmt.Errorf("pausing bulk re-sends: %w", err)
	}
	count, err := result.RowsAffected()
	return int(count), err
}
