package email

import (
	"context"
	"errors"
	"fmt"
	"net/mail"
	"time"

	"drawbridge/internal/postgres"
)

// Why a mail is kept and not sent.
const (
	reasonNoServer = "no mail server configured"
	reasonCaptured = "a sandbox sends no mail to borrowers"
)

// errSuperseded stops an attempt that another process ended meanwhile.
var errSuperseded = errors.New("another process took this e-mail over")

// DefaultRetry is the wait before each retry: ten of them over about a day.
func DefaultRetry() []time.Duration {
	return []time.Duration{
		time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 20 * time.Minute,
		30 * time.Minute, time.Hour, 3 * time.Hour, 7 * time.Hour, 12 * time.Hour,
	}
}

// RenderFunc turns the facts of a mail into its text.
type RenderFunc func(ctx context.Context, draft Draft) (Content, error)

// Courier sends what is in the log.
type Courier struct {
	DB   *postgres.DB
	Jobs Inserter
	// Sender is nil when no mail server is configured: mails are then rendered,
	// kept and marked StateNotSent.
	Sender *Sender
	// Captures keeps every mail to a borrower, marked StateCaptured, whatever Sender is.
	Captures bool
	From     *mail.Address
	Render   RenderFunc
	// Retry is the wait before each retry; nil is DefaultRetry.
	Retry []time.Duration
}

// Report is what one job came to, for the log.
type Report struct {
	// Email is the mail as the job left it.
	Email Email
	// Attempt is nil when the job made none.
	Attempt *Attempt
}

// passage is an attempt under way.
type passage struct {
	row      bodyRow
	number   int
	envelope Envelope
}

// tries counts the attempts up to this one that are any of the mail's tries.
func (p *passage) tries() int { return p.number - p.row.Refusals }

// Longest is the longest that Deliver can take until the outcome is known. To write
// it may take as long as the database is away.
func (c *Courier) Longest() time.Duration {
	longest := time.Minute // for the database
	if c.Sender != nil {
		longest += c.Sender.limits.Longest()
	}
	return longest
}

// Deliver makes the attempt that a job stands for, or finds that there is
// nothing to do. A refusal by the mail server is an outcome, not an error; an
// error means that the job must run again. It returns NOT_FOUND for a mail that
// does not exist.
func (c *Courier) Deliver(ctx context.Context, job SendArgs) (Report, error) {
	var report Report
	var trip *passage
	err := c.DB.InTx(ctx, func(tx *postgres.Tx) error {
		var err error
		trip, err = c.begin(ctx, tx, job)
		return err
	})
	if err != nil {
		return Report{}, err
	}
	if trip != nil {
		receipt := c.Sender.Send(ctx, trip.envelope, func(ctx context.Context) error {
			return c.handOver(ctx, job.EmailUID, trip.number)
		})
		// However long the database is away: after a 250 that is not stored, nobody would
		// know that the mail was sent.
		err := postgres.Persist(ctx, "the outcome of an e-mail", func(ctx context.Context) error {
			return c.DB.InTx(ctx, func(tx *postgres.Tx) error {
				return c.conclude(ctx, tx, trip, receipt)
			})
		})
		if err != nil {
			return Report{}, fmt.Errorf("recording that attempt %d of e-mail %s ended as %s: %w",
				trip.number, job.EmailUID, receipt.Outcome, err)
		}
	}
	ctx = context.WithoutCancel(ctx)
	report.Email, err = find(ctx, c.DB, job.EmailUID)
	if err != nil || trip == nil {
		return report, err
	}
	attempts, err := listAttempts(ctx, c.DB, job.EmailUID)
	if err != nil {
		return Report{}, err
	}
	if trip.number <= len(attempts) {
		report.Attempt = &attempts[trip.number-1]
	}
	return report, nil
}

// begin decides what is to be done. It returns nil when no attempt is to be
// made; the row then says why.
func (c *Courier) begin(
	ctx context.Context, tx *postgres.Tx, job SendArgs,
) (*passage, error) {
	row, err := lockBody(ctx, tx, job.EmailUID)
	if err != nil || row.State != StateQueued || row.WaitsFor != WaitNothing {
		return nil, err // what waits gets another job when it may go
	}
	if job.Attempt <= row.AttemptCount {
		// The job began an attempt before. Either that was recorded, and its
		// retry has a job of its own, or the process died on the way.
		outcome, err := closeAbandoned(ctx, tx, job.EmailUID)
		switch {
		case err != nil || outcome == "":
			return nil, err
		case outcome == OutcomeUnknown:
			return nil, c.finish(ctx, tx, row, verdict{
				State: StateFailed, OutcomeUnknown: true,
				Reason: "outcome unknown: the process ended after the message was handed over",
			})
		}
	}
	if row.Tries() > len(c.retry()) {
		return nil, c.finish(ctx, tx, row, c.exhausted("the process ended during the last one"))
	}
	kept, attempts := c.keeps(row.Kind), row.AttemptCount
	if kept == nil {
		attempts++
		if waits, err := c.hold(ctx, tx, row, job); err != nil || waits {
			return nil, err
		}
	}
	if err := c.prepare(ctx, tx, &row, attempts); err != nil {
		return nil, err
	}
	if kept != nil {
		return nil, c.finish(ctx, tx, row, *kept)
	}
	return c.depart(ctx, tx, row)
}

// keeps is the verdict on a mail that never leaves this installation. It returns nil for one
// that is sent.
func (c *Courier) keeps(kind Kind) *verdict {
	switch {
	case c.Captures && kind.ToBorrower():
		return &verdict{State: StateCaptured, Reason: reasonCaptured}
	case c.Sender == nil:
		return &verdict{State: StateNotSent, Reason: reasonNoServer}
	}
	return nil
}
