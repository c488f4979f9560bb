package loan

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/lib/pq"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
)

// Move requests a status change of a disbursement's money.
type Move struct {
	ID int64
	lending.FundingChange
}

// Moved is the outcome of a Move.
type Moved struct {
	// Disbursement is the state after the move, zero if the id is unknown.
	Disbursement
	// Changed is false if the disbursement already had the status and nothing changed: a caller
	// that pays out must do so only if it is true.
	Changed bool
	// Refusal is nil for a move that was made, now or earlier; else NOT_FOUND, VALIDATION_ERROR if
	// a reason is required, or INVALID_STATE, also for a repeat whose evidence differs from that of
	// the change that it repeats.
	Refusal error
}

// MoveFunding is MoveFundings for one move, whose refusal it returns as its error.
func (s *Service) MoveFunding(
	ctx context.Context, tx *postgres.Tx, caller Caller, id int64, change lending.FundingChange,
) (Disbursement, bool, error) {
	all, err := s.MoveFundings(ctx, tx, caller, []Move{{id, change}})
	if err != nil {
		return Disbursement{}, false, err
	}
	return all[0].Disbursement, all[0].Changed, all[0].Refusal
}

// MoveFundings moves the money of disbursements on, cancels them or records their return, stores
// the evidence, and publishes the events. The moves are decided one after another, each on its
// own: a refused move changes nothing and does not stop the others. The number of statements
// does not depend on the number of moves.
func (s *Service) MoveFundings(
	ctx context.Context, tx *postgres.Tx, caller Caller, moves []Move,
) ([]Moved, error) {
	loans, err := lockDraws(ctx, tx, caller, moves)
	if err != nil {
		return nil, err
	}
	all := make([]Moved, 0, len(moves))
	var steps []step
	var events []lending.Event
	revised := make(map[uuid.UUID]*Loan)
	for _, move := range moves {
		loan, known := loans[move.ID]
		if !known {
			all = append(all, Moved{Refusal: errNoDisbursement(move.ID)})
			continue
		}
		made := Change{FundingChange: move.FundingChange, At: tx.Now, By: caller.Name}
		moved := loan.move(move.ID, made)
		all = append(all, moved)
		if !moved.Changed {
			continue
		}
		made = moved.Changes[len(moved.Changes)-1]
		steps = append(steps, step{move.ID, made})
		events = append(events, eventOf(moved.Disbursement))
		if !made.Status.InForce() {
			revised[loan.ApplicationUID] = loan
		}
	}
	if err := saveSteps(ctx, tx, steps); err != nil {
		return nil, err
	}
	if err := update(ctx, tx, slices.Collect(maps.Values(revised))...); err != nil {
		return nil, err
	}
	return all, s.Events.Record(ctx, tx, events...)
}

// move decides one move and, unless it is refused, applies it in memory.
func (l *Loan) move(id int64, made Change) Moved {
	at := slices.IndexFunc(l.History, func(d Disbursement) bool { return d.ID == id })
	disbursement := l.History[at]
	if made.Status == disbursement.Status {
		return Moved{
			Disbursement: disbursement, Refusal: disbursement.checkRepeat(made.FundingChange),
		}
	}
	if made.LacksReason() {
		return Moved{
			Disbursement: disbursement,
			Refusal:      lending.Invalid(lending.FieldReason, "%q is required", lending.FieldReason),
		}
	}
	// This transaction may have begun before the one whose lock it waited for.
	made.At = disbursement.notBefore(made.At)
	after, _, err := l.MoveDisbursement(id, made.Status)
	if err != nil {
		return Moved{Disbursement: disbursement, Refusal: err}
	}
	l.Loan = after
	for i, draw := range after.Disbursements {
		l.History[i].Disbursement = draw
	}
	moved := &l.History[at]
	moved.Changes = append(slices.Clip(moved.Changes), made)
	moved.at(made.Status, made.At)
	return Moved{Disbursement: *moved, Changed: true}
}

