package loan

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/google/uuid"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
)

// RequestDraw grants the next draw of a loan or refuses it (specification
// section 4.1). The disbursement, its event, deliveries and jobs are one
// transaction under the application's lock, so of two simultaneous requests one
// finds the other's draw pending. Whether documents came along is read from the
// input's files and metadata, whatever its request says.
//
// Errors: NOT_FOUND and those of lending.DecideDraw.
func (s *Service) RequestDraw(
	ctx context.Context, tx *postgres.Tx, caller Caller, uid uuid.UUID, input DrawInput,
) (Disbursement, error) {
	app, err := lock(ctx, tx, caller, uid)
	if err != nil {
		return Disbursement{}, err
	}
	loan, err := find(ctx, tx, app)
	if err != nil {
		return Disbursement{}, err
	}
	input.Request.Documents = input.documents()
	draw, err := lending.DecideDraw(app.Status, loan.values(), input.Request)
	if err != nil {
		return Disbursement{}, err
	}
	certificate, err := s.attach(ctx, tx, caller, uid, input)
	if err != nil {
		return Disbursement{}, err
	}
	disbursement, err := insertDisbursement(ctx, tx, grant{
		app: app, loan: loan.Loan, draw: draw, certificate: certificate, by: caller.Name,
	})
	if err != nil {
		return Disbursement{}, err
	}
	return disbursement, s.tell(ctx, tx, uid, disbursement.Disbursement)
}

// PreviewDraw answers what RequestDraw would do and changes nothing. Documents
// count as given where they are required. Error: NOT_FOUND.
func (s *Service) PreviewDraw(
	ctx context.Context, caller Caller, uid uuid.UUID, request lending.DrawRequest,
) (Preview, error) {
	app, err := load(ctx, s.DB, caller, uid, ``)
	if err != nil {
		return Preview{}, err
	}
	loan, err := find(ctx, s.DB, app)
	if err != nil {
		return Preview{}, err
	}
	request.Documents = lending.DocumentsAssumed
	draw, err := lending.DecideDraw(app.Status, loan.values(), request)
	if refusal, ok := errors.AsType[*lending.Error](err); ok {
		return Preview{Draw: draw, Refusal: refusal}, nil
	}
	return Preview{Draw: draw}, err
}

// Get returns the loan of an application. Error: NOT_FOUND, also while the
// application has no loan.
func (s *Service) Get(ctx context.Context, caller Caller, uid uuid.UUID) (Loan, error) {
	app, err := load(ctx, s.DB, caller, uid, ``)
	if err != nil {
		return Loan{}, err
	}
	loan, err := find(ctx, s.DB, app)
	if err != nil {
		return Loan{}, err
	}
	if loan == nil {
		return Loan{}, lending.NewError(lending.CodeNotFound,
			"application %s has no loan yet: it opens once the application is Approved "+
				"and an offered product is selected", uid)
	}
	return *loan, nil
}

// MoveFunding moves the money of a disbursement on, cancels it or notes its return,
// keeps the evidence, and tells the partner. False means that the status was in force
// already and nothing changed: who pays does so only on true.
//
// Errors: NOT_FOUND, VALIDATION_ERROR where a reason is needed, and INVALID_STATE, also
// for a repeat that says something else than the change that it repeats.
func (s *Service) MoveFunding(
	ctx context.Context, tx *postgres.Tx, caller Caller, id int64, change lending.FundingChange,
) (Disbursement, bool, error) {
	uid, err := ownerOf(ctx, tx, id)
	if err != nil {
		return Disbursement{}, false, err
	}
	app, err := lock(ctx, tx, caller, uid)
	if err != nil {
		if lending.ErrorCode(err) == lending.CodeNotFound {
			// Another merchant's disbursement looks like none.
			return Disbursement{}, false, errNoDisbursement(id)
		}
		return Disbursement{}, false, err
	}
	loan, err := find(ctx, tx, app)
	if err != nil {
		return Disbursement{}, false, err
	}
	at := slices.IndexFunc(loan.History, func(d Disbursement) bool { return d.ID == id })
	if at < 0 {
		return Disbursement{}, false, fmt.Errorf("loan %s lacks disbursement %d", uid, id)
	}
	disbursement := loan.History[at]
	if change.Status == disbursement.Status {
		return disbursement, false, disbursement.checkRepeat(change)
	}
	if change.LacksReason() {
		return disbursement, false, lending.Invalid(lending.FieldReason, "%q is required",
			lending.FieldReason)
	}
	disbursement, err = s.move(ctx, tx, loan, disbursement,
		Change{FundingChange: change, At: tx.Now, By: caller.Name})
	return disbursement, err == nil, err
}

func (s *Service) move(
	ctx context.Context, tx *postgres.Tx, loan *Loan, disbursement Disbursement, made Change,
) (Disbursement, error) {
	after, _, err := loan.MoveDisbursement(disbursement.ID, made.Status)
	if err != nil {
		return disbursement, err
	}
	if err := moveDisbursement(ctx, tx, disbursement.ID, disbursement.Status, made); err != nil {
		return Disbursement{}, err
	}
	disbursement.Status = made.Status
	disbursement.Changes = append(slices.Clip(disbursement.Changes), made)
	disbursement.at(made.Status, made.At)
	if !made.Status.InForce() {
		for i, draw := range after.Disbursements {
			if draw.LoanAmountBefore != loan.Disbursements[i].LoanAmountBefore {
				if err := rebase(ctx, tx, draw); err != nil {
					return Disbursement{}, err
				}
			}
		}
		if err := update(ctx, tx, loan.ApplicationUID, after); err != nil {
			return Disbursement{}, err
		}
	}
	return disbursement, s.tell(ctx, tx, loan.ApplicationUID, disbursement.Disbursement)
}

// tell records the event of a disbursement's status.
func (s *Service) tell(
	ctx context.Context, tx *postgres.Tx, uid uuid.UUID, draw lending.Disbursement,
) error {
	event := lending.FundingChanged(uid.String(), draw.Status)
	event.Subject = "disbursement/" + strconv.FormatInt(draw.ID, 10)
	return s.Events.Record(ctx, tx, event)
}

// values returns the part of the loan that rules are about, nil for no loan.
func (l *Loan) values() *lending.Loan {
	if l == nil {
		return nil
	}
	return &l.Loan
}
