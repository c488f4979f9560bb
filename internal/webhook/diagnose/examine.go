package diagnose

import (
	"context"

	"github.com/google/uuid"

	"drawbridge/internal/lending"
	"drawbridge/internal/webhook/sender"
)

// Examination is a signature to examine, as a partner received or computed it.
type Examination struct {
	// DeliveryUID is the delivery that it belongs to; zero if only the
	// subscription is known.
	DeliveryUID     uuid.UUID
	SubscriptionUID uuid.UUID
	Body            []byte
	Signature       string
}

// Examine determines why a partner does not accept a signature, using the current
// secrets. It shows neither a secret nor a signature other than the given one. Errors:
// NOT_FOUND, VALIDATION_ERROR if neither delivery nor subscription is named or the
// signature is missing, INVALID_STATE if the subscription does not sign.
func (s *Service) Examine(ctx context.Context, e Examination) (SignatureVerdict, error) {
	if e.Signature == "" {
		return SignatureVerdict{}, lending.Invalid("signature",
			"paste the value of the header x-hmac-signature or webhook-signature")
	}
	found := SignatureCase{Body: e.Body, Signature: e.Signature}
	if e.DeliveryUID != uuid.Nil {
		detail, err := s.Deliveries.Get(ctx, e.DeliveryUID)
		if err != nil {
			return SignatureVerdict{}, err
		}
		e.SubscriptionUID, found.Sent = detail.SubscriptionUID, detail.Body
		for _, attempt := range detail.Attempts {
			at := sender.FieldOf(attempt.RequestHeaders, "webhook-timestamp")
			if at != "" {
				found.Stamps = append(found.Stamps, Stamp(detail.EventUID.String(), at))
			}
		}
	}
	if e.SubscriptionUID == uuid.Nil {
		return SignatureVerdict{}, lending.Invalid("delivery",
			"name the delivery, or the subscription, that the signature belongs to")
	}
	var err error
	found.Current, found.Previous, err = s.Subscriptions.SigningSecrets(ctx, e.SubscriptionUID)
	if err != nil {
		return SignatureVerdict{}, err
	}
	return Signature(found), nil
}
