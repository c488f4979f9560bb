package sender

import (
	"crypto/hmac"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"encoding/hex"

	"drawbridge/internal/secret"
)

// signatureVectors are published with the documentation: partners check their
// own code by them.
//
//go:embed testdata/signature_vectors.json
var signatureVectors []byte

// SignatureVectors returns the published test vectors as a JSON document: an
// object whose "vectors" are {name, secret, body, signature}.
func SignatureVectors() []byte { return signatureVectors }

// Sign returns the value of x-hmac-signature: the HMAC-SHA256 of the raw body
// under the signing secret, in lower-case hex (specification section 5).
func Sign(key secret.String, body []byte) string {
	return hex.EncodeToString(Mac(key, body))
}

// signStandard is the signature of Standard Webhooks over the body behind a prefix, by the
// secret and, during an overlap, by the former one.
func signStandard(r Request, prefix string) string {
	signed := append([]byte(prefix), r.Body...)
	signature := "v1," + base64.StdEncoding.EncodeToString(Mac(r.Secret, signed))
	if !r.Previous.IsZero() {
		signature += " v1," + base64.StdEncoding.EncodeToString(Mac(r.Previous, signed))
	}
	return signature
}

// Mac is the HMAC-SHA256 of a body under a secret.
func Mac(key secret.String, body []byte) []byte {
	hash := hmac.New(sha256.New, []byte(key.Reveal()))
	hash.Write(body)
	return hash.Sum(nil)
}
