package application

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/lib/pq"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
)

// lock locks an application and loads it with its offers. Error: NOT_FOUND,
// also for an application of another merchant.
func lock(ctx context.Context, tx *postgres.Tx, caller Caller, uid uuid.UUID) (Application, error) {
	return load(ctx, tx, caller, uid, lockRows)
}

func load(
	ctx context.Context, tx *postgres.Tx, caller Caller, uid uuid.UUID, locking string,
) (Application, error) {
	apps, err := loadAll(ctx, tx, caller, []uuid.UUID{uid}, locking)
	if err != nil {
		return Application{}, err
	}
	if len(apps) == 0 {
		return Application{}, lending.NewError(lending.CodeNotFound,
			"no application has the id %s", uid)
	}
	return apps[0], nil
}

// lockRows makes loadAll take the locks of the applications.
const lockRows = `FOR NO KEY UPDATE OF a`

// loadAll loads those of the applications that the caller may access, with their offers and
// sorted by uid. Locks are taken in that order, so that two callers that want the same rows wait
// for each other instead of deadlocking. A separate statement then reads the offers, so that it
// sees what the lock's previous holder wrote.
func loadAll(
	ctx context.Context, tx *postgres.Tx, caller Caller, uids []uuid.UUID, locking string,
) ([]Application, error) {
	among, wanted := postgres.Among(uids)
	var rows []struct {
		Application
		Borrower
		Project
	}
	err := tx.SelectContext(ctx, &rows, `
		SELECT a.application_uid,
		       a.merchant_uid,
		       a.source,
		       a.status,
		       a.communications,
		       a.external_reference,
		       a.requested_amount,
		       a.borrower_first_name,
		       a.borrower_last_name,
		       a.borrower_email,
		       a.borrower_phone,
		       a.borrower_annual_income,
		       a.project_name,
		       a.project_description,
		       a.project_address,
		       a.selected_product_uid,
		       coalesce((SELECT p.code FROM products p WHERE p.product_uid = a.selected_product_uid),
		                '') AS selected_product_code,
		       coalesce(a.document_status, '') AS document_status,
		       a.decided_at IS NOT NULL AS decided,
		       a.created_at,
		       a.updated_at
		  FROM applications a
		 WHERE a.application_uid`+among+`
		   AND ($2 = '00000000-0000-0000-0000-000000000000'::uuid OR a.merchant_uid = $2)
		 ORDER BY a.application_uid
		 `+locking, wanted, caller.MerchantUID)
	if err != nil {
		return nil, fmt.Errorf("loading applications %s: %w", uids, err)
	}
	offers, err := loadOffers(ctx, tx, uids)
	if err != nil {
		return nil, err
	}
	apps := make([]Application, 0, len(rows))
	for _, row := range rows {
		app := row.Application
		app.Borrower, app.Project = row.Borrower, row.Project
		for _, offer := range offers[app.UID] {
			app.Offers = append(app.Offers, offer.Offer)
			app.LoanOpen = app.LoanOpen || offer.LoanOpen
		}
		apps = append(apps, app)
	}
	return apps, nil
}

// offerRow is an offer of an application.
type offerRow struct {
	lending.Offer
	ApplicationUID uuid.UUID `db:"application_uid"`
	LoanOpen       bool      `db:"loan_open"`
}

// loadOffers loads the offers of applications, by product code. LoanOpen is set on every offer
// of an application whose loan has opened.
func loadOffers(
	ctx context.Context, tx *postgres.Tx, uids []uuid.UUID,
) (map[uuid.UUID][]offerRow, error) {
	among, wanted := postgres.Among(uids)
	var rows []offerRow
	err := tx.SelectContext(ctx, &rows, `
		SELECT o.application_uid,
		       o.product_uid,
		       p.code,
		       p.name,
		       o.term,
		       o.interest_rate,
		       o.borrower_max_approved_amount,
		       o.project_max_approved_amount,
		       o.max_amount,
		       o.approved_amount,
		       o.merchant_fee_percentage,
		       EXISTS (SELECT 1
		                 FROM loans l
		                WHERE l.application_uid = o.application_uid) AS loan_open
		  FROM offers o
		  JOIN products p USING (product_uid)
		 WHERE o.application_uid`+among+`
		 ORDER BY p.code COLLATE "C"`, wanted)
	if err != nil {
		return nil, fmt.Errorf("loading the offers of applications %s: %w", uids, err)
	}
	offers := make(map[uuid.UUID][]offerRow)
	for _, row := range rows {
		offers[row.ApplicationUID] = append(offers[row.ApplicationUID], row)
	}
	return offers, nil
}

