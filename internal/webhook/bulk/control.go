package bulk

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
	"drawbridge/internal/webhook/subscription"
)

// Queue is the name of the queue of bulk re-send jobs.
const Queue = "bulk"

// Args are the arguments of a job that advances a bulk re-send.
type Args struct {
	BulkUID uuid.UUID `json:"bulk_uid"`
	// Run is the run of the bulk re-send that the job belongs to.
	Run int `json:"run"`
}

// Kind names the job in the queue.
func (Args) Kind() string { return "webhook_bulk_resend" }

// InsertOpts puts the job in its queue.
func (Args) InsertOpts() river.InsertOpts { return river.InsertOpts{Queue: Queue} }

var _ rivertype.JobArgs = Args{}

// Consent is somebody's decision to send what a draft planned.
type Consent struct {
	By string
	// Reason is stored with every new delivery; it is required.
	Reason string
	// Count is how many deliveries the person was shown and agreed to. It is required above
	// TypedAbove; zero agrees to any smaller number.
	Count int
	// Any agrees to any number, including none: then the bulk re-send is finished at once.
	Any bool
	// Agree, unless nil, returns an error if the options or targets, the latter ordered by
	// subscription, differ from what the person was shown.
	Agree func(options Options, targets []Target) error
}

// Confirm freezes the set of a draft and begins to send it: from then on neither new
// deliveries nor changes of old ones add to it. It returns how many deliveries there will
// be.
//
// Errors: NOT_FOUND, INVALID_STATE if it was confirmed already, if nothing would be sent,
// or if the count has changed since the plan was shown; VALIDATION_ERROR for the reason,
// for a large set without its count, and for more than MaxItems; those of the consent's
// Agree.
func (s *Service) Confirm(
	ctx context.Context, tx *postgres.Tx, uid uuid.UUID, consent Consent,
) (int, error) {
	var errs lending.FieldErrors
	consent.Reason = errs.Text("reason", consent.Reason, subscription.MaxReason)
	if err := errs.Err(); err != nil {
		return 0, err
	}
	row, err := lock(ctx, tx, uid)
	if err != nil {
		return 0, err
	}
	if row.State != StateDraft {
		return 0, errState(row, "confirmed", "send more")
	}
	_, err = tx.ExecContext(ctx, `
		UPDATE bulk_resends
		   SET state = 'running', run = 1, reason = $2, confirmed_by = $3, confirmed_at = $4,
		       settled_at = $4
		 WHERE bulk_uid = $1`, uid, consent.Reason, consent.By, tx.Now)
	if err != nil {
		return 0, fmt.Errorf("confirming bulk re-send %s: %w", uid, err)
	}
	if err := row.checkSize(ctx, tx); err != nil {
		return 0, err
	}
	counts, err := freeze(ctx, tx, row.Resend)
	if err != nil {
		return 0, err
	}
	if err := consent.check(counts); err != nil {
		return 0, err
	}
	if consent.Agree != nil {
		targets, err := targetsOf(ctx, tx, uid, inOrder)
		if err == nil {
			err = consent.Agree(row.Options, targets)
		}
		if err != nil {
			return 0, err
		}
	}
	if counts.Total() == 0 {
		return 0, finish(ctx, tx, uid)
	}
	return counts.Total(), s.enqueue(ctx, tx, Args{BulkUID: uid, Run: 1})
}

// check compares the consent with the frozen set.
func (c Consent) check(counts Counts) error {
	switch total := counts.Total(); {
	case counts.All() > MaxItems:
		return errTooLarge()
	case c.Any:
		return nil
	case total == 0:
		return lending.NewError(lending.CodeInvalidState,
			"nothing would be sent; choose other deliveries")
	case c.Count == 0 && total > TypedAbove:
		return lending.Invalid("count",
			`"count" is required to send more than %d deliveries; this would send %d`, TypedAbove, total)
	case c.Count != 0 && c.Count != total:
		return lending.NewError(lending.CodeInvalidState,
			"this would now send %d deliveries, not %d; review the plan again", total, c.Count)
	}
	return nil
}

// freeze writes the set in one statement, and so as of one point in time.
func freeze(ctx context.Context, tx *postgres.Tx, bulk Resend) (Counts, error) {
	chosen, args := bulk.chosen(false)
	c := postgres.Conditions{Args: args}
	uid, partner, now := c.Bind(bulk.UID), c.Bind(bulk.Scope.PartnerUID), c.Bind(tx.Now)
	text := chosen + `, target AS (
			INSERT INTO bulk_resend_lanes (bulk_uid, subscription_uid, partner_uid, paced_at,
			                               moved_at, waiting, skipped)
			SELECT ` + uid + `::uuid, subscription_uid, ` + partner + `::uuid,
			       ` + now + `::timestamptz - interval '1 second', ` + now + `,
			       count(*) FILTER (WHERE skip_reason IS NULL), count(skip_reason)
			  FROM judged
			 GROUP BY subscription_uid
		)
		INSERT INTO bulk_resend_items (bulk_uid, position, subscription_uid, event_uid, event_at,
		                               event, application_uid, status, test, delivery_uid,
		                               delivery_created_at, state, skip_reason)
		SELECT ` + uid + `,
		       row_number() OVER (ORDER BY event_at, event_uid, subscription_uid, created_at),
		       subscription_uid, event_uid, event_at, event, application_uid, status, test,
		       delivery_uid, created_at,
		       CASE WHEN skip_reason IS NULL THEN 'waiting' ELSE 'skipped' END, skip_reason
		  FROM judged`
	if _, err := tx.ExecContext(ctx, text, c.Args...); err != nil {
		return Counts{}, fmt.Errorf("freezing the set of bulk re-send %s: %w", bulk.UID, err)
	}
	row, err := get(ctx, tx, bulk.UID)
	return row.Counts, err
}