// lockDraws locks the applications of the disbursements and loads their loans, keyed by the ids
// of their disbursements. A merchant reaches only its own. The locks are taken in order of uid,
// so that callers that move the same ones wait for each other instead of deadlocking; a separate
// statement then loads the loans, so that it sees what the locks' previous holders wrote.
func lockDraws(
	ctx context.Context, tx *postgres.Tx, caller Caller, moves []Move,
) (map[int64]*Loan, error) {
	ids := make([]int64, 0, len(moves))
	for _, move := range moves {
		ids = append(ids, move.ID)
	}
	among, wanted := postgres.Among(ids)
	var uids []uuid.UUID
	err := tx.SelectContext(ctx, &uids, `
		SELECT application_uid
		  FROM applications
		 WHERE application_uid IN (SELECT application_uid
		                             FROM disbursements
		                            WHERE merchant_disbursement_id`+among+`)
		   AND ($2 = '00000000-0000-0000-0000-000000000000'::uuid OR merchant_uid = $2)
		 ORDER BY application_uid
		   FOR NO KEY UPDATE`, wanted, caller.MerchantUID)
	if err != nil {
		return nil, fmt.Errorf("locking the loans of %d disbursements: %w", len(ids), err)
	}
	found, err := findAll(ctx, tx, uids)
	if err != nil {
		return nil, err
	}
	loans := make(map[int64]*Loan, len(ids))
	for _, loan := range found {
		for _, draw := range loan.Disbursements {
			loans[draw.ID] = loan
		}
	}
	return loans, nil
}

// step is a status change of a disbursement that was accepted.
type step struct {
	id int64
	Change
}

// saveSteps writes each disbursement's status after its steps, the time at which each status was
// reached, and the evidence.
func saveSteps(ctx context.Context, tx *postgres.Tx, steps []step) error {
	if len(steps) == 0 {
		return nil
	}
	var (
		ids                                pq.Int64Array
		statuses                           pq.StringArray
		references, methods, days, reasons []*string
		times                              []time.Time
	)
	for _, step := range steps {
		ids = append(ids, step.id)
		statuses = append(statuses, string(step.Status))
		references = append(references, step.Reference)
		methods = append(methods, step.Method)
		days = append(days, step.EffectiveDate)
		reasons = append(reasons, step.Reason)
		times = append(times, step.At)
	}
	count, err := postgres.Affected(tx.ExecContext(ctx, `
		WITH step AS (
			SELECT id, status, reference, method, effective_date, reason, at, place
			  FROM unnest($1::bigint[], $2::text[], $3::text[], $4::text[], $5::date[], $6::text[],
			              $7::timestamptz[])
			       WITH ORDINALITY
			       AS step (id, status, reference, method, effective_date, reason, at, place)
		), way AS ( -- all steps of one are of one time
			SELECT id, array_agg(status ORDER BY place) AS through, max(at) AS at
			  FROM step GROUP BY id
		), moved AS (
			UPDATE disbursements
			   SET status = through[cardinality(through)],
			       processing_at = CASE WHEN 'FUNDING_PROCESSING' = ANY (through) THEN at
			                            ELSE processing_at END,
			       settled_at = CASE WHEN 'FUNDING_SETTLED' = ANY (through) THEN at
			                         ELSE settled_at END,
			       cancelled_at = CASE WHEN 'CANCELLED' = ANY (through) THEN at
			                           ELSE cancelled_at END,
			       returned_at = CASE WHEN 'RETURNED' = ANY (through) THEN at
			                          ELSE returned_at END
			  FROM way
			 WHERE merchant_disbursement_id = way.id
			RETURNING merchant_disbursement_id
		)
		INSERT INTO disbursement_changes (merchant_disbursement_id, status, reference, method,
		                                  effective_date, reason, changed_at, changed_by)
		SELECT id, status, reference, method, effective_date, reason, at, $8
		  FROM moved
		  JOIN step ON id = merchant_disbursement_id
		 ORDER BY place`, ids, statuses, pq.Array(references), pq.Array(methods), pq.Array(days),
		pq.Array(reasons), pq.Array(times), steps[0].By))
	if err == nil && count != len(steps) {
		err = fmt.Errorf("met %d disbursements", count)
	}
	if err != nil {
		return fmt.Errorf("moving %d disbursements: %w", len(steps), err)
	}
	return nil
}
