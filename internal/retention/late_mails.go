package retention

import (
	"context"

	"drawbridge/internal/postgres"
)

// clearLateMails empties up to $1 e-mails that were still queued when their retention ended and no
// longer are, at the time $2. Those under a legal hold by now wait for its release.
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

// removeLateMails removes the text of e-mails that were finished after their retention ended.
func removeLateMails(ctx context.Context, tx *postgres.Tx) (int, bool, error) {
	count, err := postgres.Affected(tx.ExecContext(ctx, clearLateMails, bodyBatch, tx.Now))
	return count, count == bodyBatch, err
}
