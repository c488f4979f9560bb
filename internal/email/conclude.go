package email

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/google/uuid"
	"github.com/riverqueue/river"

	"drawbridge/internal/postgres"
)

// record stores what an attempt came to, however long the database is away: after
// a 250 that is not stored, nobody would know that the mail was sent.
func (c *Courier) record(ctx context.Context, trip *passage, receipt Receipt) error {
	err := postgres.Persist(ctx, "the outcome of an e-mail", func(ctx context.Context) error {
		return c.DB.InTx(ctx, func(tx *postgres.Tx) error {
			return c.conclude(ctx, tx, trip, receipt)
		})
	})
	if err != nil {
		return fmt.Errorf("recording that attempt %d of e-mail %s ended as %s: %w",
			trip.number, trip.row.EmailUID, receipt.Outcome, err)
	}
	return nil
}

// conclude writes the attempt's end, the mail's state and the next job at once.
func (c *Courier) conclude(
	ctx context.Context, tx *postgres.Tx, trip *passage, receipt Receipt,
) error {
	uid := trip.row.EmailUID
	if _, err := lockBody(ctx, tx, uid); err != nil {
		return err
	}
	ours, err := finishAttempt(ctx, tx, uid, trip.number, receipt)
	if err != nil || !ours {
		return err
	}
	if waits, err := c.heed(ctx, tx, trip, receipt); err != nil || waits {
		return err
	}
	decided := c.decide(trip.tries(), receipt)
	if decided.State == StateQueued {
		return c.again(ctx, tx, trip)
	}
	return c.finish(ctx, tx, trip.row, decided)
}

// verdict is the state in which an attempt leaves a mail.
type verdict struct {
	State          State
	OutcomeUnknown bool
	Reason         string
}

func (c *Courier) decide(tries int, receipt Receipt) verdict {
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
	if tries > len(c.retry()) {
		return c.exhausted(receipt.Summary())
	}
	return verdict{State: StateQueued}
}

func (c *Courier) exhausted(last string) verdict {
	return verdict{
		State:  StateFailed,
		Reason: fmt.Sprintf("gave up after %d attempts: %s", len(c.retry())+1, last),
	}
}

// again adds the job of the next attempt in the transaction that records this
// one, so that the retry does not depend on the queue's own bookkeeping.
func (c *Courier) again(ctx context.Context, tx *postgres.Tx, trip *passage) error {
	uid := trip.row.EmailUID
	due := tx.Now.Add(jitter(c.retry()[trip.tries()-1]))
	_, err := tx.ExecContext(ctx,
		`UPDATE emails SET next_attempt_at = $2 WHERE email_uid = $1`, uid, due)
	if err != nil {
		return fmt.Errorf("timing the retry of e-mail %s: %w", uid, err)
	}
	service := Service{jobs: c.Jobs}
	return service.enqueue(ctx, tx, SendArgs{EmailUID: uid, Attempt: trip.number + 1},
		&river.InsertOpts{ScheduledAt: due})
}

// settle writes the final state. A mail whose outcome was unknown may still
// turn out to be sent.
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

func (c *Courier) retry() []time.Duration {
	if c.Retry == nil {
		return DefaultRetry()
	}
	return c.Retry
}

// jitter adds up to a tenth, so that the mails of an outage do not all come
// back in the same second.
func jitter(wait time.Duration) time.Duration {
	spread := rand.Int64N(int64(wait)/10 + 1) //nolint:gosec // nobody gains by guessing it
	return wait + time.Duration(spread)
}
