package sender

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"

	"drawbridge/internal/secret"
)

// Sign returns the value of x-hmac-signature: the HMAC-SHA256 of the raw body
// under the signing secret, in lower-case hex (specification section 5).
func Sign(key secret.String, body []byte) string { return hex.EncodeToString(Mac(key, body)) }

// Mac returns the HMAC-SHA256 of a body under a secret.
func Mac(key secret.String, body []byte) []byte {
	hash := hmac.New(sha256.New, []byte(key.Reveal()))
	hash.Write(body)
	return hash.Sum(nil)
}
