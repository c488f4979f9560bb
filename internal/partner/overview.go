package partner

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/lib/pq"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
)

// Summary is a partner in a list, with counts of what belongs to it.
type Summary struct {
	Partner

	Merchants int `db:"merchants"`
	// Clients counts those that are not revoked, Subscriptions those that are not
	// deleted.
	Clients       int `db:"clients"`
	Subscriptions int `db:"subscriptions"`
}

// Summaries returns a page of partners, newest first, and the cursor of the
// next page. Error: VALIDATION_ERROR for the limit.
func (s *Service) Summaries(
	ctx context.Context, filter Filter, page postgres.Paging,
) ([]Summary, postgres.Cursor, error) {
	return postgres.List[Summary]{
		What: "summaries of partners",
		Select: `
		SELECT ` + columns + `,
		       (SELECT count(*) FROM merchants m WHERE m.partner_uid = p.partner_uid) AS merchants,
		       (SELECT count(*) FROM clients c
		         WHERE c.partner_uid = p.partner_uid AND c.revoked_at IS NULL) AS clients,
		       (SELECT count(*) FROM subscriptions s
		         WHERE s.partner_uid = p.partner_uid AND s.state <> 'deleted') AS subscriptions
		  FROM partners p`,
		At: `p.created_at`, UID: `p.partner_uid`,
		Place: func(row Summary) postgres.Cursor { return row.place() },
	}.Page(ctx, s.DB, filter.conditions(), page)
}

// CountPartners counts the matching partners, at most limit of them.
func (s *Service) CountPartners(ctx context.Context, filter Filter, limit int) (int, error) {
	c := filter.conditions()
	return s.DB.CountUpTo(ctx, limit, "partners", `FROM partners p`+c.Where(), c.Args)
}

// conditions returns the filter's conditions on partners p.
func (f Filter) conditions() postgres.Conditions {
	var c postgres.Conditions
	c.When(f.Name != "", `lower(p.name) LIKE lower(?)`, postgres.LikePrefix(f.Name))
	return c
}

// RenameMerchant renames a merchant and returns it as it was before. Errors: VALIDATION_ERROR
// for the name, NOT_FOUND.
func (s *Service) RenameMerchant(
	ctx context.Context, tx *postgres.Tx, uid uuid.UUID, name string,
) (Merchant, error) {
	var errs lending.FieldErrors
	name = errs.Text("name", name, maxName)
	if err := errs.Err(); err != nil {
		return Merchant{}, err
	}
	before, err := loadMerchant(ctx, tx, uid, ` FOR NO KEY UPDATE`)
	if err != nil {
		return Merchant{}, err
	}
	_, err = tx.ExecContext(ctx, `UPDATE merchants SET name = $2 WHERE merchant_uid = $1`, uid, name)
	if err != nil {
		return Merchant{}, fmt.Errorf("renaming merchant %s: %w", uid, err)
	}
	return before, nil
}

// ClientsOf returns the clients that act for a merchant, newest first; there are
// few.
func (s *Service) ClientsOf(ctx context.Context, merchantUID uuid.UUID) ([]Client, error) {
	var rows []Client
	err := s.DB.SelectContext(ctx, &rows, selectClients+`
		 WHERE c.client_id IN (SELECT client_id FROM client_merchants WHERE merchant_uid = $1)
		 ORDER BY c.created_at DESC, c.client_id DESC
		 LIMIT $2`, merchantUID, postgres.MaxPage)
	if err != nil {
		return nil, fmt.Errorf("listing the clients of merchant %s: %w", merchantUID, err)
	}
	return rows, nil
}

// MerchantNames returns the names of merchants by uid, without those that do not exist.
func (s *Service) MerchantNames(
	ctx context.Context, uids []uuid.UUID,
) (map[uuid.UUID]string, error) {
	names := make(map[uuid.UUID]string, len(uids))
	if len(uids) == 0 {
		return names, nil
	}
	var rows []Merchant
	err := s.DB.SelectContext(ctx, &rows, `
		SELECT merchant_uid, name FROM merchants WHERE merchant_uid = ANY ($1)`, pq.Array(uids))
	if err != nil {
		return nil, fmt.Errorf("looking up the names of merchants: %w", err)
	}
	for _, row := range rows {
		names[row.UID] = row.Name
	}
	return names, nil
}
