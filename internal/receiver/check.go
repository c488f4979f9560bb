package receiver

import (
	"crypto/hmac"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"drawbridge/internal/secret"
	"drawbridge/internal/webhook/diagnose"
	"drawbridge/internal/webhook/sender"
)

// Check is the outcome of verifying the origin of a request.
type Check struct {
	Genuine bool
	// Text describes the result, and why a request is not genuine.
	Text string
}

// check does what a partner's endpoint must do: compute the HMAC of the raw body, or compare the
// token (specification section 5).
func (r *Receiver) check(header http.Header, body []byte) Check {
	signature, previous := header.Get("x-hmac-signature"), header.Get("x-hmac-signature-previous")
	token, isBearer := strings.CutPrefix(header.Get("Authorization"), "Bearer ")
	switch {
	case signature != "" && r.signed(signature, body):
		return Check{true, "Verified: the signature belongs to this body and a known secret."}
	case previous != "" && r.signed(previous, body):
		return Check{true, "Verified by x-hmac-signature-previous: the secret was rotated, and this " +
			"receiver still knows the previous one only."}
	case signature != "":
		return Check{false, r.whyNot(signature, body)}
	case isBearer && slices.ContainsFunc(r.secrets, func(value secret.String) bool {
		return hmac.Equal([]byte(token), []byte(value.Reveal()))
	}):
		return Check{true, "Verified: the bearer token is a known one."}
	case isBearer:
		return Check{false, "Not verified: the bearer token is none that this receiver knows."}
	}
	return Check{false, "Not verified: there is neither a signature nor a bearer token."}
}

func (r *Receiver) signed(signature string, body []byte) bool {
	return slices.ContainsFunc(r.secrets, func(value secret.String) bool {
		return hmac.Equal([]byte(signature), []byte(sender.Sign(value, body)))
	})
}

// whyNot runs the signature doctor with each known secret.
func (r *Receiver) whyNot(signature string, body []byte) string {
	for _, value := range r.secrets {
		verdict := diagnose.Signature(diagnose.SignatureCase{
			Body: body, Signature: signature, Current: value,
		})
		if verdict.Finding != diagnose.FoundOtherSecret {
			return "Not verified: " + verdict.Explanation
		}
	}
	return "Not verified: no secret that this receiver knows gives this signature. Tell it the " +
		"secret of the subscription below."
}

// duplicate says where the same delivery or event was received before.
func (r *Receiver) duplicate(got Received) string {
	for _, former := range slices.Backward(r.received) {
		switch {
		case got.Delivery != "" && former.Delivery == got.Delivery && former.Answer < 300:
			return fmt.Sprintf("Duplicate: the delivery came before as number %d, and was confirmed.",
				former.Number)
		case got.Delivery != "" && former.Delivery == got.Delivery:
			return fmt.Sprintf("Another attempt of number %d, which was answered %d.",
				former.Number, former.Answer)
		case got.Application != "" && former.Application == got.Application &&
			former.Status == got.Status && former.Timestamp == got.Timestamp:
			return fmt.Sprintf("Duplicate: the same event (application, status and timestamp) came "+
				"before as number %d, in another delivery.", former.Number)
		}
	}
	return ""
}
