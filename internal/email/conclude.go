package email

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/postgres"
)

// conclude writes the attempt's end, the mail's state and the next job in one transaction. If the
// server refuses this installation, every mail is held back until the server accepts one.
func (m *MailSender) conclude(
	ctx context.Context, tx *postgres.Tx, attempt *openAttempt, receipt Receipt,
) error {
	uid := attempt.row.EmailUID
	if _, err := lockDetail(ctx, tx, uid); err != nil {
		return err
	}
	ours, err := finishAttempt(ctx, tx, uid, attempt.number, receipt)
	if err != nil || !ours {
		return err
	}
	switch {
	case receipt.Outcome == OutcomeRefused:
		return m.refuse(ctx, tx, attempt, receipt)
	case receipt.Stage == StageData, receipt.Stage == StageHandOver,
		receipt.Stage == StageRecipient && receipt.Code != 0:
		// The server accepted us as a sender and judged this mail on its own, or took it.
		if _, err := tx.ExecContext(ctx, `DELETE FROM mail_stop`); err != nil {
			return fmt.Errorf("noting that the mail server takes mail: %w", err)
		}
	}
	decided := m.decide(attempt.tries(), receipt)
	if decided.State == StateQueued {
		return m.again(ctx, tx, attempt)
	}
	return m.finish(ctx, tx, attempt.row, decided)
}

// verdict is the state of a mail after an attempt.
type verdict struct {
	State          State
	OutcomeUnknown bool
	Reason         string
}

func (m *MailSender) decide(tries int, receipt Receipt) verdict {
	switch receipt.Outcome {
	case OutcomeSent:
		return verdict{State: StateSent}
	case OutcomePermanent:
		return verdict{
			State:  StateFailed,
			Reason: "the mail server refused it for good: " + receipt.Summary(),
		}
	case OutcomeUnknown:
		return verdict{
			State: StateFailed, OutcomeUnknown: true,
			Reason: "outcome unknown: the message was handed over, then " + receipt.Summary(),
		}
	case OutcomeTemporary, OutcomeInterrupted, OutcomeRefused:
	}
	if tries > len(m.retry()) {
		return m.exhausted(receipt.Summary())
	}
	return verdict{State: StateQueued}
}

func (m *MailSender) exhausted(last string) verdict {
	return verdict{
		State:  StateFailed,
		Reason: fmt.Sprintf("gave up after %d attempts: %s", len(m.retry())+1, last),
	}
}

// again adds the job of the next attempt in the transaction that records this one, so that the
// retry does not depend on the queue's own bookkeeping.
func (m *MailSender) again(ctx context.Context, tx *postgres.Tx, attempt *openAttempt) error {
	uid := attempt.row.EmailUID
	// Up to a tenth more, so that the mails of an outage are not all retried in the same second.
	wait := m.retry()[attempt.tries()-1]
	spread := rand.Int64N(int64(wait)/10 + 1) //nolint:gosec // nobody gains by guessing it
	due := tx.Now.Add(wait + time.Duration(spread))
	_, err := tx.ExecContext(ctx,
		`UPDATE emails SET next_attempt_at = $2 WHERE email_uid = $1`, uid, due)
	if err != nil {
		return fmt.Errorf("timing the retry of e-mail %s: %w", uid, err)
	}
	return enqueue(ctx, tx, m.Jobs, SendArgs{EmailUID: uid, Attempt: attempt.number + 1}, due)
}

// settle writes the final state. A mail whose outcome was unknown may still turn out to have been
// sent.
func settle(ctx context.Context, tx *postgres.Tx, uid uuid.UUID, decided verdict) error {
	_, err := tx.ExecContext(ctx, `
		UPDATE emails
		   SET state           = $2,
		       reason          = $3,
		       outcome_unknown = $4,
		       next_attempt_at = NULL,
		       finished_at     = $5
		 WHERE email_uid = $1
		   AND (state = 'queued' OR outcome_unknown)`,
		uid, decided.State, decided.Reason, decided.OutcomeUnknown, tx.Now)
	if err != nil {
		return fmt.Errorf("marking e-mail %s as %s: %w", uid, decided.State, err)
	}
	return nil
}

func (m *MailSender) retry() []time.Duration {
	if m.Retry == nil {
		return DefaultRetry()
	}
	return m.Retry
}
