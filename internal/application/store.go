package application

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
)

// querier is what reading needs of a pool or a transaction.
type querier interface {
	GetContext(ctx context.Context, dest any, query string, args ...any) error
	SelectContext(ctx context.Context, dest any, query string, args ...any) error
}

type applicationRow struct {
	UID             uuid.UUID                 `db:"application_uid"`
	MerchantUID     uuid.UUID                 `db:"merchant_uid"`
	Source          lending.Source            `db:"source"`
	Status          lending.ApplicationStatus `db:"status"`
	Communications  lending.Communications    `db:"communications"`
	Reference       *string                   `db:"external_reference"`
	RequestedAmount lending.Money             `db:"requested_amount"`
	FirstName       string                    `db:"borrower_first_name"`
	LastName        string                    `db:"borrower_last_name"`
	Email           string                    `db:"borrower_email"`
	Phone           *string                   `db:"borrower_phone"`
	AnnualIncome    *lending.Money            `db:"borrower_annual_income"`
	ProjectName     string                    `db:"project_name"`
	Description     *string                   `db:"project_description"`
	Address         *string                   `db:"project_address"`
	SelectedUID     *uuid.UUID                `db:"selected_product_uid"`
	SelectedCode    *string                   `db:"selected_product_code"`
	Document        *string                   `db:"document_status"`
	DecidedAt       *time.Time                `db:"decided_at"`
	CreatedAt       time.Time                 `db:"created_at"`
	UpdatedAt       time.Time                 `db:"updated_at"`
}

const applicationColumns = `
	a.application_uid,
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
	(SELECT p.code FROM products p WHERE p.product_uid = a.selected_product_uid)
	    AS selected_product_code,
	a.document_status,
	a.decided_at,
	a.created_at,
	a.updated_at`

type offerRow struct {
	ProductUID   string          `db:"product_uid"`
	ProductCode  string          `db:"code"`
	ProductName  string          `db:"name"`
	Term         string          `db:"term"`
	InterestRate lending.Percent `db:"interest_rate"`
	BorrowerMax  lending.Money   `db:"borrower_max_approved_amount"`
	ProjectMax   lending.Money   `db:"project_max_approved_amount"`
	MaxAmount    lending.Money   `db:"max_amount"`
	Approved     lending.Money   `db:"approved_amount"`
	Fee          lending.Percent `db:"merchant_fee_percentage"`
}

// lock locks an application and loads it with its offers. An application of
// another merchant is treated as none: the answer is missing.
func lock(
	ctx context.Context, tx *postgres.Tx, caller Caller, uid uuid.UUID, missing error,
) (Application, error) {
	return load(ctx, tx, caller, uid, `FOR NO KEY UPDATE OF a`, missing)
}

func load(
	ctx context.Context, db querier, caller Caller, uid uuid.UUID, locking string, missing error,
) (Application, error) {
	var row applicationRow
	err := db.GetContext(ctx, &row, `
		SELECT `+applicationColumns+`
		  FROM applications a
		 WHERE a.application_uid = $1
		   AND ($2 = '00000000-0000-0000-0000-000000000000'::uuid OR a.merchant_uid = $2)
		`+locking, uid, caller.MerchantUID)
	if postgres.IsNoRows(err) {
		return Application{}, missing
	}
	if err != nil {
		return Application{}, fmt.Errorf("loading application %s: %w", uid, err)
	}
	app := row.application()
	if app.Offers, err = loadOffers(ctx, db, uid); err != nil {
		return Application{}, err
	}
	return app, nil
}

func (r applicationRow) application() Application {
	app := Application{
		UID:               r.UID,
		MerchantUID:       r.MerchantUID,
		Source:            r.Source,
		Status:            r.Status,
		Communications:    r.Communications,
		ExternalReference: r.Reference,
		RequestedAmount:   r.RequestedAmount,
		Borrower: Borrower{
			FirstName: r.FirstName, LastName: r.LastName, Email: r.Email,
			Phone: r.Phone, AnnualIncome: r.AnnualIncome,
		},
		Project:            Project{Name: r.ProjectName, Description: r.Description, Address: r.Address},
		SelectedProductUID: r.SelectedUID,
		Decided:            r.DecidedAt != nil,
		CreatedAt:          r.CreatedAt,
		UpdatedAt:          r.UpdatedAt,
	}
	if r.SelectedCode != nil {
		app.SelectedProductCode = *r.SelectedCode
	}
	if r.Document != nil {
		app.Document = lending.DocumentStatus(*r.Document)
	}
	return app
}

