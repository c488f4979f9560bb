package application

import (
	"context"
	"fmt"
	"slices"

	"github.com/google/uuid"
	"github.com/lib/pq"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
)

// Acceptance is what a borrower decided (specification section 4.2).
type Acceptance struct {
	ApplicationUID uuid.UUID
	ProductUID     uuid.UUID
	// Linked are applications to close, for example competing offers.
	Linked []uuid.UUID
}

// AcceptOffer selects a product, welcomes the borrower, enables communications
// and closes the linked applications, in this order and all or nothing.
// Repeating it changes nothing and sends nothing again.
//
// Errors: APPLICATION_NOT_FOUND, also for a linked one; PRODUCT_NOT_FOUND;
// INVALID_STATE on a Declined or Closed application and for another product
// once the loan is open.
func (s *Service) AcceptOffer(
	ctx context.Context, tx *postgres.Tx, caller Caller, acceptance Acceptance,
) error {
	uid := acceptance.ApplicationUID
	linked := slices.Clone(acceptance.Linked)
	slices.SortFunc(linked, func(a, b uuid.UUID) int { return slices.Compare(a[:], b[:]) })
	linked = slices.Compact(linked)
	if err := lockAll(ctx, tx, caller, append(linked, uid)); err != nil {
		return err
	}
	app, err := lock(ctx, tx, caller, uid, lending.ApplicationNotFound())
	if err != nil {
		return err
	}
	if slices.Contains(linked, uid) {
		return lending.ApplicationNotFound()
	}
	if err := s.selectProduct(ctx, tx, app, acceptance.ProductUID); err != nil {
		return err
	}
	for _, other := range linked {
		if err := s.closeLinked(ctx, tx, caller, other); err != nil {
			return err
		}
	}
	return nil
}

// lockAll takes every lock in one order, so that two acceptances that link each
// other's applications wait instead of deadlocking.
func lockAll(ctx context.Context, tx *postgres.Tx, caller Caller, uids []uuid.UUID) error {
	texts := make([]string, len(uids))
	for i, uid := range uids {
		texts[i] = uid.String()
	}
	var found []uuid.UUID
	err := tx.SelectContext(ctx, &found, `
		SELECT application_uid
		  FROM applications
		 WHERE application_uid = ANY ($1)
		   AND ($2 = '00000000-0000-0000-0000-000000000000'::uuid OR merchant_uid = $2)
		 ORDER BY application_uid
		   FOR NO KEY UPDATE`, pq.Array(texts), caller.MerchantUID)
	if err != nil {
		return fmt.Errorf("locking %d applications: %w", len(uids), err)
	}
	for _, uid := range uids {
		if !slices.Contains(found, uid) {
			return lending.ApplicationNotFound()
		}
	}
	return nil
}

func (s *Service) selectProduct(
	ctx context.Context, tx *postgres.Tx, app Application, productUID uuid.UUID,
) error {
	if app.Status.IsFinal() {
		return lending.NewError(lending.CodeInvalidState,
			"an offer cannot be accepted on an application that is %s", app.Status)
	}
	if err := s.checkProduct(ctx, tx, app, productUID); err != nil {
		return err
	}
	if app.SelectedProductUID != nil && *app.SelectedProductUID == productUID {
		return nil
	}
	open, err := s.Loans.Find(ctx, tx, app.UID)
	if err != nil {
		return err
	}
	if open != nil {
		return lending.NewError(lending.CodeInvalidState,
			"another product cannot be selected any more: the loan is open")
	}
	err = change(ctx, tx, app.UID,
		`, offer_selected = true, selected_product_uid = $3`, productUID)
	if err != nil {
		return err
	}
	app.SelectedProductUID = &productUID
	if err := s.enableCommunications(ctx, tx, app); err != nil {
		return err
	}
	return s.openLoan(ctx, tx, app)
}

// checkProduct answers PRODUCT_NOT_FOUND unless the product made an offer, or,
// before the decision has run, is one that could.
func (s *Service) checkProduct(
	ctx context.Context, tx *postgres.Tx, app Application, productUID uuid.UUID,
) error {
	if _, offered := lending.SelectedOffer(app.Offers, productUID.String()); offered {
		return nil
	}
	if app.Decided {
		return lending.ProductNotFound()
	}
	active, err := isActiveProduct(ctx, tx, productUID)
	if err == nil && !active {
		return lending.ProductNotFound()
	}
	return err
}

// enableCommunications welcomes the borrower and ends the pause.
func (s *Service) enableCommunications(
	ctx context.Context, tx *postgres.Tx, app Application,
) error {
	if app.Communications == lending.CommunicationsEnabled {
		return nil
	}
	if err := s.Events.Welcome(ctx, tx, app.UID); err != nil {
		return err
	}
	return change(ctx, tx, app.UID,
		`, communications = $3`, string(lending.CommunicationsEnabled))
}

// closeLinked closes a competing application; one that has ended already stays.
func (s *Service) closeLinked(
	ctx context.Context, tx *postgres.Tx, caller Caller, uid uuid.UUID,
) error {
	app, err := lock(ctx, tx, caller, uid, lending.ApplicationNotFound())
	if err != nil || app.Status.IsFinal() {
		return err
	}
	_, err = s.enter(ctx, tx, app, lending.StatusClosed)
	return err
}
