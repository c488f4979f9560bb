package email

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jmoiron/sqlx"

	"drawbridge/internal/postgres"
)

// Attempt is one attempt to send a mail.
type Attempt struct {
	// Number counts from 1.
	Number    int       `db:"number"`
	StartedAt time.Time `db:"started_at"`
	// HandedOverAt is when all but the message's closing dot had been transmitted; nil if the attempt
	// did not get that far.
	HandedOverAt *time.Time `db:"handed_over_at"`
	FinishedAt   *time.Time `db:"finished_at"`
	// Outcome is empty while the attempt runs.
	Outcome Outcome `db:"outcome"`
	Stage   Stage   `db:"stage"`
	// ReplyCode and Reply are the server's last reply, 0 and empty for none.
	ReplyCode int    `db:"reply_code"`
	Reply     string `db:"reply"`
	Error     string `db:"error"`
	// Server is the host:port that the mail was sent to.
	Server string `db:"server"`
	TLS    string `db:"tls"`
}

// Duration is how long the attempt took, 0 while it runs.
func (a Attempt) Duration() time.Duration {
	if a.FinishedAt == nil {
		return 0
	}
	return a.FinishedAt.Sub(a.StartedAt)
}

func listAttempts(ctx context.Context, db sqlx.QueryerContext, uid uuid.UUID) ([]Attempt, error) {
	var rows []Attempt
	err := sqlx.SelectContext(ctx, db, &rows, `
		SELECT number,
		       started_at,
		       handed_over_at,
		       finished_at,
		       coalesce(outcome, '') AS outcome,
		       stage,
		       coalesce(reply_code, 0) AS reply_code,
		       reply,
		       error,
		       server,
		       tls
		  FROM email_attempts
		 WHERE email_uid = $1
		 ORDER BY number`, uid)
	if err != nil {
		return nil, fmt.Errorf("listing the attempts of e-mail %s: %w", uid, err)
	}
	return rows, nil
}

// beginAttempt records the attempt before anything is sent.
func (m *MailSender) beginAttempt(
	ctx context.Context, tx *postgres.Tx, row Detail,
) (*openAttempt, error) {
	to, err := headerAddress("", row.ToAddress)
	if err != nil {
		return nil, err
	}
	uid, number := row.EmailUID, row.AttemptCount+1
	_, err = tx.ExecContext(ctx, `
		WITH counted AS (
			UPDATE emails SET attempt_count = $2 WHERE email_uid = $1 AND attempt_count <> $2
		)
		INSERT INTO email_attempts (email_uid, number, started_at, server)
		VALUES ($1, $2, $3, $4)`, uid, number, tx.Now, m.SMTP.server.Address())
	if err != nil {
		return nil, fmt.Errorf("beginning attempt %d of e-mail %s: %w", number, uid, err)
	}
	return &openAttempt{row: row, number: number, envelope: Envelope{
		From: wirePath(m.From), To: wirePath(to), Message: row.Source,
	}}, nil
}

// closeAbandoned ends an attempt whose process died, or was frozen for so long that it counts as
// dead, and returns its outcome: OutcomeInterrupted if nothing was sent, OutcomeUnknown if that is
// unknown, empty if there is no such attempt. The row's lock decides between this and a hand-over
// at the same moment.
func closeAbandoned(ctx context.Context, tx *postgres.Tx, uid uuid.UUID) (Outcome, error) {
	var outcome Outcome
	err := tx.GetContext(ctx, &outcome, `
		UPDATE email_attempts
		   SET outcome = CASE WHEN handed_over_at IS NULL THEN 'interrupted' ELSE 'unknown' END,
		       stage   = CASE WHEN handed_over_at IS NULL THEN 'data' ELSE 'hand_over' END,
		       error   = 'the process ended during the attempt',
		       finished_at = $2
		 WHERE email_uid = $1
		   AND outcome IS NULL
		RETURNING outcome`, uid, tx.Now)
	if err != nil && !postgres.IsNoRows(err) {
		return "", fmt.Errorf("closing an abandoned attempt of e-mail %s: %w", uid, err)
	}
	return outcome, nil
}

// handOver commits that the closing dot is about to be sent. When it returns an error, the dot must
// not be sent.
func (m *MailSender) handOver(ctx context.Context, uid uuid.UUID, number int) error {
	err := m.DB.InTx(ctx, func(tx *postgres.Tx) error {
		var ours bool
		return tx.GetContext(ctx, &ours, `
			UPDATE email_attempts
			   SET handed_over_at = $3
			 WHERE email_uid = $1
			   AND number = $2
			   AND outcome IS NULL
			RETURNING true`, uid, number, tx.Now)
	})
	switch {
	case postgres.IsNoRows(err):
		return errSuperseded
	case err != nil:
		return fmt.Errorf("noting the hand-over in the database: %w", err)
	}
	return nil
}

// finishAttempt returns false when another process has ended the attempt. Only the result that the
// mail was sent after all replaces "unknown".
func finishAttempt(
	ctx context.Context, tx *postgres.Tx, uid uuid.UUID, number int, receipt Receipt,
) (bool, error) {
	var ours bool
	err := tx.GetContext(ctx, &ours, `
		UPDATE email_attempts
		   SET outcome     = $3,
		       stage       = $4,
		       reply_code  = nullif($5, 0),
		       reply       = $6,
		       error       = $7,
		       tls         = $8,
		       finished_at = $9
		 WHERE email_uid = $1
		   AND number = $2
		   AND (outcome IS NULL OR (outcome = 'unknown' AND $3 = 'sent'))
		RETURNING true`,
		uid, number, receipt.Outcome, receipt.Stage, receipt.Code, receipt.Reply,
		receipt.Error, receipt.TLS, tx.Now)
	if err != nil && !postgres.IsNoRows(err) {
		return false, fmt.Errorf("finishing attempt %d of e-mail %s: %w", number, uid, err)
	}
	return ours, nil
}