func loadOffers(ctx context.Context, db querier, uid uuid.UUID) ([]lending.Offer, error) {
	var rows []offerRow
	err := db.SelectContext(ctx, &rows, `
		SELECT o.product_uid,
		       p.code,
		       p.name,
		       o.term,
		       o.interest_rate,
		       o.borrower_max_approved_amount,
		       o.project_max_approved_amount,
		       o.max_amount,
		       o.approved_amount,
		       o.merchant_fee_percentage
		  FROM offers o
		  JOIN products p USING (product_uid)
		 WHERE o.application_uid = $1
		 ORDER BY p.code`, uid)
	if err != nil {
		return nil, fmt.Errorf("loading the offers of application %s: %w", uid, err)
	}
	offers := make([]lending.Offer, 0, len(rows))
	for _, row := range rows {
		offers = append(offers, lending.Offer{
			ProductUID: row.ProductUID, ProductCode: row.ProductCode, ProductName: row.ProductName,
			Term: row.Term, InterestRate: row.InterestRate,
			BorrowerMax: row.BorrowerMax, ProjectMax: row.ProjectMax, MaxAmount: row.MaxAmount,
			ApprovedAmount: row.Approved, MerchantFeePercentage: row.Fee,
		})
	}
	return offers, nil
}

// saveOffers inserts offers or overwrites what may change of them.
func saveOffers(
	ctx context.Context, tx *postgres.Tx, uid uuid.UUID, offers []lending.Offer,
) error {
	for _, offer := range offers {
		_, err := tx.ExecContext(ctx, `
			INSERT INTO offers (application_uid, product_uid, term, interest_rate,
			                    borrower_max_approved_amount, project_max_approved_amount,
			                    max_amount, approved_amount, merchant_fee_percentage)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
			ON CONFLICT (application_uid, product_uid) DO UPDATE
			   SET term = excluded.term,
			       interest_rate = excluded.interest_rate,
			       approved_amount = excluded.approved_amount,
			       merchant_fee_percentage = excluded.merchant_fee_percentage`,
			uid, offer.ProductUID, offer.Term, offer.InterestRate, offer.BorrowerMax,
			offer.ProjectMax, offer.MaxAmount, offer.ApprovedAmount, offer.MerchantFeePercentage)
		if err != nil {
			return fmt.Errorf("saving the offer of %s: %w", offer.ProductCode, err)
		}
	}
	return nil
}

// activeProducts loads what an application can be offered.
func activeProducts(ctx context.Context, db querier) ([]lending.Product, error) {
	var rows []struct {
		UID      string           `db:"product_uid"`
		Code     string           `db:"code"`
		Name     string           `db:"name"`
		Term     string           `db:"term"`
		Rate     lending.Percent  `db:"interest_rate"`
		Fee      lending.Percent  `db:"merchant_fee_percentage"`
		Schedule lending.Schedule `db:"schedule"`
		Min      lending.Money    `db:"min_amount"`
		Max      lending.Money    `db:"max_amount"`
	}
	err := db.SelectContext(ctx, &rows, `
		SELECT product_uid,
		       code,
		       name,
		       term,
		       interest_rate,
		       merchant_fee_percentage,
		       schedule,
		       min_amount,
		       max_amount
		  FROM products
		 WHERE active
		 ORDER BY code`)
	if err != nil {
		return nil, fmt.Errorf("loading the active products: %w", err)
	}
	products := make([]lending.Product, 0, len(rows))
	for _, row := range rows {
		products = append(products, lending.Product{
			UID: row.UID, Code: row.Code, Name: row.Name, Term: row.Term,
			InterestRate: row.Rate, MerchantFeePercentage: row.Fee, Schedule: row.Schedule,
			Min: row.Min, Max: row.Max,
		})
	}
	return products, nil
}

// productSchedule loads the schedule by which a product is paid out, also of
// one that is no longer offered.
func productSchedule(
	ctx context.Context, db querier, uid string,
) (lending.Schedule, error) {
	var schedule lending.Schedule
	err := db.GetContext(ctx, &schedule,
		`SELECT schedule FROM products WHERE product_uid = $1`, uid)
	if err != nil {
		return nil, fmt.Errorf("loading the schedule of product %s: %w", uid, err)
	}
	return schedule, nil
}

// isActiveProduct tells whether the product exists and is offered.
func isActiveProduct(ctx context.Context, db querier, uid uuid.UUID) (bool, error) {
	var found bool
	err := db.GetContext(ctx, &found,
		`SELECT EXISTS (SELECT 1 FROM products WHERE product_uid = $1 AND active)`, uid)
	if err != nil {
		return false, fmt.Errorf("looking up product %s: %w", uid, err)
	}
	return found, nil
}

// change writes an application's time of change ($2) and further assignments,
// each with a comma before it and its arguments from $3 on.
func change(
	ctx context.Context, tx *postgres.Tx, uid uuid.UUID, assignments string, args ...any,
) error {
	_, err := tx.ExecContext(ctx,
		`UPDATE applications SET updated_at = $2`+assignments+` WHERE application_uid = $1`,
		append([]any{uid, tx.Now}, args...)...)
	if err != nil {
		return fmt.Errorf("changing application %s: %w", uid, err)
	}
	return nil
}

func errNoApplication(uid uuid.UUID) error {
	return lending.NewError(lending.CodeNotFound, "no application has the id %s", uid)
}
