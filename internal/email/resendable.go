package email

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jmoiron/sqlx"

	"drawbridge/internal/postgres"
)

// LeftOut is why a mail that matches a filter is not re-sent with the others.
type LeftOut string

// The reasons, in the order in which they are checked; the first that applies is reported.
const (
	LeftOutQueued     LeftOut = "queued"
	LeftOutSuppressed LeftOut = "suppressed"
	LeftOutCaptured   LeftOut = "captured"
	LeftOutSent       LeftOut = "sent"
	LeftOutResent     LeftOut = "resent"
	LeftOutUnknown    LeftOut = "unknown"
	LeftOutRemoved    LeftOut = "removed"
)

// leftOut renders why a mail is left out, empty for one that is re-sent. Mails that were sent, or
// may have been, are left out unless the filter selects them; those that a restore gave up are
// always left out.
func (f Filter) leftOut(c *postgres.Conditions) string {
	return `
		CASE WHEN state IN ('queued', 'suppressed', 'captured') THEN state
		     WHEN state = 'sent' AND NOT ` + c.Bind(f.State == StateSent) + ` THEN 'sent'
		     WHEN EXISTS (SELECT FROM emails again WHERE again.resend_of = emails.email_uid)
		          OR ` + madeGoodBy + ` IS NOT NULL
		     THEN 'resent'
		     WHEN outcome_unknown AND NOT ` + c.Bind(f.OutcomeUnknown) + `
		          OR state = 'not_sent' AND reason = ` + c.Bind(reasonRestored) + ` THEN 'unknown'
		     WHEN content_removed_at IS NOT NULL THEN 'removed'
		     ELSE '' END`
}

// FindResendable returns the mails that match the filter and can be re-sent, the oldest first. It
// leaves out those that were re-sent before, so that running it twice sends nothing twice, and,
// unless the filter selects them, those that arrived or may have. db is a pool or a transaction.
func FindResendable(
	ctx context.Context, db sqlx.QueryerContext, filter Filter, limit int,
) ([]uuid.UUID, error) {
	c := filter.conditions()
	// The state has an index.
	c.Add(`state IN ('failed', 'not_sent') OR ? AND state = 'sent'`, filter.State == StateSent)
	c.Add(filter.leftOut(&c) + ` = ''`)
	var uids []uuid.UUID
	err := sqlx.SelectContext(ctx, db, &uids, `SELECT email_uid FROM emails`+c.Where()+`
		 ORDER BY created_at, email_uid
		 LIMIT `+c.Bind(limit), c.Args...)
	if err != nil {
		return nil, fmt.Errorf("choosing e-mails to re-send: %w", err)
	}
	return uids, nil
}

// CountLeftOut counts the newest mails that match the filter, at most limit of them, and those
// among them that FindResendable leaves out, by reason.
func CountLeftOut(
	ctx context.Context, db *postgres.DB, filter Filter, limit int,
) (matching int, left map[LeftOut]int, err error) {
	c := filter.conditions()
	why := filter.leftOut(&c)
	var rows []struct {
		Why   LeftOut `db:"why"`
		Count int     `db:"count"`
	}
	err = db.SelectContext(ctx, &rows, `
		SELECT why, count(*) AS count
		  FROM (SELECT `+why+` AS why FROM emails`+c.Where()+`
		         ORDER BY created_at DESC, email_uid DESC
		         LIMIT `+c.Bind(limit)+`) AS matching
		 GROUP BY why`, c.Args...)
	if err != nil {
		return 0, nil, fmt.Errorf("counting e-mails that are not re-sent: %w", err)
	}
	left = map[LeftOut]int{}
	for _, row := range rows {
		matching += row.Count
		if row.Why != "" {
			left[row.Why] = row.Count
		}
	}
	return matching, left, nil
}
