// Package partner keeps partners, their merchants and their API credentials, authenticates
// callers, and enforces their rate limits.
//
// A partner is an organisation. It has merchants, and clients: credentials that act for one
// merchant (a plain client) or for several (a group client). A client may access only what
// belongs to the merchant of the request, so Authenticate always returns exactly one.
//
// Use cases that write take the caller's transaction; lists, Authenticate and Limiter.Take read
// and count on the pool, outside any transaction.
package partner

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/email"
	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
)

// maxName bounds the names of partners and merchants, in characters.
const maxName = 200

// Service runs the use cases of this package.
type Service struct {
	DB *postgres.DB

	cache credentialCache
}

// Partner is an organisation that integrates with the API.
type Partner struct {
	UID  uuid.UUID `db:"partner_uid"`
	Name string    `db:"name"`
	// Contact is the address that is mailed about deliveries that failed for good, nil for none.
	Contact   *string   `db:"contact"`
	CreatedAt time.Time `db:"created_at"`
}

// columns are the columns of a Partner, from partners p.
const columns = `p.partner_uid, p.name, p.contact, p.created_at`

// Change is a change of a partner; a nil field stays as it is.
type Change struct {
	Name *string
	// Contact is an address, empty for none.
	Contact *string
}

// Filter narrows a list of partners.
type Filter struct {
	// Name is the beginning of the name in any case, empty for all.
	Name string
}

// CreatePartner adds a partner; contact may be empty. Error: VALIDATION_ERROR naming every wrong
// value.
func (s *Service) CreatePartner(
	ctx context.Context, tx *postgres.Tx, name, contact string,
) (Partner, error) {
	partner := Partner{UID: postgres.NewUID(tx.Now), CreatedAt: tx.Now}
	if err := (Change{Name: &name, Contact: &contact}).apply(&partner); err != nil {
		return Partner{}, err
	}
	_, err := tx.NamedExecContext(ctx, `
		INSERT INTO partners (partner_uid, name, contact, created_at)
		VALUES (:partner_uid, :name, :contact, :created_at)`, partner)
	if err != nil {
		return Partner{}, fmt.Errorf("inserting partner %s: %w", partner.UID, err)
	}
	return partner, nil
}

// UpdatePartner changes a partner and returns it as it was and as it is. A partner whose contact
// is removed is not mailed about earlier failures. Errors: VALIDATION_ERROR, NOT_FOUND.
func (s *Service) UpdatePartner(
	ctx context.Context, tx *postgres.Tx, uid uuid.UUID, change Change,
) (before, after Partner, err error) {
	if before, err = load(ctx, tx, uid, ` FOR NO KEY UPDATE`); err != nil {
		return Partner{}, Partner{}, err
	}
	after = before
	if err := change.apply(&after); err != nil {
		return Partner{}, Partner{}, err
	}
	_, err = tx.NamedExecContext(ctx, `
		UPDATE partners
		   SET name = :name, contact = :contact
		 WHERE partner_uid = :partner_uid`, after)
	if err != nil {
		return Partner{}, Partner{}, fmt.Errorf("changing partner %s: %w", uid, err)
	}
	return before, after, nil
}

// apply checks the change and makes it. Error: VALIDATION_ERROR naming every wrong value.
func (c Change) apply(to *Partner) error {
	var errs lending.FieldErrors
	if c.Name != nil {
		to.Name = errs.Text("name", *c.Name, maxName)
	}
	if c.Contact != nil {
		to.Contact = nil
		if contact := strings.TrimSpace(*c.Contact); contact != "" {
			errs.Merge(email.CheckAddressOf("contact", contact))
			to.Contact = &contact
		}
	}
	return errs.Err()
}

// Partner returns one partner. Error: NOT_FOUND.
func (s *Service) Partner(ctx context.Context, uid uuid.UUID) (Partner, error) {
	return load(ctx, s.DB, uid, "")
}

// load returns a partner, locked by the lock clause. Error: NOT_FOUND.
func load(ctx context.Context, db postgres.Querier, uid uuid.UUID, lock string) (Partner, error) {
	var partner Partner
	err := db.GetContext(ctx, &partner,
		`SELECT `+columns+` FROM partners p WHERE partner_uid = $1`+lock, uid)
	return partner, postgres.RowError(err, errNoPartner(uid), "loading partner %s", uid)
}

// ListPartners returns a page of partners, newest first, and the cursor of the
// next page. Error: VALIDATION_ERROR for the limit.
func (s *Service) ListPartners(
	ctx context.Context, filter Filter, page postgres.Paging,
) ([]Partner, postgres.Cursor, error) {
	return postgres.List[Partner]{
		What: "partners", Select: `SELECT ` + columns + ` FROM partners p`,
		At: `p.created_at`, UID: `p.partner_uid`, Place: Partner.place,
	}.Page(ctx, s.DB, filter.conditions(), page)
}

func (p Partner) place() postgres.Cursor { return postgres.Cursor{At: p.CreatedAt, UID: p.UID} }

func errNoPartner(uid uuid.UUID) error {
	return lending.NewError(lending.CodeNotFound, "there is no partner %s", uid)
}
