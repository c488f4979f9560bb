package webhook

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
)

// Examination is a signature to look into: what a partner received or computed.
type Examination struct {
	// DeliveryUID is the delivery that it belongs to; zero if only the
	// subscription is known.
	DeliveryUID     uuid.UUID
	SubscriptionUID uuid.UUID
	Body            []byte
	Signature       string
}

// Examine finds out why a partner does not accept a signature, with the secrets
// in force today. It shows neither a secret nor a signature that was not
// brought. Errors: NOT_FOUND, VALIDATION_ERROR when neither delivery nor
// subscription is named or the signature is missing, INVALID_STATE when the
// subscription does not sign.
func (s *Service) Examine(ctx context.Context, e Examination) (SignatureVerdict, error) {
	if e.Signature == "" {
		return SignatureVerdict{}, lending.Invalid("signature",
			"paste the value of the header x-hmac-signature")
	}
	var sent []byte
	if e.DeliveryUID != uuid.Nil {
		detail, err := s.Delivery(ctx, e.DeliveryUID)
		if err != nil {
			return SignatureVerdict{}, err
		}
		e.SubscriptionUID, sent = detail.SubscriptionUID, detail.Body
	}
	if e.SubscriptionUID == uuid.Nil {
		return SignatureVerdict{}, lending.Invalid("delivery",
			"name the delivery, or the subscription, that the signature belongs to")
	}
	var row subscriptionRow
	err := s.DB.GetContext(ctx, &row,
		`SELECT `+subscriptionColumns+` FROM subscriptions s WHERE s.subscription_uid = $1`,
		e.SubscriptionUID)
	switch {
	case postgres.IsNoRows(err):
		return SignatureVerdict{}, errNoSubscription(e.SubscriptionUID)
	case err != nil:
		return SignatureVerdict{}, fmt.Errorf("loading subscription %s: %w", e.SubscriptionUID, err)
	case row.Auth != AuthHMAC:
		return SignatureVerdict{}, lending.NewError(lending.CodeInvalidState,
			"this subscription does not sign: its authentication is %s", row.Auth)
	}
	found := SignatureCase{Body: e.Body, Signature: e.Signature, Sent: sent}
	if found.Current, err = s.openSecret(e.SubscriptionUID, row.SecretSealed); err != nil {
		return SignatureVerdict{}, err
	}
	if found.Previous, err = s.openSecret(e.SubscriptionUID, row.PreviousSealed); err != nil {
		return SignatureVerdict{}, err
	}
	return ExamineSignature(found), nil
}
