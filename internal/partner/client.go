package partner

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
	"drawbridge/internal/secret"
)

// The default limits of a client.
const (
	DefaultRatePerSecond = 50
	DefaultBurst         = 100
)

// The bounds of a client's limits.
const (
	maxRatePerSecond = 100_000
	maxBurst         = 200_000
)

// NewClient is the input of CreateClient.
type NewClient struct {
	PartnerUID uuid.UUID
	// MerchantUIDs are the merchants that the client acts for. If empty, a group gets all that the
	// partner has now, a plain client the only one.
	MerchantUIDs []uuid.UUID
	// Group lets the client act for several merchants, named in each request.
	Group bool
	// Demo is the name for DemoCredentials. If empty, as it must be outside the demo data set,
	// credentials are generated.
	Demo string
}

// Issued holds what a partner is shown once: the secret can never be read again.
type Issued struct {
	Credentials
	System

	Group        bool
	MerchantUIDs []uuid.UUID
}

// Rotated is a client's new secret.
type Rotated struct {
	Credentials
	// PreviousValidUntil is when the old secret stops working, nil if it already did.
	PreviousValidUntil *time.Time
}

// newSecret returns a random secret of 256 bits.
func newSecret() string { return secret.NewToken(secretPrefix).Reveal() }

// CreateClient issues credentials. Errors: NOT_FOUND for the partner,
// VALIDATION_ERROR for its merchants.
func (s *Service) CreateClient(
	ctx context.Context, tx *postgres.Tx, request NewClient,
) (Issued, error) {
	var owned postgres.UIDs
	err := tx.GetContext(ctx, &owned, `
		SELECT ARRAY(SELECT m.merchant_uid
		               FROM merchants m
		              WHERE m.partner_uid = p.partner_uid
		              ORDER BY m.created_at, m.merchant_uid)
		  FROM partners p
		 WHERE p.partner_uid = $1`, request.PartnerUID)
	err = postgres.RowError(err, errNoPartner(request.PartnerUID),
		"listing merchants of partner %s", request.PartnerUID)
	if err != nil {
		return Issued{}, err
	}
	const field = "merchant"
	merchants := owned
	if len(request.MerchantUIDs) > 0 {
		merchants = nil
	}
	for _, uid := range request.MerchantUIDs {
		if !slices.Contains(owned, uid) {
			return Issued{}, lending.Invalid(field,
				"%q %s is not a merchant of partner %s", field, uid, request.PartnerUID)
		}
		if !slices.Contains(merchants, uid) {
			merchants = append(merchants, uid)
		}
	}
	switch {
	case len(merchants) == 0:
		return Issued{}, lending.Invalid(field,
			"%q is required: partner %s has no merchant yet, create one first",
			field, request.PartnerUID)
	case !request.Group && len(merchants) > 1:
		return Issued{}, lending.Invalid(field,
			"%q must name exactly one of %d merchants unless the client is a group client",
			field, len(merchants))
	}
	credentials := Credentials{ClientID: clientID(postgres.NewUID(tx.Now)), Secret: newSecret()}
	if request.Demo != "" {
		credentials = DemoCredentials(request.Demo)
	}
	hash := hashSecret(credentials.Secret)
	_, err = tx.ExecContext(ctx, `
		WITH client AS (
			INSERT INTO clients (client_id, partner_uid, is_group, secret_hash,
			                     rate_per_second, rate_burst, created_at, secret_hint)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $9)
			RETURNING client_id, partner_uid
		)
		INSERT INTO client_merchants (client_id, merchant_uid, partner_uid)
		SELECT client_id, unnest($8::uuid[]), partner_uid FROM client`,
		credentials.ClientID, request.PartnerUID, request.Group, hash[:],
		DefaultRatePerSecond, DefaultBurst, tx.Now, merchants, hint(credentials.Secret))
	if err != nil {
		return Issued{}, fmt.Errorf("inserting client %s: %w", credentials.ClientID, err)
	}
	return Issued{Credentials: credentials, Group: request.Group, MerchantUIDs: merchants}, nil
}

