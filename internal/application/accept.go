package application

import (
	"context"
	"slices"

	"github.com/google/uuid"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
)

// Acceptance is a borrower's acceptance of an offer (specification section 4.2).
type Acceptance struct {
	ApplicationUID uuid.UUID
	ProductUID     uuid.UUID
	// Linked lists applications to close, for example competing offers.
	Linked []uuid.UUID
}

// AcceptOffer selects a product, welcomes the borrower, enables communications and closes the
// linked applications, all or nothing. Repeating it changes nothing and sends nothing again, but
// closes newly linked applications. It reports whether anything changed.
//
// Errors: APPLICATION_NOT_FOUND, also for a linked one; PRODUCT_NOT_FOUND;
// INVALID_STATE on a Declined or Closed application and for another product
// once the loan is open.
func (s *Service) AcceptOffer(
	ctx context.Context, tx *postgres.Tx, caller Caller, acceptance Acceptance,
) (changed bool, err error) {
	app, linked, err := lockLinked(ctx, tx, caller, acceptance)
	if err != nil {
		return false, err
	}
	changed = app.Selected() != acceptance.ProductUID.String()
	if err := s.selectProduct(ctx, tx, app, acceptance.ProductUID); err != nil {
		return false, err
	}
	for _, other := range linked {
		// A linked application that has already ended stays as it is.
		if other.Status.IsFinal() {
			continue
		}
		if _, err := s.enter(ctx, tx, other, lending.StatusClosed); err != nil {
			return false, err
		}
		changed = true
	}
	return changed, nil
}

// lockLinked locks and loads the application and the linked ones, each of which
// must be another application of the same merchant.
func lockLinked(
	ctx context.Context, tx *postgres.Tx, caller Caller, acceptance Acceptance,
) (app Application, linked []Application, err error) {
	uids := append([]uuid.UUID{acceptance.ApplicationUID}, acceptance.Linked...)
	found, err := loadAll(ctx, tx, caller, uids, lockRows)
	if err != nil {
		return Application{}, nil, err
	}
	at := slices.IndexFunc(found, func(a Application) bool { return a.UID == uids[0] })
	if at < 0 {
		return Application{}, nil, lending.ApplicationNotFound()
	}
	app = found[at]
	linked = slices.Delete(found, at, at+1)
	for _, uid := range acceptance.Linked {
		known := slices.ContainsFunc(linked, func(other Application) bool {
			return other.UID == uid && other.MerchantUID == app.MerchantUID
		})
		if !known {
			return Application{}, nil, lending.ApplicationNotFound()
		}
	}
	return app, linked, nil
}

func (s *Service) selectProduct(
	ctx context.Context, tx *postgres.Tx, app Application, productUID uuid.UUID,
) error {
	if app.Status.IsFinal() {
		return lending.NewError(lending.CodeInvalidState,
			"an offer cannot be accepted on an application that is %s", app.Status)
	}
	if app.Selected() == productUID.String() {
		return nil
	}
	if err := checkProduct(ctx, tx, app, productUID); err != nil {
		return err
	}
	if app.LoanOpen {
		return lending.NewError(lending.CodeInvalidState,
			"another product can no longer be selected: the loan is open")
	}
	_, err := changeWithoutEvent(ctx, tx, app.UID,
		`offer_selected = true, selected_product_uid = $3, communications = $4`,
		productUID, string(lending.CommunicationsEnabled))
	if err != nil {
		return err
	}
	if app.Communications == lending.CommunicationsPaused {
		if err := s.Events.Welcome(ctx, tx, app.UID); err != nil {
			return err
		}
	}
	app.SelectedProductUID = &productUID
	return s.openLoan(ctx, tx, &app)
}

// checkProduct returns PRODUCT_NOT_FOUND unless the product made an offer or, before the
// decision has run, is active.
func checkProduct(
	ctx context.Context, tx *postgres.Tx, app Application, productUID uuid.UUID,
) error {
	if _, offered := lending.SelectedOffer(app.Offers, productUID.String()); offered {
		return nil
	}
	if app.Decided {
		return lending.ProductNotFound()
	}
	return checkActive(ctx, tx, productUID)
}
