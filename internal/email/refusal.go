package email

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"

	"drawbridge/internal/postgres"
)

// Why a server cannot be used with the configured credentials.
var (
	errNoStartTLS  = errors.New("the mail server offers no STARTTLS, which the credentials need")
	errNoMechanism = errors.New(
		"the mail server offers none of SCRAM-SHA-256, PLAIN, LOGIN and CRAM-MD5")
)

// refusesUs reports whether an attempt ended because the server refuses this installation, whatever
// the recipient: its address, its credentials, its sender. Only a reply to RCPT can be about the
// recipient, and not if its class is "security or policy" (RFC 3463 section 3.8) or it demands
// authentication.
func (r Receipt) refusesUs(err error) bool {
	switch r.Stage {
	case StageConnect, StageTLS, StageGreeting, StageAuth, StageSender:
		return r.Code/100 == 5 || errors.Is(err, errNoStartTLS) || errors.Is(err, errNoMechanism)
	case StageRecipient:
		return r.Code == 530 || r.Code/100 == 5 && strings.HasPrefix(r.Reply, "5.7.")
	case StageData, StageHandOver:
	}
	return false
}

// refusesSize reports whether the sender was refused because the message is too big (RFC 1870
// section 6.1). Like every reply before the recipient it does not end the mail.
func refusesSize(stage Stage, code int, reply string) bool {
	return stage == StageSender && (code/100 == 5 && strings.HasPrefix(reply, "5.3.4") ||
		code == 552 && !strings.HasPrefix(reply, "5.7."))
}

// RefusesSize reports whether the attempt ended because the message is too big for the server.
func (a Attempt) RefusesSize() bool { return refusesSize(a.Stage, a.ReplyCode, a.Reply) }

const (
	// recentlySent is for how long an accepted mail proves that the server does not refuse us.
	recentlySent = 5 * time.Minute
	// longestSinglePause is the longest pause of a mail that the server refuses while it takes others.
	// The pauses begin like those for a server that refuses us, since it may.
	longestSinglePause = time.Hour
)

// refuse makes a mail wait after an answer that refuses this installation, and all others with it,
// unless the answer evidently is about this mail alone.
func (m *MailSender) refuse(
	ctx context.Context, tx *postgres.Tx, attempt *openAttempt, receipt Receipt,
) error {
	uid, refusals := attempt.row.EmailUID, attempt.row.Refusals
	alone, err := refusedAlone(ctx, tx, attempt, receipt)
	if err != nil {
		return err
	}
	longest := longestPause
	if alone {
		longest = longestSinglePause
	}
	_, err = tx.ExecContext(ctx, `
		UPDATE emails e
		   SET waits_for       = 'server',
		       refusals        = refusals + 1,
		       next_attempt_at = $2
		 WHERE email_uid = $1
		   AND `+isQueued, uid, tx.Now.Add(pauseAfter(refusals, longest)))
	if err != nil {
		return fmt.Errorf("letting e-mail %s wait for the mail server: %w", uid, err)
	}
	if alone {
		return nil
	}
	_, err = tx.ExecContext(ctx, `
		INSERT INTO mail_stop (since, answer, next_probe_at)
		VALUES ($1, $2, $3)
		ON CONFLICT (only_row) DO UPDATE SET answer = excluded.answer`,
		tx.Now, receipt.Summary(), tx.Now.Add(firstPause))
	if err != nil {
		return fmt.Errorf("noting that the mail server refuses us: %w", err)
	}
	return nil
}

// refusedAlone reports whether the answer is about this mail alone: its size, or a recipient while
// the server took another mail lately, or since it first refused that recipient.
func refusedAlone(
	ctx context.Context, tx *postgres.Tx, attempt *openAttempt, receipt Receipt,
) (alone bool, err error) {
	if receipt.Stage != StageRecipient {
		return refusesSize(receipt.Stage, receipt.Code, receipt.Reply), nil
	}
	err = tx.GetContext(ctx, &alone, `
		SELECT EXISTS (
		           SELECT
		             FROM emails
		            WHERE state = 'sent'
		              AND finished_at > (SELECT least(min(finished_at), $2)
		                                   FROM email_attempts
		                                  WHERE email_uid = $1
		                                    AND outcome = 'refused'
		                                    AND stage = 'recipient'))`,
		attempt.row.EmailUID, tx.Now.Add(-recentlySent))
	if err != nil {
		return false, fmt.Errorf("looking whether the mail server takes other e-mails: %w", err)
	}
	return alone, nil
}

// Refused are the mails that wait because the server refused them, though it may accept others.
type Refused struct {
	Since time.Time `db:"since"`
	// Answer is the server's last answer.
	Answer string `db:"answer"`
	Count  int    `db:"count"`
}

// FindRefused returns the refused mails, nil if there are none. db is a pool or a transaction.
func FindRefused(ctx context.Context, db sqlx.QueryerContext) (*Refused, error) {
	var refused []Refused
	err := sqlx.SelectContext(ctx, db, &refused, `
		SELECT min(a.finished_at) OVER () AS since,
		       concat_ws(' ', a.reply_code, a.reply) AS answer,
		       count(*) OVER () AS count
		  FROM emails e
		 CROSS JOIN LATERAL (
		           SELECT outcome, finished_at, reply_code, reply
		             FROM email_attempts
		            WHERE email_uid = e.email_uid
		              AND outcome IS NOT NULL
		            ORDER BY number DESC
		            LIMIT 1) AS a
		 WHERE e.state = 'queued'
		   AND e.refusals > 0
		   AND a.outcome = 'refused'
		 ORDER BY a.finished_at DESC
		 LIMIT 1`)
	if err != nil {
		return nil, fmt.Errorf("looking for e-mails that the mail server refuses: %w", err)
	}
	if len(refused) == 0 {
		return nil, nil //nolint:nilnil // none is no error
	}
	return &refused[0], nil
}
