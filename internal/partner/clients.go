package partner

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/postgres"
)

// Client is the visible part of a client: everything but its secrets.
type Client struct {
	System

	ID string `db:"client_id"`
	// PartnerUID is the nil UUID for one of the lender's systems.
	PartnerUID    uuid.UUID `db:"partner_uid"`
	Group         bool      `db:"is_group"`
	RatePerSecond int       `db:"rate_per_second"`
	Burst         int       `db:"rate_burst"`
	// MerchantUIDs are in the order of their creation.
	MerchantUIDs postgres.UIDs `db:"merchant_uids"`
	// Hint is the last four characters of the secret, and PreviousHint those of the previous one;
	// empty for older secrets.
	Hint         string `db:"secret_hint"`
	PreviousHint string `db:"previous_secret_hint"`
	// PreviousValidUntil is when the previous secret stops working, nil if there is none; it may
	// have passed.
	PreviousValidUntil *time.Time `db:"previous_valid_until"`
	// LastUsedAt is exact to a minute, nil if never used.
	LastUsedAt *time.Time `db:"last_used_at"`
	// RevokedAt is nil unless the client is revoked.
	RevokedAt *time.Time `db:"revoked_at"`
	CreatedAt time.Time  `db:"created_at"`
}

// IsRotating reports whether the previous secret still works alongside the new one.
func (c Client) IsRotating(now time.Time) bool {
	return c.PreviousValidUntil != nil && now.Before(*c.PreviousValidUntil)
}

// ClientFilter narrows a list of clients.
type ClientFilter struct {
	// PartnerUID is the nil UUID for the clients of all partners and of the lender.
	PartnerUID uuid.UUID
	// Lender leaves out the clients of partners.
	Lender bool
	// WithoutRevoked leaves out clients that were revoked.
	WithoutRevoked bool
}

const selectClients = `
	SELECT c.client_id, c.partner_uid, c.is_group, c.rate_per_second, c.rate_burst,
	       ARRAY(SELECT cm.merchant_uid
	               FROM client_merchants cm
	               JOIN merchants m USING (merchant_uid)
	              WHERE cm.client_id = c.client_id
	              ORDER BY m.created_at, m.merchant_uid) AS merchant_uids,
	       coalesce(c.secret_hint, '') AS secret_hint,
	       coalesce(c.previous_secret_hint, '') AS previous_secret_hint,
	       c.previous_valid_until, c.last_used_at, c.revoked_at, c.created_at,
	       ` + systemColumns + `
	  FROM clients c`

// Client returns one client. Error: NOT_FOUND.
func (s *Service) Client(ctx context.Context, id string) (Client, error) {
	return loadClient(ctx, s.DB, id, "")
}

// LockClient returns a client and locks it against changes until the transaction ends. Error:
// NOT_FOUND.
func (s *Service) LockClient(ctx context.Context, tx *postgres.Tx, id string) (Client, error) {
	return loadClient(ctx, tx, id, forChange)
}

// forChange locks the rows of clients c.
const forChange = ` FOR NO KEY UPDATE OF c`

func loadClient(ctx context.Context, db postgres.Querier, id, lock string) (Client, error) {
	var client Client
	err := db.GetContext(ctx, &client, selectClients+` WHERE c.client_id = $1`+lock, lookupID(id))
	return client, postgres.RowError(err, errNoClient(id), "loading client %s", id)
}

// Accepts reports whether credentials are valid. It does not count as a use of them.
func (s *Service) Accepts(ctx context.Context, credentials Credentials) (bool, error) {
	var stored storedSecrets
	err := s.DB.GetContext(ctx, &stored, `
		SELECT secret_hash, previous_secret_hash, previous_valid_until, revoked_at
		  FROM clients WHERE client_id = $1`, lookupID(credentials.ClientID))
	if err != nil && !postgres.IsNoRows(err) {
		return false, fmt.Errorf("loading the secrets of client %s: %w", credentials.ClientID, err)
	}
	return stored.accepts(credentials.Secret, s.DB.Now()), nil
}

// ListClients returns a page of clients, newest first, and the cursor of the
// next page. Error: VALIDATION_ERROR for the limit.
func (s *Service) ListClients(
	ctx context.Context, filter ClientFilter, page postgres.Paging,
) ([]Client, postgres.Cursor, error) {
	if err := page.Check(); err != nil {
		return nil, postgres.Cursor{}, err
	}
	rows := []Client{}
	err := s.DB.SelectContext(ctx, &rows, selectClients+`
		 WHERE ($1::uuid IS NULL OR c.partner_uid = $1)
		   AND (c.revoked_at IS NULL OR NOT $2)
		   AND (c.partner_uid IS NULL OR NOT $6)
		   AND ($3::timestamptz IS NULL OR (c.created_at, c.client_id) < ($3, $4))
		 ORDER BY c.created_at DESC, c.client_id DESC
		 LIMIT $5`,
		postgres.OrNull(filter.PartnerUID), filter.WithoutRevoked,
		postgres.OrNull(page.From.At), clientID(page.From.UID), page.Limit+1, filter.Lender)
	if err != nil {
		return nil, postgres.Cursor{}, fmt.Errorf("listing clients: %w", err)
	}
	rows, next := postgres.Page(rows, page.Limit, func(client Client) postgres.Cursor {
		uid, _ := clientUID(client.ID) // every stored id was written by clientID
		return postgres.Cursor{At: client.CreatedAt, UID: uid}
	})
	return rows, next, nil
}

// CountSystems counts the clients of the lender's own systems, at most limit of them.
func (s *Service) CountSystems(ctx context.Context, limit int) (int, error) {
	return s.DB.CountUpTo(ctx, limit, "the lender's systems",
		`FROM clients WHERE partner_uid IS NULL ORDER BY created_at DESC`, nil)
}

// lookupID returns id if it has the form of a client's id, else the empty id, which no client
// has; Postgres would return an error for bytes that are not UTF-8.
func lookupID(id string) string {
	if _, ok := clientUID(id); !ok {
		return ""
	}
	return id
}