// saveOffers inserts offers, or updates those of their columns that may change.
func saveOffers(ctx context.Context, tx *postgres.Tx, uid uuid.UUID, offers []lending.Offer) error {
	column := func(value func(lending.Offer) string) pq.StringArray {
		texts := make(pq.StringArray, 0, len(offers))
		for _, offer := range offers {
			texts = append(texts, value(offer))
		}
		return texts
	}
	_, err := tx.ExecContext(ctx, `
		INSERT INTO offers (application_uid, product_uid, term, interest_rate,
		                    borrower_max_approved_amount, project_max_approved_amount,
		                    max_amount, approved_amount, merchant_fee_percentage)
		SELECT $1, offer.*
		  FROM unnest($2::uuid[], $3::text[], $4::numeric[], $5::numeric[], $6::numeric[],
		              $7::numeric[], $8::numeric[], $9::numeric[]) AS offer
		    ON CONFLICT (application_uid, product_uid) DO UPDATE
		   SET term = excluded.term,
		       interest_rate = excluded.interest_rate,
		       approved_amount = excluded.approved_amount,
		       merchant_fee_percentage = excluded.merchant_fee_percentage`,
		uid,
		column(func(o lending.Offer) string { return o.ProductUID }),
		column(func(o lending.Offer) string { return o.Term }),
		column(func(o lending.Offer) string { return o.InterestRate.String() }),
		column(func(o lending.Offer) string { return o.BorrowerMax.String() }),
		column(func(o lending.Offer) string { return o.ProjectMax.String() }),
		column(func(o lending.Offer) string { return o.MaxAmount.String() }),
		column(func(o lending.Offer) string { return o.ApprovedAmount.String() }),
		column(func(o lending.Offer) string { return o.MerchantFeePercentage.String() }))
	if err != nil {
		return fmt.Errorf("saving the offers of application %s: %w", uid, err)
	}
	return nil
}

// checkActive returns PRODUCT_NOT_FOUND for a product that does not exist or is not active.
func checkActive(ctx context.Context, tx *postgres.Tx, uid uuid.UUID) error {
	var found bool
	err := tx.GetContext(ctx, &found,
		`SELECT EXISTS (SELECT 1 FROM products WHERE product_uid = $1 AND active)`, uid)
	if err != nil {
		return fmt.Errorf("looking up product %s: %w", uid, err)
	}
	if !found {
		return lending.ProductNotFound()
	}
	return nil
}

// change writes assignments to an application, with their arguments from $2 on. It does not set
// updated_at: recording the event that follows does.
func change(
	ctx context.Context, tx *postgres.Tx, uid uuid.UUID, assignments string, args ...any,
) error {
	_, err := tx.ExecContext(ctx,
		`UPDATE applications SET `+assignments+` WHERE application_uid = $1`,
		append([]any{uid}, args...)...)
	if err != nil {
		return fmt.Errorf("changing application %s: %w", uid, err)
	}
	return nil
}

// changeWithoutEvent is change for when no event follows: it also sets updated_at ($2; further
// arguments start at $3) and returns it.
func changeWithoutEvent(
	ctx context.Context, tx *postgres.Tx, uid uuid.UUID, assignments string, args ...any,
) (at time.Time, err error) {
	err = tx.GetContext(ctx, &at, `
		UPDATE applications
		   SET updated_at = `+postgres.Later(`$2`, `updated_at`)+`, `+assignments+`
		 WHERE application_uid = $1
		RETURNING updated_at`, append([]any{uid, tx.Now}, args...)...)
	if err != nil {
		return time.Time{}, fmt.Errorf("changing application %s: %w", uid, err)
	}
	return at, nil
}

// FindByReference returns the merchant's oldest application with an external
// reference, and false if there is none.
func (s *Service) FindByReference(
	ctx context.Context, merchantUID uuid.UUID, reference string,
) (uuid.UUID, bool, error) {
	var uids []uuid.UUID
	err := s.DB.SelectContext(ctx, &uids, `
		SELECT application_uid
		  FROM applications
		 WHERE external_reference = $2
		   AND merchant_uid = $1
		 ORDER BY created_at
		 LIMIT 1`, merchantUID, reference)
	if err != nil {
		return uuid.Nil, false, fmt.Errorf("finding an application by its reference: %w", err)
	}
	if len(uids) == 0 {
		return uuid.Nil, false, nil
	}
	return uids[0], true, nil
}
