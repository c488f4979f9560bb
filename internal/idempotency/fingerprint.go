package idempotency

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"strings"

	"drawbridge/internal/lending"
)

// Header is the name of the request header that carries a key.
const Header = "Idempotency-Key"

// maxKey bounds a key, in bytes.
const maxKey = 255

// ParseKey parses the values of the request header, empty if there are none. Error:
// VALIDATION_ERROR that names the header.
func ParseKey(values []string) (string, error) {
	isHidden := func(r rune) bool { return r <= ' ' || r > '~' }
	switch {
	case len(values) == 0:
		return "", nil
	case len(values) > 1:
		return "", lending.Invalid(Header, "%q must be given once", Header)
	case values[0] == "" || len(values[0]) > maxKey || strings.ContainsFunc(values[0], isHidden):
		return "", lending.Invalid(Header,
			"%q must be 1 to %d visible ASCII characters, without spaces", Header, maxKey)
	}
	return values[0], nil
}

// Fingerprint identifies a request by its content, hashed once for each encoding of it that a
// release has used, the oldest first. Two requests are the same if they share a hash.
type Fingerprint [][sha256.Size]byte

// NewFingerprint hashes a request's method, the path in the one form common to all paths of the
// operation, and each of the digests of its content.
func NewFingerprint(method, path string, contents ...[sha256.Size]byte) Fingerprint {
	fingerprint := make(Fingerprint, 0, len(contents))
	for _, content := range contents {
		fingerprint = append(fingerprint, hashFields(method, path, string(content[:])))
	}
	return fingerprint
}

// stored returns the columns of a key: the oldest hash, by which the previous release, which may
// run alongside this one, also recognizes the request, and the others, each bound to it. A release
// that only has one encoding overwrites just the first column; what it leaves in the second then
// matches nothing.
func (f Fingerprint) stored() (oldest []byte, others [][]byte) {
	oldest = f[0][:]
	for _, hash := range f[1:] {
		others = append(others, bind(oldest, hash))
	}
	return oldest, others
}

// matches reports whether the columns hold a hash of this request.
func (f Fingerprint) matches(oldest []byte, others [][]byte) bool {
	return slices.ContainsFunc(f, func(own [sha256.Size]byte) bool {
		bound := bind(oldest, own)
		return bytes.Equal(oldest, own[:]) ||
			slices.ContainsFunc(others, func(other []byte) bool { return bytes.Equal(other, bound) })
	})
}

func bind(oldest []byte, hash [sha256.Size]byte) []byte {
	bound := hashFields(string(oldest), string(hash[:]))
	return bound[:]
}

// hashFields hashes the fields with their lengths, so that moving a character from one field to the
// next changes the hash.
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
