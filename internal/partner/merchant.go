package partner

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
)

// Merchant is a business of a partner, to which loans are paid out.
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

const selectMerchants = `SELECT merchant_uid, partner_uid, name, created_at FROM merchants`

// Merchant returns one merchant. Error: NOT_FOUND.
func (s *Service) Merchant(ctx context.Context, uid uuid.UUID) (Merchant, error) {
	return loadMerchant(ctx, s.DB, uid, "")
}

// loadMerchant returns a merchant, locked by the lock clause. Error: NOT_FOUND.
func loadMerchant(
	ctx context.Context, db postgres.Querier, uid uuid.UUID, lock string,
) (Merchant, error) {
	var merchant Merchant
	err := db.GetContext(ctx, &merchant, selectMerchants+` WHERE merchant_uid = $1`+lock, uid)
	return merchant, postgres.RowError(err,
		lending.NewError(lending.CodeNotFound, "there is no merchant %s", uid),
		"loading merchant %s", uid)
}

// ListMerchants returns a page of merchants, newest first, and the cursor of
// the next page. Error: VALIDATION_ERROR for the limit.
func (s *Service) ListMerchants(
	ctx context.Context, filter MerchantFilter, page postgres.Paging,
) ([]Merchant, postgres.Cursor, error) {
	var c postgres.Conditions
	c.When(filter.PartnerUID != uuid.Nil, `partner_uid = ?`, filter.PartnerUID)
	return postgres.List[Merchant]{
		What: "merchants", Select: selectMerchants, At: `created_at`, UID: `merchant_uid`,
		Place: func(m Merchant) postgres.Cursor { return postgres.Cursor{At: m.CreatedAt, UID: m.UID} },
	}.Page(ctx, s.DB, c, page)
}
