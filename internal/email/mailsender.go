package email

import (
	"context"
	"errors"
	"fmt"
	"net/mail"
	"time"

	"drawbridge/internal/postgres"
)

// Why a mail is kept instead of being sent.
const (
	reasonNoServer = "no mail server configured"
	reasonCaptured = "a sandbox sends no mail to borrowers"
)

// errSuperseded stops an attempt that another process has ended meanwhile.
var errSuperseded = errors.New("another process took this e-mail over")

// DefaultRetry returns the pause before each retry: ten retries over about a day.
func DefaultRetry() []time.Duration {
	return []time.Duration{
		time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 20 * time.Minute,
		30 * time.Minute, time.Hour, 3 * time.Hour, 7 * time.Hour, 12 * time.Hour,
	}
}

// RenderFunc renders the text of a mail from its facts.
type RenderFunc func(ctx context.Context, draft Draft) (Content, error)

// MailSender sends the mails in the log.
type MailSender struct {
	DB   *postgres.DB
	Jobs Inserter
	// SMTP is nil when no mail server is configured: mails are then rendered,
	// kept and marked StateNotSent.
	SMTP *SMTPClient
	// Captures keeps every mail to a borrower, marked StateCaptured, whatever SMTP is.
	Captures bool
	From     *mail.Address
	Render   RenderFunc
	// Retry is the pause before each retry; nil is DefaultRetry.
	Retry []time.Duration
}

// Report is the result of one job, for the log.
type Report struct {
	// Email is the mail as the job left it.
	Email Email
	// Attempt is nil when the job made none.
	Attempt *Attempt
}

// openAttempt is an attempt under way.
type openAttempt struct {
	row      Detail
	number   int
	envelope Envelope
}

// tries counts the attempts up to this one that count as tries of the mail.
func (a *openAttempt) tries() int { return a.number - a.row.Refusals }

// Longest is the longest that Deliver can take until the outcome is known. Writing the outcome may
// take as long as the database is away.
func (m *MailSender) Longest() time.Duration {
	longest := time.Minute // for the database
	if m.SMTP != nil {
		longest += m.SMTP.limits.Longest()
	}
	return longest
}

// Deliver makes the attempt that a job stands for, or finds that there is nothing to do. A refusal
// by the mail server is an outcome, not an error; an error means that the job must run again. It
// returns NOT_FOUND for a mail that does not exist.
func (m *MailSender) Deliver(ctx context.Context, job SendArgs) (Report, error) {
	var report Report
	var attempt *openAttempt
	err := m.DB.InTx(ctx, func(tx *postgres.Tx) error {
		var err error
		attempt, err = m.begin(ctx, tx, job)
		return err
	})
	if err != nil {
		return Report{}, err
	}
	if attempt != nil {
		receipt := m.SMTP.Send(ctx, attempt.envelope, func(ctx context.Context) error {
			return m.handOver(ctx, job.EmailUID, attempt.number)
		})
		// However long the database is away: if a 250 were not stored, nobody would know that the mail
		// was sent.
		err := postgres.Persist(ctx, "the outcome of an e-mail", func(ctx context.Context) error {
			return m.DB.InTx(ctx, func(tx *postgres.Tx) error {
				return m.conclude(ctx, tx, attempt, receipt)
			})
		})
		if err != nil {
			return Report{}, fmt.Errorf("recording that attempt %d of e-mail %s ended as %s: %w",
				attempt.number, job.EmailUID, receipt.Outcome, err)
		}
	}
	ctx = context.WithoutCancel(ctx)
	report.Email, err = load[Email](ctx, m.DB, columns, job.EmailUID, ``)
	if err != nil || attempt == nil {
		return report, err
	}
	attempts, err := listAttempts(ctx, m.DB, job.EmailUID)
	if err != nil {
		return Report{}, err
	}
	if attempt.number <= len(attempts) {
		report.Attempt = &attempts[attempt.number-1]
	}
	return report, nil
}

// begin decides what to do. It returns nil when no attempt is to be made; the row then has the
// reason.
func (m *MailSender) begin(
	ctx context.Context, tx *postgres.Tx, job SendArgs,
) (*openAttempt, error) {
	row, err := lockDetail(ctx, tx, job.EmailUID)
	if err != nil || row.State != StateQueued || row.WaitsFor != WaitNothing {
		return nil, err // a waiting mail gets another job when it may be sent
	}
	if row.AttemptCount > 0 {
		// Either the last attempt was recorded, and its retry has its own job, which may be this one, or
		// the process died during it.
		outcome, err := closeAbandoned(ctx, tx, job.EmailUID)
		switch {
		case err != nil || outcome == "" && job.Attempt <= row.AttemptCount:
			return nil, err
		case outcome == OutcomeUnknown:
			return nil, m.finish(ctx, tx, row, verdict{
				State: StateFailed, OutcomeUnknown: true,
				Reason: "outcome unknown: the process ended after the message was handed over",
			})
		}
	}
	if row.Tries() > len(m.retry()) {
		return nil, m.finish(ctx, tx, row, m.exhausted("the process ended during the last one"))
	}
	kept, attempts := m.keeps(row.Kind), row.AttemptCount
	if kept == nil {
		attempts++
		if waits, err := m.hold(ctx, tx, row, job); err != nil || waits {
			return nil, err
		}
	}
	if err := m.prepare(ctx, tx, &row, attempts); err != nil {
		return nil, err
	}
	if kept != nil {
		return nil, m.finish(ctx, tx, row, *kept)
	}
	return m.beginAttempt(ctx, tx, row)
}

// keeps returns the verdict on a mail that never leaves this installation, or nil for one that is
// sent.
func (m *MailSender) keeps(kind Kind) *verdict {
	switch {
	case m.Captures && kind.ToBorrower():
		return &verdict{State: StateCaptured, Reason: reasonCaptured}
	case m.SMTP == nil:
		return &verdict{State: StateNotSent, Reason: reasonNoServer}
	}
	return nil
}
