package subscription

import (
	"context"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
	"drawbridge/internal/secret"
	"drawbridge/internal/webhook/sender"
)

// SecretMatch says which secret of a subscription a pasted value is.
type SecretMatch struct {
	Match secret.Match
	// PreviousUntil is when the previous secret stops signing alongside the current one, nil
	// unless the value is the previous one.
	PreviousUntil *time.Time
	// PreviousEnded means that this time has passed: the value no longer signs anything.
	PreviousEnded bool
}

// CompareSecret reports whether a pasted value is the current secret or the previous one,
// without showing either. The caller must record who asked in the audit log, and limit
// how often: a short secret of the partner's own could otherwise be guessed.
//
// Errors: NOT_FOUND, VALIDATION_ERROR without a value, INVALID_STATE when the
// subscription has no secret.
func (s *Service) CompareSecret(
	ctx context.Context, tx *postgres.Tx, uid uuid.UUID, pasted secret.String,
) (SecretMatch, error) {
	if pasted.IsZero() {
		return SecretMatch{}, lending.Invalid("secret", `"secret" is required: paste a value to compare`)
	}
	row, err := load(ctx, tx, uid, notDeleted)
	if err != nil {
		return SecretMatch{}, err
	}
	if row.Auth == sender.AuthNone {
		return SecretMatch{}, lending.NewError(lending.CodeInvalidState,
			"the subscription sends without authentication: it has no secret to compare with")
	}
	current, err := s.OpenSecret(uid, row.SecretSealed)
	if err != nil {
		return SecretMatch{}, err
	}
	previous, err := s.OpenSecret(uid, row.PreviousSealed)
	if err != nil {
		return SecretMatch{}, err
	}
	found := SecretMatch{Match: secret.Compare(pasted, current, previous)}
	if found.Match == secret.MatchPrevious {
		found.PreviousUntil = row.PreviousUntil
		found.PreviousEnded = !tx.Now.Before(*row.PreviousUntil)
	}
	return found, nil
}

// SigningSecrets returns the secrets that sign the deliveries of a subscription, which
// may be deleted; previous is zero if there is none. Errors: NOT_FOUND, INVALID_STATE if
// the subscription does not sign.
func (s *Service) SigningSecrets(
	ctx context.Context, uid uuid.UUID,
) (current, previous secret.String, err error) {
	row, err := load(ctx, s.DB, uid, anyState)
	if err != nil {
		return secret.String{}, secret.String{}, err
	}
	if row.Auth != sender.AuthHMAC {
		return secret.String{}, secret.String{}, lending.NewError(lending.CodeInvalidState,
			"this subscription has no signing secret: its authentication is %s, not hmac", row.Auth)
	}
	if current, err = s.OpenSecret(uid, row.SecretSealed); err != nil {
		return secret.String{}, secret.String{}, err
	}
	previous, err = s.OpenSecret(uid, row.PreviousSealed)
	return current, previous, err
}
