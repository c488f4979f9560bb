// Package catalog keeps the loan products.
//
// A product's terms never change once it is created: offers copy them, loans copy the schedule.
// lending.Product holds the terms; this package adds their storage and whether the product is
// still offered.
package catalog

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
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
	Active bool `json:"active"`
	// OverdueHours are the business hours in one state after which a draw is overdue.
	OverdueHours int       `json:"overdue_hours" db:"overdue_hours"`
	CreatedAt    time.Time `json:"-" db:"created_at"`
}

// NewProduct is the input of Create, as an operator writes it.
type NewProduct struct {
	// Code names the product permanently: letters, digits, "-", "_" and ".".
	Code string
	Name string
	// Term is a number of months, such as "120".
	Term string
	// Rate and Fee are percentages, such as "7.99": the annual interest and the merchant's fee on
	// each draw.
	Rate, Fee string
	// Schedule holds the shares of the draws, such as "40,40,20".
	Schedule string
	// Min and Max bound what the product lends, such as "1000.00".
	Min, Max string
	// OverdueHours is a number of business hours; empty means "16".
	OverdueHours string
}

// Create adds an active product. Errors: VALIDATION_ERROR with every wrong field, by the names
// "code", "name", "term", "rate", "fee", "schedule", "min", "max" and "overdue_hours", including
// a code that is taken.
func (s *Service) Create(
	ctx context.Context, tx *postgres.Tx, request NewProduct,
) (Product, error) {
	product, hours, err := request.parse()
	if err != nil {
		return Product{}, err
	}
	uid := postgres.NewUID(tx.Now)
	product.UID = uid.String()
	count, err := postgres.Affected(tx.ExecContext(ctx, `
		INSERT INTO products (product_uid, code, name, term, interest_rate,
		                      merchant_fee_percentage, schedule, min_amount, max_amount,
		                      created_at, overdue_hours)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
		ON CONFLICT (code) DO NOTHING`,
		uid, product.Code, product.Name, product.Term, product.InterestRate,
		product.MerchantFeePercentage, product.Schedule, product.Min, product.Max, tx.Now,
		hours))
	if err != nil {
		return Product{}, fmt.Errorf("inserting product %s: %w", product.Code, err)
	}
	if count == 0 {
		return Product{}, lending.Taken("code",
			`"code" %s is taken by another product`, product.Code)
	}
	return Product{Product: product, Active: true, OverdueHours: hours, CreatedAt: tx.Now}, nil
}

func (r NewProduct) parse() (lending.Product, int, error) {
	var errs lending.FieldErrors
	product := lending.Product{
		Code:                  code(&errs, r.Code),
		Name:                  errs.Text("name", r.Name, maxName),
		Term:                  errs.Term("term", r.Term),
		InterestRate:          errs.Percent("rate", r.Rate),
		MerchantFeePercentage: errs.Percent("fee", r.Fee),
		Schedule:              schedule(&errs, r.Schedule),
	}
	amountErrors := len(errs)
	product.Min, product.Max = errs.Money("min", r.Min), errs.Money("max", r.Max)
	if len(errs) == amountErrors {
		if !product.Min.IsPositive() {
			errs.Add("min", `"min" must be above 0.00`)
		}
		if product.Max.Less(product.Min) {
			errs.Add("max", `"max" %s must be at least "min" %s`, product.Max, product.Min)
		}
	}
	return product, overdueHours(&errs, cmp.Or(r.OverdueHours, "16")), errs.Err()
}

// maxOverdueHours is the maximum of OverdueHours.
const maxOverdueHours = 400

func overdueHours(errs *lending.FieldErrors, text string) int {
	hours, err := strconv.Atoi(text)
	if err != nil || hours < 1 || hours > maxOverdueHours {
		errs.Add("overdue_hours", `"overdue_hours" must be a number of business hours from 1 to %d`,
			maxOverdueHours)
	}
	return hours
}

func code(errs *lending.FieldErrors, text string) string {
	isOther := func(r rune) bool {
		return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyz"+
			"ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.", r)
	}
	if text == "" || len(text) > maxCode || strings.ContainsFunc(text, isOther) {
		errs.Add("code", `"code" must be 1 to %d letters, digits, "-", "_" or "."`, maxCode)
	}
	return text
}

