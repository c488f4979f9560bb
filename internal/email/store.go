package email

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
)

// columns are the columns of Email.
const columns = `
	email_uid,
	application_uid,
	kind,
	to_name,
	to_address,
	subject,
	state,
	reason,
	outcome_unknown,
	attempt_count,
	refusals,
	waits_for,
	next_attempt_at,
	resend_of,
	resent_by,
	resend_reason,
	created_at,
	finished_at,
	content_removed_at`

// shown are the columns of Email for display.
const shown = columns + `,
	` + madeGoodBy + ` AS made_good_by`

// Filter narrows a list; zero fields match everything.
type Filter struct {
	ApplicationUID uuid.UUID
	State          State
	Kind           Kind
	// ToAddress is the whole address; case is ignored.
	ToAddress string
	// OutcomeUnknown keeps only mails that may or may not have arrived.
	OutcomeUnknown bool
	// Open keeps only mails that failed and were not made good by a re-send.
	Open bool
	// Since is inclusive, Until is not.
	Since time.Time
	Until time.Time
}

// conditions returns the conditions of the filter.
func (f Filter) conditions() postgres.Conditions {
	var c postgres.Conditions
	c.When(f.ApplicationUID != uuid.Nil, "application_uid = ?", f.ApplicationUID)
	c.When(f.State != "", "state = ?", f.State)
	c.When(f.OutcomeUnknown, "outcome_unknown AND state = ?", StateFailed) // state uses the index
	c.When(f.Open, "state = ? AND "+madeGoodBy+" IS NULL", StateFailed)
	c.When(f.Kind != "", "kind = ?", f.Kind)
	c.When(f.ToAddress != "", "lower(to_address) = lower(?)", f.ToAddress)
	c.When(!f.Since.IsZero(), "created_at >= ?", f.Since)
	c.When(!f.Until.IsZero(), "created_at < ?", f.Until)
	return c
}

// List returns one page of mails, newest first, and the cursor of the next
// page. db is a pool or a transaction. Error: VALIDATION_ERROR for the limit.
func List(
	ctx context.Context, db postgres.Querier, filter Filter, page postgres.Paging,
) ([]Email, postgres.Cursor, error) {
	return postgres.List[Email]{
		What: "e-mails", Select: `SELECT ` + shown + ` FROM emails`,
		At: `created_at`, UID: `email_uid`,
		Place: func(m Email) postgres.Cursor {
			return postgres.Cursor{At: m.CreatedAt, UID: m.EmailUID}
		},
	}.Page(ctx, db, filter.conditions(), page)
}

// Count counts the matching mails, at most limit of them. It reads them in the order of the list,
// so that it can stop as early.
func Count(ctx context.Context, db *postgres.DB, filter Filter, limit int) (int, error) {
	c := filter.conditions()
	return db.CountUpTo(ctx, limit, "e-mails",
		`FROM emails`+c.Where()+` ORDER BY created_at DESC, email_uid DESC`, c.Args)
}

// lockOriginals keeps others from re-sending these mails until tx ends; in a fixed order, since two
// transactions may lock the same mails.
func lockOriginals(ctx context.Context, tx *postgres.Tx, uids []uuid.UUID) error {
	_, err := tx.ExecContext(ctx, `
		SELECT
		  FROM emails
		 WHERE email_uid = ANY ($1)
		 ORDER BY created_at, email_uid
		   FOR NO KEY UPDATE`, pq.Array(uids))
	if err != nil {
		return fmt.Errorf("locking e-mails to re-send: %w", err)
	}
	return nil
}

// CountResends returns how often these mails were sent again, in total. db is a pool or a
// transaction.
func CountResends(
	ctx context.Context, db sqlx.QueryerContext, uids ...uuid.UUID,
) (count int, err error) {
	err = sqlx.GetContext(ctx, db, &count,
		`SELECT count(*) FROM emails WHERE resend_of = ANY ($1)`, pq.Array(uids))
	if err != nil {
		return 0, fmt.Errorf("counting re-sends: %w", err)
	}
	return count, nil
}

// LockResends is CountResends, and keeps others from re-sending these mails until tx ends.
func LockResends(ctx context.Context, tx *postgres.Tx, uids ...uuid.UUID) (int, error) {
	if err := lockOriginals(ctx, tx, uids); err != nil {
		return 0, err
	}
	return CountResends(ctx, tx, uids...)
}

