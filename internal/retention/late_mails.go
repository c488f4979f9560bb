package retention

import (
	"context"
	"fmt"
	"time"

	"drawbridge/internal/postgres"
)

// clearLateMails empties up to $1 e-mails that were still queued when their time was over and
// are not any more, at the time $2. Those under a legal hold by now wait for its release.
const clearLateMails = `
	WITH due AS (
		SELECT e.email_uid
		  FROM retention_email_leftovers l
		  JOIN emails e USING (email_uid)
		 WHERE e.state <> 'queued'
		   AND (e.application_uid IS NULL OR e.application_uid NOT IN (` + legallyHeld + `))
		 LIMIT $1
		   FOR NO KEY UPDATE OF e
	), cleared AS (
		UPDATE emails e
		   SET html_body = '', text_body = '', source = '', params = '{}',
		       content_removed_at = coalesce(e.content_removed_at, $2)
		  FROM due
		 WHERE e.email_uid = due.email_uid
	)
	DELETE FROM retention_email_leftovers l
	 USING due
	 WHERE l.email_uid = due.email_uid`

// removeLateMails removes the text of e-mails that ended after their time was over.
func (s *Service) removeLateMails(ctx context.Context) (int, error) {
	total := 0
	for {
		began, count := time.Now(), int64(0)
		err := s.DB.InTx(ctx, func(tx *postgres.Tx) error {
			if err := shieldLegalHolds(ctx, tx); err != nil {
				return err
			}
			result, err := tx.ExecContext(ctx, clearLateMails, bodyBatch, tx.Now)
			if err != nil {
				return err
			}
			count, err = result.RowsAffected()
			return err
		})
		if err != nil {
			return total, fmt.Errorf("removing the text of e-mails that were late: %w", err)
		}
		total += int(count)
		if count < bodyBatch || !s.rest(ctx, time.Since(began)) {
			return total, nil
		}
	}
}
