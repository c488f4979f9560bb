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
	return disbursement, s.tell(ctx, tx, uid, disbursement.ID, disbursement.Status)
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

// MoveFunding moves the money of a disbursement on, or cancels it, and tells
// the partner. Moving it where it already is changes nothing.
//
// Errors: NOT_FOUND, INVALID_STATE.
func (s *Service) MoveFunding(
	ctx context.Context, tx *postgres.Tx, caller Caller, id int64, to lending.FundingStatus,
) (Disbursement, error) {
	uid, err := ownerOf(ctx, tx, id)
	if err != nil {
		return Disbursement{}, err
	}
	app, err := lock(ctx, tx, caller, uid)
	if err != nil {
		if lending.ErrorCode(err) == lending.CodeNotFound {
			// Another merchant's disbursement looks like none.
			return Disbursement{}, errNoDisbursement(id)
		}
		return Disbursement{}, err
	}
	loan, err := find(ctx, tx, app)
	if err != nil {
		return Disbursement{}, err
	}
	return s.move(ctx, tx, loan, id, to)
}

func (s *Service) move(
	ctx context.Context, tx *postgres.Tx, loan *Loan, id int64, to lending.FundingStatus,
) (Disbursement, error) {
	at := slices.IndexFunc(loan.History, func(d Disbursement) bool { return d.ID == id })
	if at < 0 {
		return Disbursement{}, fmt.Errorf("loan %s lacks disbursement %d", loan.ApplicationUID, id)
	}
	disbursement := loan.History[at]
	after, changed, err := loan.MoveDisbursement(id, to)
	if err != nil || !changed {
		return disbursement, err
	}
	if err := moveDisbursement(ctx, tx, id, disbursement.Status, to); err != nil {
		return Disbursement{}, err
	}
	disbursement.Status = to
	if to == lending.FundingCancelled {
		return disbursement, update(ctx, tx, loan.ApplicationUID, after)
	}
	if to == lending.FundingSettled {
		disbursement.SettledAt = &tx.Now
	}
	return disbursement, s.tell(ctx, tx, loan.ApplicationUID, id, to)
}

// tell records the funding event of a disbursement's status, if it has one.
func (s *Service) tell(
	ctx context.Context, tx *postgres.Tx, uid uuid.UUID, id int64, status lending.FundingStatus,
) error {
	event, told := lending.FundingChanged(uid.String(), status)
	if !told {
		return nil
	}
	event.Subject = "disbursement/" + strconv.FormatInt(id, 10)
	return s.Events.Record(ctx, tx, event)
}

// values returns the part of the loan that rules are about, nil for no loan.
func (l *Loan) values() *lending.Loan {
	if l == nil {
		return nil
	}
	return &l.Loan
}