// lockResendable locks mails that FindResendable found, and returns those that have not meanwhile
// been re-sent, or emptied by retention.
func lockResendable(ctx context.Context, tx *postgres.Tx, uids []uuid.UUID) ([]uuid.UUID, error) {
	if err := lockOriginals(ctx, tx, uids); err != nil {
		return nil, err
	}
	var left []uuid.UUID
	err := tx.SelectContext(ctx, &left, `
		SELECT email_uid
		  FROM emails
		 WHERE email_uid = ANY ($1)
		   AND content_removed_at IS NULL
		   AND NOT EXISTS (SELECT FROM emails again WHERE again.resend_of = emails.email_uid)
		 ORDER BY created_at, email_uid`, pq.Array(uids))
	if err != nil {
		return nil, fmt.Errorf("choosing e-mails that nobody re-sent meanwhile: %w", err)
	}
	return left, nil
}

// Get returns a mail with its text, attempts and re-sends. db is a pool or a
// transaction. It returns NOT_FOUND for an unknown uid.
func Get(ctx context.Context, db sqlx.QueryerContext, uid uuid.UUID) (Detail, error) {
	detail, err := load[Detail](ctx, db, allColumns+`, `+madeGoodBy+` AS made_good_by`, uid, ``)
	if err != nil {
		return Detail{}, err
	}
	if detail.Attempts, err = listAttempts(ctx, db, uid); err != nil {
		return Detail{}, err
	}
	err = sqlx.SelectContext(ctx, db, &detail.Resends,
		`SELECT `+shown+` FROM emails WHERE resend_of = $1 ORDER BY created_at, email_uid`, uid)
	if err != nil {
		return Detail{}, fmt.Errorf("listing the re-sends of e-mail %s: %w", uid, err)
	}
	return detail, nil
}

// Choose returns the mails with the given ids, the oldest first; missing ones are left out. db is a
// pool or a transaction.
func Choose(ctx context.Context, db sqlx.QueryerContext, uids []uuid.UUID) ([]Email, error) {
	var rows []Email
	err := sqlx.SelectContext(ctx, db, &rows,
		`SELECT `+shown+` FROM emails WHERE email_uid = ANY ($1) ORDER BY created_at, email_uid`,
		pq.Array(uids))
	if err != nil {
		return nil, fmt.Errorf("loading e-mails: %w", err)
	}
	return rows, nil
}

// allColumns are the columns of Detail.
const allColumns = columns + `,
	params,
	html_body,
	text_body,
	source,
	coalesce(message_id, '') AS message_id,
	rendered_at`

// load reads some columns of a mail. locking is the end of the query, which may lock the row until
// the transaction ends. Error: NOT_FOUND.
func load[R Email | Detail](
	ctx context.Context, db sqlx.QueryerContext, columns string, uid uuid.UUID, locking string,
) (row R, err error) {
	err = sqlx.GetContext(ctx, db, &row,
		`SELECT `+columns+` FROM emails WHERE email_uid = $1`+locking, uid)
	switch {
	case postgres.IsNoRows(err):
		return row, lending.NewError(lending.CodeNotFound, "There is no e-mail %s.", uid)
	case err != nil:
		return row, fmt.Errorf("loading e-mail %s: %w", uid, err)
	}
	return row, nil
}

// lockDetail loads a mail with its text, and keeps others from changing it until tx ends.
func lockDetail(ctx context.Context, tx *postgres.Tx, uid uuid.UUID) (Detail, error) {
	return load[Detail](ctx, tx, allColumns, uid, ` FOR UPDATE`)
}

// recipient is a person who receives alerts.
type recipient struct {
	Name    string `db:"name"`
	Address string `db:"address"`
}

// alertRecipients leaves out addresses that no mail can be sent to, so that one of them does not
// undo the change that the alert is about.
func alertRecipients(ctx context.Context, tx *postgres.Tx, also []string) ([]recipient, error) {
	var all []recipient
	err := tx.SelectContext(ctx, &all, `
		SELECT '' AS name, unnest(alert_to) AS address
		  FROM mail_settings
		 UNION ALL
		SELECT name, email
		  FROM users
		 WHERE role IN ('operator', 'admin')
		   AND disabled_at IS NULL
		   AND NOT EXISTS (SELECT FROM mail_settings WHERE cardinality(alert_to) > 0)
		 ORDER BY address`)
	if err != nil {
		return nil, fmt.Errorf("listing who receives alerts: %w", err)
	}
	for _, address := range also {
		all = append(all, recipient{Address: address})
	}
	var valid []recipient
	for _, one := range all {
		known := slices.ContainsFunc(valid, func(other recipient) bool {
			return strings.EqualFold(one.Address, other.Address)
		})
		if !known && CheckAddress(one.Address) == nil {
			valid = append(valid, one)
		}
	}
	return valid, nil
}
