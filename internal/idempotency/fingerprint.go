package idempotency

import (
	"crypto/sha256"
	"encoding/binary"

	"drawbridge/internal/lending"
)

// Header is the name of the request header that carries a key.
const Header = "Idempotency-Key"

// maxKey bounds a key, in bytes.
const maxKey = 255

// ParseKey reads the values of the request header, empty if there are none.
// Error: VALIDATION_ERROR that names the header.
func ParseKey(values []string) (string, error) {
	switch {
	case len(values) == 0:
		return "", nil
	case len(values) > 1:
		return "", lending.Invalid(Header, "%q must be given once", Header)
	case values[0] == "" || len(values[0]) > maxKey || !isVisible(values[0]):
		return "", lending.Invalid(Header,
			"%q must be 1 to %d visible ASCII characters, without spaces", Header, maxKey)
	}
	return values[0], nil
}

func isVisible(text string) bool {
	for i := range len(text) {
		if text[i] <= ' ' || text[i] > '~' {
			return false
		}
	}
	return true
}

// Fingerprint hashes what a request asks for: its method, the path in the one
// form that all paths of the operation share, and the digest of its content.
func Fingerprint(method, path string, content [sha256.Size]byte) [sha256.Size]byte {
	return hashFields(method, path, string(content[:]))
}

// hashFields hashes the fields with their lengths, so that moving a character
// from one field to the next gives another hash.
func hashFields(fields ...string) [sha256.Size]byte {
	hash := sha256.New()
	for _, field := range fields {
		var length [8]byte
		binary.BigEndian.PutUint64(length[:], uint64(len(field)))
		hash.Write(length[:])
		hash.Write([]byte(field))
	}
	return [sha256.Size]byte(hash.Sum(nil))
}