// Pause stops sending; sent deliveries go on. Pausing a paused one changes nothing.
// Errors: NOT_FOUND, INVALID_STATE if no item is waiting.
func (s *Service) Pause(ctx context.Context, tx *postgres.Tx, uid uuid.UUID) error {
	row, err := lock(ctx, tx, uid)
	if err != nil || row.State == StatePaused {
		return err
	}
	if row.State != StateRunning {
		return errState(row, "paused", "send")
	}
	if row.Counts.Waiting == 0 {
		return errAllSent(row)
	}
	return setState(ctx, tx, uid, StatePaused)
}

// Resume goes on sending. Resuming a running one changes nothing. Errors: NOT_FOUND,
// INVALID_STATE if it was never confirmed or has ended.
func (s *Service) Resume(ctx context.Context, tx *postgres.Tx, uid uuid.UUID) error {
	row, err := lock(ctx, tx, uid)
	if err != nil || row.State == StateRunning {
		return err
	}
	if row.State != StatePaused {
		return errState(row, "resumed", "send")
	}
	if err := setState(ctx, tx, uid, StateRunning); err != nil {
		return err
	}
	return s.restart(ctx, tx, uid)
}

// restart gives a bulk re-send a new job; an older job that still waits finds that its
// run is over and ends.
func (s *Service) restart(ctx context.Context, tx *postgres.Tx, uid uuid.UUID) error {
	var run int
	err := tx.GetContext(ctx, &run, `
		UPDATE bulk_resends
		   SET run = run + 1
		 WHERE bulk_uid = $1
		RETURNING run`, uid)
	if err != nil {
		return fmt.Errorf("restarting bulk re-send %s: %w", uid, err)
	}
	return s.enqueue(ctx, tx, Args{BulkUID: uid, Run: run})
}

// Cancel withdraws the items that were not sent yet and returns how many there were; sent
// deliveries go on. Cancelling a draft only deletes it.
//
// Errors: NOT_FOUND, INVALID_STATE if it has ended or all items were sent.
func (s *Service) Cancel(ctx context.Context, tx *postgres.Tx, uid uuid.UUID) (int, error) {
	row, err := lock(ctx, tx, uid)
	if err != nil {
		return 0, err
	}
	switch row.State {
	case StateRunning, StatePaused:
		if row.Counts.Waiting == 0 {
			return 0, errAllSent(row)
		}
	case StateDraft:
		// Nothing refers to a draft.
		_, err := tx.ExecContext(ctx,
			`DELETE FROM bulk_resends WHERE bulk_uid = $1 AND state = 'draft'`, uid)
		if err != nil {
			return 0, fmt.Errorf("discarding draft %s: %w", uid, err)
		}
		return 0, nil
	case StateCancelled, StateFinished:
		return 0, errState(row, "cancelled", "send")
	}
	_, err = tx.ExecContext(ctx, `
		WITH item AS (
			UPDATE bulk_resend_items
			   SET state = 'cancelled'
			 WHERE bulk_uid = $1
			   AND state = 'waiting'
		), target AS (
			UPDATE bulk_resend_lanes
			   SET cancelled = cancelled + waiting,
			       waiting = 0,
			       moved_at = $2
			 WHERE bulk_uid = $1
		)
		UPDATE bulk_resends
		   SET state = 'cancelled',
		       ended_at = $2
		 WHERE bulk_uid = $1`, uid, tx.Now)
	if err != nil {
		return 0, fmt.Errorf("cancelling bulk re-send %s: %w", uid, err)
	}
	return row.Counts.Waiting, nil
}

func errAllSent(row row) error {
	return lending.NewError(lending.CodeInvalidState,
		"all %d deliveries have already been sent; view them one by one", row.Counts.Total())
}

func setState(ctx context.Context, tx *postgres.Tx, uid uuid.UUID, state State) error {
	if _, err := tx.ExecContext(ctx,
		`UPDATE bulk_resends SET state = $2 WHERE bulk_uid = $1`, uid, string(state)); err != nil {
		return fmt.Errorf("changing bulk re-send %s to %s: %w", uid, state, err)
	}
	return nil
}

func (s *Service) enqueue(ctx context.Context, tx *postgres.Tx, job Args) error {
	params := []river.InsertManyParams{{Args: job}}
	if _, err := s.Jobs.InsertManyFastTx(ctx, tx.Tx.Tx, params); err != nil {
		return fmt.Errorf("inserting the job of bulk re-send %s: %w", job.BulkUID, err)
	}
	return nil
}
