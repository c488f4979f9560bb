package email

import (
	"context"
	"fmt"
	"time"

	"github.com/jmoiron/sqlx"

	"drawbridge/internal/postgres"
)

// madeGoodBy selects the mail that made up for a failed row of emails, NULL while there is none:
// the first mail with the same text that was sent after this one was made. It may re-send this one,
// a mail that re-sent it, or the mail that this one re-sent.
const madeGoodBy = `
	CASE WHEN emails.state = 'failed' THEN (
		WITH RECURSIVE family AS (
			SELECT emails.email_uid, emails.resend_of, NULL::timestamptz AS sent_at
			 UNION
			SELECT other.email_uid, other.resend_of,
			       CASE WHEN other.state = 'sent' THEN other.finished_at END
			  FROM family
			  JOIN emails other
			    ON other.resend_of = family.email_uid OR other.email_uid = family.resend_of)
		SELECT family.email_uid
		  FROM family
		 WHERE family.sent_at > emails.created_at
		 ORDER BY family.sent_at, family.email_uid
		 LIMIT 1) END`

// CountFailed counts the mails that failed after a time and were neither re-sent since nor made
// good, at most limit of them, and returns when the last one failed. db is a pool or a transaction.
func CountFailed(
	ctx context.Context, db sqlx.QueryerContext, since time.Time, limit int,
) (count int, last time.Time, err error) {
	var found struct {
		Count int        `db:"count"`
		Last  *time.Time `db:"last"`
	}
	err = sqlx.GetContext(ctx, db, &found, `
		SELECT count(*) AS count, max(finished_at) AS last
		  FROM (SELECT finished_at
		          FROM emails
		         WHERE state = 'failed'
		           AND finished_at > $1
		           AND NOT EXISTS (SELECT FROM emails r WHERE r.resend_of = emails.email_uid)
		           AND `+madeGoodBy+` IS NULL
		         ORDER BY finished_at DESC
		         LIMIT $2) AS failed`, since, limit)
	if err != nil {
		return 0, time.Time{}, fmt.Errorf("counting failed e-mails: %w", err)
	}
	return found.Count, postgres.OrZero(found.Last), nil
}
