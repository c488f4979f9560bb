package loan

import (
	"context"
	"errors"
	"strconv"

	"github.com/google/uuid"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
)

// RequestDraw grants the next draw of a loan or refuses it (specification section 4.1). The
// disbursement, its event and the records of what must be delivered are one transaction under
// the application's lock, so of two simultaneous requests one finds the other's draw pending.
// The input's files and metadata decide whether documents were given, whatever its Request says.
//
// Errors: NOT_FOUND and those of lending.DecideDraw.
func (s *Service) RequestDraw(
	ctx context.Context, tx *postgres.Tx, caller Caller, uid uuid.UUID, input DrawInput,
) (Disbursement, error) {
	app, loan, err := load(ctx, tx, caller, uid, locked)
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
	return disbursement, s.Events.Record(ctx, tx, eventOf(disbursement))
}

// PreviewDraw returns what RequestDraw would do and changes nothing. Documents count as given
// where they are required. Error: NOT_FOUND.
func (s *Service) PreviewDraw(
	ctx context.Context, caller Caller, uid uuid.UUID, request lending.DrawRequest,
) (Preview, error) {
	app, loan, err := load(ctx, s.DB, caller, uid, ``)
	if err != nil {
		return Preview{}, err
	}
	if loan != nil {
		app.Status = loan.Status // read in the same statement as the loan
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
	_, loan, err := load(ctx, s.DB, caller, uid, ``)
	if err != nil {
		return Loan{}, err
	}
	if loan == nil {
		return Loan{}, lending.NewError(lending.CodeNotFound,
			"application %s has no loan yet: a loan opens once the application is Approved "+
				"and a product that made an offer is selected", uid)
	}
	return *loan, nil
}

// eventOf returns the event for a disbursement's status.
func eventOf(draw Disbursement) lending.Event {
	event := lending.FundingChanged(draw.ApplicationUID.String(), draw.Status)
	event.Subject = "disbursement/" + strconv.FormatInt(draw.ID, 10)
	return event
}

// values returns the part of the loan that the rules use, nil for no loan.
func (l *Loan) values() *lending.Loan {
	if l == nil {
		return nil
	}
	return &l.Loan
}
