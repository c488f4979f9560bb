package partner

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
)

// merchantHeader is the header that names the merchant of a request.
const merchantHeader = "x-service-merchant-uid"

// useResolution is the precision of last_used_at: one write per client and minute instead of one
// per request.
const useResolution = time.Minute

// uidLength is the length of the only accepted text form of a UUID.
const uidLength = 36

// Presented holds the credentials of a request; each text is empty if the request has none.
type Presented struct {
	ClientID, Secret string
	// Merchant is the merchant that a partner's client acts for.
	Merchant string
	// Address is where the request comes from.
	Address netip.Addr
	// Within is the open transaction of the request, nil outside of one. Queries then use its
	// connection: a request that waits for a second one could wait for others that do the same.
	Within *postgres.Tx
}

// Caller identifies the sender of a request and the merchant it acts for.
type Caller struct {
	ClientID string
	// Name is the name of one of the lender's systems, and Scopes what it may do; both are empty
	// for a partner's client.
	Name   string
	Scopes []Scope
	// PartnerUID is the nil UUID for one of the lender's systems.
	PartnerUID uuid.UUID
	// MerchantUID is the merchant of the request; the nil UUID if it is for all of them.
	MerchantUID uuid.UUID
	// MerchantUIDs are the merchants of the request: MerchantUID alone, or all that a group client
	// may act for.
	MerchantUIDs postgres.UIDs
	// RatePerSecond and Burst are the client's limits, for Limiter.Take.
	RatePerSecond int
	Burst         int
}

// credential holds what one request needs of a client.
type credential struct {
	storedSecrets
	System
	PartnerUID    uuid.UUID  `db:"partner_uid"`
	Group         bool       `db:"is_group"`
	RatePerSecond int        `db:"rate_per_second"`
	Burst         int        `db:"rate_burst"`
	LastUsedAt    *time.Time `db:"last_used_at"`
	// MerchantUID is the named merchant if it is the client's, any of the
	// client's if none was named, and NULL otherwise.
	MerchantUID uuid.NullUUID `db:"merchant_uid"`
	// MerchantUIDs are all merchants of a group client if none was named.
	MerchantUIDs postgres.UIDs `db:"merchant_uids"`
}

// Authenticate checks the three credential headers (specification section 5), each empty if the
// request has none, and returns the caller.
//
// Revoking a client, rotating its secret or changing its rate takes effect from the next request
// on, in every process: what was read of the client is used for a moment only, and the change
// waits as long before it returns (see cacheLife).
//
// Errors: UNAUTHORIZED, always alike, for a missing, unknown, revoked or wrong id or secret. The
// other errors come with the caller, but without a merchant: NOT_FOUND for one of the lender's
// systems; VALIDATION_ERROR for a group client without a merchant and for a malformed one;
// FORBIDDEN for a merchant that is not the client's.
func (s *Service) Authenticate(ctx context.Context, presented Presented) (Caller, error) {
	caller, err := s.AuthenticateAll(ctx, presented)
	if err == nil && caller.MerchantUID == uuid.Nil {
		caller.MerchantUIDs, err = nil, lending.Required(merchantHeader)
	}
	return caller, err
}

// AuthenticateAll is Authenticate for a request that a group client may make for all of its
// merchants at once, by naming none.
func (s *Service) AuthenticateAll(ctx context.Context, presented Presented) (Caller, error) {
	named, malformed := parseMerchant(presented.Merchant)
	caller, found, err := s.verify(ctx, presented, named)
	if err != nil {
		return Caller{}, err
	}
	switch {
	case found.IsLender():
		return caller, errNotHere()
	case malformed != nil:
		return caller, malformed
	case found.Group && !named.Valid:
		caller.MerchantUIDs = found.MerchantUIDs
		return caller, nil
	case !found.MerchantUID.Valid:
		return caller, lending.NewError(lending.CodeForbidden,
			"the merchant named in %s is not associated with these credentials", merchantHeader)
	}
	caller.MerchantUID = found.MerchantUID.UUID
	caller.MerchantUIDs = postgres.UIDs{caller.MerchantUID}
	return caller, nil
}

// AuthenticateLender returns which of the lender's systems is calling (decisions section 10).
// Errors: UNAUTHORIZED as in Authenticate, and for an address that the client may not call from;
// NOT_FOUND, with the caller, for a partner's client.
func (s *Service) AuthenticateLender(ctx context.Context, presented Presented) (Caller, error) {
	caller, found, err := s.verify(ctx, presented, uuid.NullUUID{})
	if err == nil && !found.IsLender() {
		err = errNotHere()
	}
	return caller, err
}

