package email

import (
	"context"
	"encoding/json"
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

// columns are those of Email.
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

// shown are the columns of Email where people look at it.
const shown = columns + `,
	` + madeGoodBy + ` AS made_good_by`

// Filter narrows a list; a zero field does not.
type Filter struct {
	ApplicationUID uuid.UUID
	State          State
	Kind           Kind
	// ToAddress is the whole address, in any case.
	ToAddress string
	// OutcomeUnknown keeps only mails that may or may not have arrived.
	OutcomeUnknown bool
	// Open keeps only mails that failed and were not made good by a re-send.
	Open bool
	// Since is inclusive, Until is not.
	Since time.Time
	Until time.Time
}

// conditions are those of the filter.
func (f Filter) conditions() postgres.Conditions {
	var c postgres.Conditions
	if f.ApplicationUID != uuid.Nil {
		c.Add("application_uid = ?", f.ApplicationUID)
	}
	if f.State != "" {
		c.Add("state = ?", f.State)
	}
	if f.OutcomeUnknown {
		c.Add("outcome_unknown AND state = ?", StateFailed) // the state has the index
	}
	c.When(f.Open, "state = ? AND "+madeGoodBy+" IS NULL", StateFailed)
	if f.Kind != "" {
		c.Add("kind = ?", f.Kind)
	}
	if f.ToAddress != "" {
		c.Add("lower(to_address) = lower(?)", f.ToAddress)
	}
	if !f.Since.IsZero() {
		c.Add("created_at >= ?", f.Since)
	}
	if !f.Until.IsZero() {
		c.Add("created_at < ?", f.Until)
	}
	return c
}

// List returns one page of mails, newest first, and the cursor of the next
// page. db is a pool or a transaction.
func List(
	ctx context.Context, db sqlx.QueryerContext, filter Filter, page postgres.Paging,
) ([]Email, postgres.Cursor, error) {
	c := filter.conditions()
	c.OlderThan(page.From, `created_at`, `email_uid`)
	var rows []Email
	err := sqlx.SelectContext(ctx, db, &rows, `SELECT `+shown+` FROM emails`+c.Where()+
		` ORDER BY created_at DESC, email_uid DESC LIMIT `+c.Bind(page.Limit+1), c.Args...)
	if err != nil {
		return nil, postgres.Cursor{}, fmt.Errorf("listing e-mails: %w", err)
	}
	rows, next := postgres.Page(rows, page.Limit, func(row Email) postgres.Cursor {
		return postgres.Cursor{At: row.CreatedAt, UID: row.EmailUID}
	})
	return rows, next, nil
}

// lockOriginals keeps others from sending these mails again until tx ends; in one order, since two
// may ask for the same ones.
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

// CountResends tells how often these mails were sent again, all told. db is a pool or a
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

// LockResends is CountResends, and keeps others from sending these mails again until tx ends.
func LockResends(ctx context.Context, tx *postgres.Tx, uids ...uuid.UUID) (int, error) {
	if err := lockOriginals(ctx, tx, uids); err != nil {
		return 0, err
	}
	return CountResends(ctx, tx, uids...)
}

// lockResendable locks mails that FindResendable found, and returns those that somebody else did
// not send again, nor retention empty, meanwhile.
func lockResendable(
	ctx context.Context, tx *postgres.Tx, uids []uuid.UUID,
) ([]uuid.UUID, error) {
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
	var row bodyRow
	err := sqlx.GetContext(ctx, db, &row,
		`SELECT `+bodyColumns+`, `+madeGoodBy+` AS made_good_by FROM emails WHERE email_uid = $1`, uid)
	if err := notFound(err, uid); err != nil {
		return Detail{}, err
	}
	detail, err := row.detail()
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

// Choose returns the mails with the given ids, the oldest first; one that does not
// exist is left out. db is a pool or a transaction.
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

// bodyRow is a whole row of emails.
type bodyRow struct {
	Email
	Params     []byte     `db:"params"`
	HTML       string     `db:"html_body"`
	Text       string     `db:"text_body"`
	Source     string     `db:"source"`
	MessageID  string     `db:"message_id"`
	RenderedAt *time.Time `db:"rendered_at"`
}

func (r bodyRow) detail() (Detail, error) {
	detail := Detail{
		Email:      r.Email,
		HTML:       r.HTML,
		Text:       r.Text,
		Source:     r.Source,
		MessageID:  r.MessageID,
		RenderedAt: r.RenderedAt,
	}
	if err := json.Unmarshal(r.Params, &detail.Params); err != nil {
		return Detail{}, fmt.Errorf("reading the facts of e-mail %s: %w", r.EmailUID, err)
	}
	return detail, nil
}

const bodyColumns = columns + `,
	params,
	html_body,
	text_body,
	source,
	coalesce(message_id, '') AS message_id,
	rendered_at`

// lockBody loads a whole row, and keeps others from changing the row until tx ends.
func lockBody(ctx context.Context, tx *postgres.Tx, uid uuid.UUID) (bodyRow, error) {
	var row bodyRow
	err := tx.GetContext(ctx, &row,
		`SELECT `+bodyColumns+` FROM emails WHERE email_uid = $1 FOR UPDATE`, uid)
	return row, notFound(err, uid)
}

func find(ctx context.Context, db sqlx.QueryerContext, uid uuid.UUID) (Email, error) {
	var row Email
	err := sqlx.GetContext(ctx, db, &row,
		`SELECT `+columns+` FROM emails WHERE email_uid = $1`, uid)
	return row, notFound(err, uid)
}

// lockOriginal loads a mail that is to be sent again, and keeps its text, and others from sending
// it again, until tx ends.
func lockOriginal(ctx context.Context, tx *postgres.Tx, uid uuid.UUID) (Email, error) {
	var row Email
	err := tx.GetContext(ctx, &row,
		`SELECT `+columns+` FROM emails WHERE email_uid = $1 FOR NO KEY UPDATE`, uid)
	return row, notFound(err, uid)
}

func notFound(err error, uid uuid.UUID) error {
	switch {
	case err == nil:
		return nil
	case postgres.IsNoRows(err):
		return lending.NewError(lending.CodeNotFound, "There is no e-mail %s.", uid)
	}
	return fmt.Errorf("loading e-mail %s: %w", uid, err)
}

// insertEmail tells whether the mail is new: a second welcome mail is not.
func insertEmail(
	ctx context.Context, tx *postgres.Tx, uid uuid.UUID, message Message,
) (bool, error) {
	params, err := encodeFacts(message.Params)
	if err != nil {
		return false, err
	}
	state, reason := StateQueued, ""
	if message.Paused {
		state, reason = StateSuppressed, reasonPaused
	}
	result, err := tx.ExecContext(ctx, `
		INSERT INTO emails (email_uid, application_uid, kind, to_name, to_address, params,
		                    state, reason, created_at, next_attempt_at, finished_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9,
		        CASE WHEN $7 = 'queued' THEN $9::timestamptz END,
		        CASE WHEN $7 <> 'queued' THEN $9::timestamptz END)
		ON CONFLICT (application_uid)
		   WHERE kind = 'welcome' AND resend_of IS NULL AND state <> 'suppressed'
		   DO NOTHING`,
		uid, uuid.NullUUID{UUID: message.ApplicationUID, Valid: message.ApplicationUID != uuid.Nil},
		message.Kind, cleanName(message.ToName), message.ToAddress, params,
		state, reason, tx.Now)
	if err != nil {
		return false, fmt.Errorf("logging the %s e-mail: %w", message.Kind, err)
	}
	rows, err := result.RowsAffected()
	if err != nil {
		return false, fmt.Errorf("logging the %s e-mail: %w", message.Kind, err)
	}
	return rows == 1, nil
}

func encodeFacts(params map[string]string) ([]byte, error) {
	// Never null, so that reading it back needs no special case.
	facts := make(map[string]string, len(params))
	for name, value := range params {
		facts[name] = strings.ReplaceAll(value, "\x00", "") // jsonb holds no NUL
	}
	encoded, err := json.Marshal(facts)
	if err != nil {
		return nil, fmt.Errorf("encoding the facts of an e-mail: %w", err)
	}
	return encoded, nil
}

// insertAlert logs one mail to each recipient.
func insertAlert(
	ctx context.Context, tx *postgres.Tx, kind Kind, params map[string]string,
	recipients []recipient,
) ([]uuid.UUID, error) {
	facts, err := encodeFacts(params)
	if err != nil {
		return nil, err
	}
	var uids []uuid.UUID
	var names, addresses []string
	for _, to := range recipients {
		uids = append(uids, postgres.NewUID(tx.Now))
		names, addresses = append(names, cleanName(to.Name)), append(addresses, to.Address)
	}
	_, err = tx.ExecContext(ctx, `
		INSERT INTO emails (email_uid, kind, to_name, to_address, params, state, created_at,
		                    next_attempt_at)
		SELECT uid, $4, name, address, $5, 'queued', $6, $6
		  FROM unnest($1::uuid[], $2::text[], $3::text[]) AS recipient (uid, name, address)`,
		pq.Array(uids), pq.Array(names), pq.Array(addresses), kind, facts, tx.Now)
	if err != nil {
		return nil, fmt.Errorf("logging the alert %s: %w", kind, err)
	}
	return uids, nil
}

// insertResend copies the facts and the text of the mail that again re-sends.
// The message id is not copied: receivers drop a second message that bears the
// first one's.
func insertResend(ctx context.Context, tx *postgres.Tx, again Email) error {
	_, err := tx.ExecContext(ctx, `
		INSERT INTO emails (email_uid, application_uid, kind, to_name, to_address, params,
		                    subject, html_body, text_body, state, created_at, next_attempt_at,
		                    resend_of, resent_by, resend_reason)
		SELECT $1, application_uid, kind, to_name, to_address, params,
		       subject, html_body, text_body, 'queued', $3, $3,
		       email_uid, $4, $5
		  FROM emails
		 WHERE email_uid = $2`,
		again.EmailUID, again.ResendOf, tx.Now, again.ResentBy, again.ResendReason)
	if err != nil {
		return fmt.Errorf("logging the re-send of e-mail %s: %w", again.ResendOf.UUID, err)
	}
	return nil
}

// recipient is a person who receives alerts.
type recipient struct {
	Name    string `db:"name"`
	Address string `db:"address"`
}

// alertRecipients leaves out addresses that no mail can be sent to, so that one
// of them does not undo the change that the alert is about.
func alertRecipients(
	ctx context.Context, tx *postgres.Tx, also []string,
) ([]recipient, error) {
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