// RotateClient gives a client a new secret; the old one keeps working for the overlap, from 0
// (not at all) to 30 days. A still older secret in its own overlap stops at once. Errors:
// VALIDATION_ERROR for the overlap, NOT_FOUND, INVALID_STATE for a revoked client.
func (s *Service) RotateClient(
	ctx context.Context, tx *postgres.Tx, id string, overlap time.Duration,
) (Rotated, error) {
	if overlap < 0 || overlap > secret.MaxOverlap {
		return Rotated{}, lending.Invalid("overlap",
			`"overlap" must be from 0s to %dh`, int(secret.MaxOverlap.Hours()))
	}
	if err := lockActive(ctx, tx, id); err != nil {
		return Rotated{}, err
	}
	rotated := Rotated{Credentials: Credentials{ClientID: id, Secret: newSecret()}}
	if overlap > 0 {
		rotated.PreviousValidUntil = new(tx.Now.Add(overlap).Truncate(time.Microsecond))
	}
	hash := hashSecret(rotated.Secret)
	_, err := tx.ExecContext(ctx, `
		UPDATE clients
		   SET previous_secret_hash = CASE WHEN $2::timestamptz IS NOT NULL THEN secret_hash END,
		       previous_secret_hint = CASE WHEN $2::timestamptz IS NOT NULL THEN secret_hint END,
		       previous_valid_until = $2,
		       secret_hash = $3,
		       secret_hint = $4
		 WHERE client_id = $1`, id, rotated.PreviousValidUntil, hash[:], hint(rotated.Secret))
	if err != nil {
		return Rotated{}, fmt.Errorf("rotating client %s: %w", id, err)
	}
	awaitCaches(tx)
	return rotated, nil
}

// RevokeClient revokes a client for good as soon as the transaction commits; revoking it again
// changes nothing. Error: NOT_FOUND.
func (s *Service) RevokeClient(ctx context.Context, tx *postgres.Tx, id string) error {
	count, err := postgres.Affected(tx.ExecContext(ctx, `
		UPDATE clients
		   SET revoked_at = coalesce(revoked_at, $2),
		       previous_secret_hash = NULL,
		       previous_secret_hint = NULL,
		       previous_valid_until = NULL
		 WHERE client_id = $1`, lookupID(id), tx.Now))
	if err != nil {
		return fmt.Errorf("revoking client %s: %w", id, err)
	}
	if count == 0 {
		return errNoClient(id)
	}
	awaitCaches(tx)
	return nil
}

// SetRate limits a client to perSecond requests in the long run and burst requests at once.
// Errors: VALIDATION_ERROR, NOT_FOUND, INVALID_STATE for a revoked client.
func (s *Service) SetRate(
	ctx context.Context, tx *postgres.Tx, id string, perSecond, burst int,
) error {
	var errs lending.FieldErrors
	if perSecond < 1 || perSecond > maxRatePerSecond {
		errs.Add("rate", `"rate" must be from 1 to %d requests per second`, maxRatePerSecond)
	}
	if burst < 1 || burst > maxBurst {
		errs.Add("burst", `"burst" must be from 1 to %d requests`, maxBurst)
	}
	if err := errs.Err(); err != nil {
		return err
	}
	if err := lockActive(ctx, tx, id); err != nil {
		return err
	}
	_, err := tx.ExecContext(ctx, `
		UPDATE clients SET rate_per_second = $2, rate_burst = $3 WHERE client_id = $1`,
		id, perSecond, burst)
	if err != nil {
		return fmt.Errorf("setting the rate of client %s: %w", id, err)
	}
	awaitCaches(tx)
	return nil
}

// lockActive locks the row of a client that is not revoked.
func lockActive(ctx context.Context, tx *postgres.Tx, id string) error {
	client, err := loadClient(ctx, tx, id, forChange)
	if err == nil && client.RevokedAt != nil {
		err = lending.NewError(lending.CodeInvalidState,
			"client %s is revoked; create a new one", id)
	}
	return err
}

func errNoClient(id string) error {
	return lending.NewError(lending.CodeNotFound, "there is no client %q", id)
}