func schedule(errs *lending.FieldErrors, text string) lending.Schedule {
	schedule, err := lending.ParseSchedule(text)
	if err != nil {
		errs.Add("schedule", "%q %s", "schedule", err)
	}
	return schedule
}

// SetActive starts or stops offering a product; existing offers and loans are not affected.
// Error: NOT_FOUND.
func (s *Service) SetActive(
	ctx context.Context, tx *postgres.Tx, uid uuid.UUID, active bool,
) error {
	count, err := postgres.Affected(tx.ExecContext(ctx,
		`UPDATE products SET active = $2 WHERE product_uid = $1`, uid, active))
	if err != nil {
		return fmt.Errorf("changing product %s: %w", uid, err)
	}
	if count == 0 {
		return errNoProduct(uid)
	}
	return nil
}

// SetOverdueHours sets after how many business hours in one state draws of a product are
// overdue. Errors: NOT_FOUND; VALIDATION_ERROR for "overdue_hours".
func (s *Service) SetOverdueHours(
	ctx context.Context, tx *postgres.Tx, uid uuid.UUID, text string,
) (before, after Product, err error) {
	var errs lending.FieldErrors
	hours := overdueHours(&errs, text)
	if err := errs.Err(); err != nil {
		return before, after, err
	}
	if before, err = load(ctx, tx, uid, ` FOR NO KEY UPDATE`); err != nil {
		return before, after, err
	}
	after = before
	after.OverdueHours = hours
	_, err = tx.ExecContext(ctx,
		`UPDATE products SET overdue_hours = $2 WHERE product_uid = $1`, uid, hours)
	if err != nil {
		return before, after, fmt.Errorf("changing product %s: %w", uid, err)
	}
	return before, after, nil
}

// terms selects the columns of a lending.Product under the names of its fields.
const terms = `product_uid::text AS uid, code, name, term, interest_rate AS interestrate,
	       merchant_fee_percentage AS merchantfeepercentage, schedule, min_amount AS min,
	       max_amount AS max`

const selectProducts = `
	SELECT ` + terms + `, active, overdue_hours, created_at
	  FROM products`

// List returns every product, by code. Their number is limited by what people can tell apart, so
// it is not paged.
func (s *Service) List(ctx context.Context) ([]Product, error) {
	products := []Product{}
	err := s.DB.SelectContext(ctx, &products, selectProducts+` ORDER BY code COLLATE "C"`)
	if err != nil {
		return nil, fmt.Errorf("listing products: %w", err)
	}
	return products, nil
}

// Newest returns a page of the products, newest first, and the cursor of the next page.
func (s *Service) Newest(
	ctx context.Context, page postgres.Paging,
) ([]Product, postgres.Cursor, error) {
	return postgres.List[Product]{
		What: "the newest products", Select: selectProducts, At: `created_at`, UID: `product_uid`,
		Place: func(p Product) postgres.Cursor {
			return postgres.Cursor{At: p.CreatedAt, UID: uuid.MustParse(p.UID)}
		},
	}.Page(ctx, s.DB, postgres.Conditions{}, page)
}

// Product returns one product, active or not. Error: NOT_FOUND.
func (s *Service) Product(ctx context.Context, uid uuid.UUID) (Product, error) {
	return load(ctx, s.DB, uid, "")
}

// load returns a product, locked by the lock clause. Error: NOT_FOUND.
func load(ctx context.Context, db postgres.Querier, uid uuid.UUID, lock string) (Product, error) {
	var found Product
	err := db.GetContext(ctx, &found, selectProducts+` WHERE product_uid = $1`+lock, uid)
	return found, postgres.RowError(err, errNoProduct(uid), "loading product %s", uid)
}

func errNoProduct(uid uuid.UUID) error {
	return lending.NewError(lending.CodeNotFound, "there is no product %s", uid)
}

// ListActive returns the products that a decision offers, by code, as seen by the transaction.
func (s *Service) ListActive(ctx context.Context, tx *postgres.Tx) ([]lending.Product, error) {
	products := []lending.Product{}
	err := tx.SelectContext(ctx, &products,
		`SELECT `+terms+` FROM products WHERE active ORDER BY code COLLATE "C"`)
	if err != nil {
		return nil, fmt.Errorf("listing active products: %w", err)
	}
	return products, nil
}
