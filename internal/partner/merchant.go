package partner

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
)

// Merchant is who a loan pays: a business of a partner.
type Merchant struct {
	UID        uuid.UUID `db:"merchant_uid"`
	PartnerUID uuid.UUID `db:"partner_uid"`
	Name       string    `db:"name"`
	CreatedAt  time.Time `db:"created_at"`
}

// MerchantFilter narrows a list of merchants.
type MerchantFilter struct {
	// PartnerUID is the nil UUID for the merchants of all partners.
	PartnerUID uuid.UUID
}

// CreateMerchant adds a merchant to a partner. Errors: VALIDATION_ERROR for its
// name, NOT_FOUND for the partner.
func (s *Service) CreateMerchant(
	ctx context.Context, tx *postgres.Tx, partnerUID uuid.UUID, name string,
) (Merchant, error) {
	var errs lending.FieldErrors
	name = errs.Text("name", name, maxName)
	if err := errs.Err(); err != nil {
		return Merchant{}, err
	}
	merchant := Merchant{
		UID: postgres.NewUID(tx.Now), PartnerUID: partnerUID, Name: name, CreatedAt: tx.Now,
	}
	_, err := tx.NamedExecContext(ctx, `
		INSERT INTO merchants (merchant_uid, partner_uid, name, created_at)
		VALUES (:merchant_uid, :partner_uid, :name, :created_at)`, merchant)
	if postgres.IsForeignKey(err, "") {
		return Merchant{}, errNoPartner(partnerUID)
	}
	if err != nil {
		return Merchant{}, fmt.Errorf("inserting merchant %s: %w", merchant.UID, err)
	}
	return merchant, nil
}

// Merchant returns one merchant. Error: NOT_FOUND.
func (s *Service) Merchant(ctx context.Context, uid uuid.UUID) (Merchant, error) {
	var merchant Merchant
	err := s.DB.GetContext(ctx, &merchant, `
		SELECT merchant_uid, partner_uid, name, created_at
		  FROM merchants
		 WHERE merchant_uid = $1`, uid)
	if postgres.IsNoRows(err) {
		return Merchant{}, errNoMerchant(uid)
	}
	if err != nil {
		return Merchant{}, fmt.Errorf("loading merchant %s: %w", uid, err)
	}
	return merchant, nil
}

// ListMerchants returns a page of merchants, newest first, and the cursor of
// the next page. Error: VALIDATION_ERROR for the limit.
func (s *Service) ListMerchants(
	ctx context.Context, filter MerchantFilter, page postgres.Paging,
) ([]Merchant, postgres.Cursor, error) {
	if err := page.Check(); err != nil {
		return nil, postgres.Cursor{}, err
	}
	rows := []Merchant{}
	err := s.DB.SelectContext(ctx, &rows, `
		SELECT merchant_uid, partner_uid, name, created_at
		  FROM merchants
		 WHERE ($1::uuid IS NULL OR partner_uid = $1)
		   AND ($2::timestamptz IS NULL OR (created_at, merchant_uid) < ($2, $3))
		 ORDER BY created_at DESC, merchant_uid DESC
		 LIMIT $4`,
		postgres.OrNull(filter.PartnerUID), postgres.OrNull(page.From.At), page.From.UID, page.Limit+1)
	if err != nil {
		return nil, postgres.Cursor{}, fmt.Errorf("listing merchants: %w", err)
	}
	rows, next := postgres.Page(rows, page.Limit, func(merchant Merchant) postgres.Cursor {
		return postgres.Cursor{At: merchant.CreatedAt, UID: merchant.UID}
	})
	return rows, next, nil
}

func errNoMerchant(uid uuid.UUID) error {
	return lending.NewError(lending.CodeNotFound, "there is no merchant %s", uid)
}