// verify checks the id and the secret, and records the use.
func (s *Service) verify(
	ctx context.Context, presented Presented, merchant uuid.NullUUID,
) (Caller, credential, error) {
	now := s.DB.Now().UTC()
	who := cacheKey{presented.ClientID, merchant}
	found, known := s.cache.get(who)
	if !known || !found.accepts(presented.Secret, now) || !found.allows(presented.Address) ||
		!found.useRecorded(now) {
		var err error
		if found, err = s.lookUp(ctx, who, presented, now); err != nil {
			return Caller{}, credential{}, err
		}
	}
	return Caller{
		ClientID:      presented.ClientID,
		Name:          found.Name,
		Scopes:        found.Scopes,
		PartnerUID:    found.PartnerUID,
		RatePerSecond: found.RatePerSecond,
		Burst:         found.Burst,
	}, found, nil
}

// lookUp checks the id and the secret against the database, and records the use.
func (s *Service) lookUp(
	ctx context.Context, who cacheKey, presented Presented, now time.Time,
) (credential, error) {
	began := time.Now()
	var db postgres.Querier = s.DB
	if presented.Within != nil {
		db = presented.Within
	}
	found, err := credentialOf(ctx, db, who)
	if err != nil {
		return credential{}, err
	}
	if !found.accepts(presented.Secret, now) || !found.allows(presented.Address) {
		return credential{}, lending.NewError(lending.CodeUnauthorized,
			"missing or invalid client credentials: send x-service-client-id and "+
				"x-service-client-secret as they were issued")
	}
	if !found.useRecorded(now) && presented.Within == nil { // which would keep the row locked
		// Of many requests that find last_used_at out of date at the same moment one writes; the
		// others skip the locked row instead of queueing behind it.
		_, err := s.DB.ExecContext(ctx, `
			UPDATE clients
			   SET last_used_at = $2
			 WHERE client_id = (
			        SELECT client_id
			          FROM clients
			         WHERE client_id = $1
			           AND (last_used_at IS NULL OR last_used_at <= $3)
			           FOR NO KEY UPDATE SKIP LOCKED)`, who.client, now, now.Add(-useResolution))
		if err != nil {
			return credential{}, fmt.Errorf("noting the use of client %s: %w", who.client, err)
		}
		found.LastUsedAt = &now
	}
	s.cache.put(who, found, began)
	return found, nil
}

// errNotHere makes a path look absent to the other kind of client.
func errNotHere() error {
	return lending.NewError(lending.CodeNotFound,
		"no operation has this path; compare it with the API reference")
}

// credentialOf loads a client. If it does not exist, the result is the zero value, which accepts
// no secret, after the same work.
func credentialOf(ctx context.Context, db postgres.Querier, who cacheKey) (credential, error) {
	var found credential
	err := db.GetContext(ctx, &found, `
		SELECT c.partner_uid, c.is_group, c.secret_hash, c.previous_secret_hash,
		       c.previous_valid_until, c.revoked_at, c.rate_per_second, c.rate_burst,
		       c.last_used_at, `+systemColumns+`,
		       (SELECT m.merchant_uid
		          FROM client_merchants m
		         WHERE m.client_id = c.client_id
		           AND ($2::uuid IS NULL OR m.merchant_uid = $2)
		         LIMIT 1) AS merchant_uid,
		       CASE WHEN c.is_group AND $2::uuid IS NULL
		            THEN ARRAY(SELECT merchant_uid
		                         FROM client_merchants m
		                        WHERE m.client_id = c.client_id
		                        ORDER BY merchant_uid)
		       END AS merchant_uids
		  FROM clients c
		 WHERE c.client_id = $1`, lookupID(who.client), who.merchant)
	if err != nil && !postgres.IsNoRows(err) {
		return credential{}, fmt.Errorf("loading client %q: %w", who.client, err)
	}
	return found, nil
}

// useRecorded reports whether the client's use was recorded within the last minute.
func (c credential) useRecorded(now time.Time) bool {
	return c.LastUsedAt != nil && now.Sub(*c.LastUsedAt) < useResolution
}

// parseMerchant parses the header's value; without one the UUID is not valid.
func parseMerchant(text string) (uuid.NullUUID, error) {
	if text == "" {
		return uuid.NullUUID{}, nil
	}
	uid, err := uuid.Parse(text)
	if err != nil || len(text) != uidLength {
		return uuid.NullUUID{}, lending.Invalid(merchantHeader,
			"%q must be a UUID such as 018f3b9e-7c1a-7d60-9c55-3e1f0a2b4c6d", merchantHeader)
	}
	return uuid.NullUUID{UUID: uid, Valid: true}, nil
}

// DemoClients returns the ids of the clients whose published secrets are accepted.
func (s *Service) DemoClients(ctx context.Context) ([]string, error) {
	var accepted []string
	for _, name := range []string{DemoPlain, DemoGroup} {
		published := DemoCredentials(name)
		accepts, err := s.Accepts(ctx, published)
		if err != nil {
			return nil, err
		}
		if accepts {
			accepted = append(accepted, published.ClientID)
		}
	}
	return accepted, nil
}
