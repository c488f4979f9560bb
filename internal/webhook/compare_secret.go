package webhook

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
	"drawbridge/internal/secret"
)

// SecretMatch says which secret of a subscription a pasted value is.
type SecretMatch struct {
	Match secret.Match
	// PreviousUntil is when the previous secret stops signing beside the current
	// one, nil unless the value is the previous one.
	PreviousUntil *time.Time
	// PreviousEnded tells that this has passed: the value signs nothing any more.
	PreviousEnded bool
}

// CompareSecret tells whether a pasted value is the secret in force or the one
// before it, without showing either. Who asks belongs into the audit log, and
// how often, within bounds: a short secret of the partner's own could otherwise
// be guessed.
//
// Errors: NOT_FOUND, VALIDATION_ERROR without a value, INVALID_STATE when the
// subscription has no secret.
func (s *Service) CompareSecret(
	ctx context.Context, tx *postgres.Tx, uid uuid.UUID, pasted secret.String,
) (SecretMatch, error) {
	if pasted.IsZero() {
		return SecretMatch{}, lending.Invalid("secret", `"secret" is required: paste a value to compare`)
	}
	var row subscriptionRow
	err := tx.GetContext(ctx, &row, `
		SELECT `+subscriptionColumns+`
		  FROM subscriptions s
		 WHERE s.subscription_uid = $1
		   AND s.state <> 'deleted'`, uid)
	switch {
	case postgres.IsNoRows(err):
		return SecretMatch{}, errNoSubscription(uid)
	case err != nil:
		return SecretMatch{}, fmt.Errorf("loading subscription %s: %w", uid, err)
	case row.Auth == AuthNone:
		return SecretMatch{}, lending.NewError(lending.CodeInvalidState,
			"the subscription sends without authentication: it has no secret to compare with")
	}
	current, err := s.openSecret(uid, row.SecretSealed)
	if err != nil {
		return SecretMatch{}, err
	}
	previous, err := s.openSecret(uid, row.PreviousSealed)
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
