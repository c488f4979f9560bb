package application

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"drawbridge/internal/email"
	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
)

// Create records a new application in Pending Review. That is not a change of status and records
// no event. For an application from the console, e-mails are enabled at once and the borrower
// gets the welcome e-mail (specification section 3.2).
//
// Errors: VALIDATION_ERROR for the borrower's address, PRODUCT_NOT_FOUND.
func (s *Service) Create(
	ctx context.Context, tx *postgres.Tx, request NewApplication,
) (Application, error) {
	if err := email.CheckAddressOf("borrower.email", request.Borrower.Email); err != nil {
		return Application{}, err
	}
	if request.ProductUID != nil {
		if err := checkActive(ctx, tx, *request.ProductUID); err != nil {
			return Application{}, err
		}
	}
	uid := postgres.NewUID(tx.Now)
	communications := request.Source.InitialCommunications()
	borrower, project := request.Borrower, request.Project
	_, err := tx.ExecContext(ctx, `
		INSERT INTO applications (application_uid, merchant_uid, partner_uid, source, status,
		                          communications, external_reference, requested_amount,
		                          requested_product_uid, borrower_first_name, borrower_last_name,
		                          borrower_email, borrower_phone, borrower_annual_income,
		                          project_name, project_description, project_address,
		                          created_at, updated_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $18)`,
		uid, request.MerchantUID, request.PartnerUID, string(request.Source),
		string(lending.StatusPendingReview), string(communications), request.ExternalReference,
		request.RequestedAmount, request.ProductUID, borrower.FirstName, borrower.LastName,
		borrower.Email, borrower.Phone, borrower.AnnualIncome,
		project.Name, project.Description, project.Address, tx.Now)
	if err != nil {
		return Application{}, fmt.Errorf("inserting an application: %w", err)
	}
	if communications == lending.CommunicationsEnabled {
		if err := s.Events.Welcome(ctx, tx, uid); err != nil {
			return Application{}, err
		}
	}
	return load(ctx, tx, Caller{}, uid, ``)
}

// Get returns an application with its offers, read in one snapshot. Error: NOT_FOUND.
func (s *Service) Get(
	ctx context.Context, caller Caller, uid uuid.UUID,
) (found Application, err error) {
	err = s.inSnapshot(ctx, func(tx *postgres.Tx) (err error) {
		found, err = load(ctx, tx, caller, uid, ``)
		return err
	})
	return found, err
}

// RunDecision decides an application once. It makes the offers and moves the status on from
// Pending Review, or to Declined if there is no offer and the status allows that. It opens the
// loan of an application that was already Approved and accepted. If a manual review is needed,
// nothing changes and the decision may run again.
//
// Errors: APPLICATION_NOT_FOUND, INVALID_STATE.
func (s *Service) RunDecision(
	ctx context.Context, tx *postgres.Tx, caller Caller, uid uuid.UUID,
) (Application, error) {
	app, err := lock(ctx, tx, caller, uid)
	if lending.ErrorCode(err) == lending.CodeNotFound {
		err = lending.ApplicationNotFound() // the uid comes from a request body
	}
	if err != nil {
		return Application{}, err
	}
	products, err := s.Products.ListActive(ctx, tx)
	if err != nil {
		return Application{}, err
	}
	decision, err := lending.Decide(lending.DecisionRequest{
		Status:       app.Status,
		Decided:      app.Decided,
		Products:     products,
		Requested:    app.RequestedAmount,
		AnnualIncome: app.Borrower.AnnualIncome,
		LastName:     app.Borrower.LastName,
		Switches:     s.Switches,
	})
	if err != nil || decision.Status == lending.StatusPendingReview {
		return app, err
	}
	if err := saveOffers(ctx, tx, uid, decision.Offers); err != nil {
		return Application{}, err
	}
	app.Offers, app.Decided = decision.Offers, true
	if decision.Status != app.Status {
		if err := change(ctx, tx, uid, `decided_at = $2`, tx.Now); err != nil {
			return Application{}, err
		}
		return s.enter(ctx, tx, app, decision.Status)
	}
	if app.UpdatedAt, err = changeWithoutEvent(ctx, tx, uid, `decided_at = $2`); err != nil {
		return Application{}, err
	}
	err = s.openLoan(ctx, tx, &app)
	return app, err
}
