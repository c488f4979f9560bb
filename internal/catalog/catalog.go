// Package catalog keeps the products that loans are taken under.
//
// A product is made once and its terms never change: offers copy them, loans copy
// the schedule. What a product says is in lending.Product; this package adds where
// it is stored and whether it is still on offer.
package catalog

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
)

// The bounds of texts, in characters.
const (
	maxCode = 60
	maxName = 200
)

// Service runs the use cases of this package.
type Service struct {
	DB *postgres.DB
}

// Product is a product of the catalog.
type Product struct {
	lending.Product
	// Active products are offered by decisions.
	Active    bool      `json:"active"`
	CreatedAt time.Time `json:"-" db:"created_at"`
}

// NewProduct is what a product is made from, as an operator writes it.
type NewProduct struct {
	// Code names the product for good: letters, digits, "-", "_" and ".".
	Code string
	Name string
	// Term is a number of months, such as "120".
	Term string
	// Rate and Fee are percentages, such as "7.99": the interest for a year and
	// what the merchant pays of each draw.
	Rate, Fee string
	// Schedule is the shares of the draws, such as "40,40,20".
	Schedule string
	// Min and Max bound what the product lends, such as "1000.00".
	Min, Max string
}

// Create adds an active product. Errors: VALIDATION_ERROR with every wrong
// field, by the names "code", "name", "term", "rate", "fee", "schedule", "min"
// and "max"; among them a code that is taken.
func (s *Service) Create(
	ctx context.Context, tx *postgres.Tx, request NewProduct,
) (Product, error) {
	product, err := request.parse()
	if err != nil {
		return Product{}, err
	}
	uid := postgres.NewUID(tx.Now)
	product.UID = uid.String()
	result, err := tx.ExecContext(ctx, `
		INSERT INTO products (product_uid, code, name, term, interest_rate,
		                      merchant_fee_percentage, schedule, min_amount, max_amount,
		                      created_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
		ON CONFLICT (code) DO NOTHING`,
		uid, product.Code, product.Name, product.Term, product.InterestRate,
		product.MerchantFeePercentage, product.Schedule, product.Min, product.Max, tx.Now)
	if err != nil {
		return Product{}, fmt.Errorf("inserting product %s: %w", product.Code, err)
	}
	if count, err := result.RowsAffected(); err != nil {
		return Product{}, fmt.Errorf("counting inserted products: %w", err)
	} else if count == 0 {
		return Product{}, lending.Taken("code",
			`"code" %s is taken by another product`, product.Code)
	}
	return Product{Product: product, Active: true, CreatedAt: tx.Now}, nil
}

func (r NewProduct) parse() (lending.Product, error) {
	var faults lending.Faults
	product := lending.Product{
		Code:                  code(&faults, r.Code),
		Name:                  faults.Text("name", r.Name, maxName),
		Term:                  faults.Term("term", r.Term),
		InterestRate:          faults.Percent("rate", r.Rate),
		MerchantFeePercentage: faults.Percent("fee", r.Fee),
		Schedule:              schedule(&faults, r.Schedule),
	}
	amountFaults := len(faults)
	product.Min, product.Max = faults.Money("min", r.Min), faults.Money("max", r.Max)
	if len(faults) == amountFaults {
		if !product.Min.IsPositive() {
			faults.Add("min", `"min" must be above 0.00`)
		}
		if product.Max.Less(product.Min) {
			faults.Add("max", `"max" %s must be at least "min" %s`, product.Max, product.Min)
		}
	}
	return product, faults.Err()
}

func code(faults *lending.Faults, text string) string {
	isOther := func(r rune) bool {
		return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyz"+
			"ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.", r)
	}
	if text == "" || len(text) > maxCode || strings.ContainsFunc(text, isOther) {
		faults.Add("code", `"code" must be 1 to %d letters, digits, "-", "_" or "."`, maxCode)
	}
	return text
}

func schedule(faults *lending.Faults, text string) lending.Schedule {
	schedule, err := lending.ParseSchedule(text)
	if err != nil {
		faults.Add("schedule", "%q %s", "schedule", err)
	}
	return schedule
}

// SetActive puts a product on offer or takes it off; offers and loans that exist
// keep it. Error: NOT_FOUND.
func (s *Service) SetActive(
	ctx context.Context, tx *postgres.Tx, uid uuid.UUID, active bool,
) error {
	result, err := tx.ExecContext(ctx,
		`UPDATE products SET active = $2 WHERE product_uid = $1`, uid, active)
	if err != nil {
		return fmt.Errorf("changing product %s: %w", uid, err)
	}
	if count, err := result.RowsAffected(); err != nil || count == 0 {
		return errNoProduct(uid)
	}
	return nil
}

// terms are the columns of a lending.Product, by the names of its fields.
const terms = `product_uid::text AS uid, code, name, term, interest_rate AS interestrate,
	       merchant_fee_percentage AS merchantfeepercentage, schedule, min_amount AS min,
	       max_amount AS max`

const selectProducts = `
	SELECT ` + terms + `, active, created_at
	  FROM products`

// List returns every product, by code. There are as many as people can tell
// apart, so it has no pages.
func (s *Service) List(ctx context.Context) ([]Product, error) {
	products := []Product{}
	err := s.DB.SelectContext(ctx, &products, selectProducts+` ORDER BY code COLLATE "C"`)
	if err != nil {
		return nil, fmt.Errorf("listing products: %w", err)
	}
	return products, nil
}

// Product returns one product, active or not. Error: NOT_FOUND.
func (s *Service) Product(ctx context.Context, uid uuid.UUID) (Product, error) {
	var found Product
	err := s.DB.GetContext(ctx, &found, selectProducts+` WHERE product_uid = $1`, uid)
	if postgres.IsNoRows(err) {
		return Product{}, errNoProduct(uid)
	}
	if err != nil {
		return Product{}, fmt.Errorf("loading product %s: %w", uid, err)
	}
	return found, nil
}

func errNoProduct(uid uuid.UUID) error {
	return lending.NewError(lending.CodeNotFound, "there is no product %s", uid)
}

// ListActive returns the products that a decision offers, by code, as the
// transaction sees them.
func (s *Service) ListActive(ctx context.Context, tx *postgres.Tx) ([]lending.Product, error) {
	products := []lending.Product{}
	err := tx.SelectContext(ctx, &products,
		`SELECT `+terms+` FROM products WHERE active ORDER BY code COLLATE "C"`)
	if err != nil {
		return nil, fmt.Errorf("listing active products: %w", err)
	}
	return products, nil
}
