package idempotency

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"slices"

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
// form that all paths of the operation share, and the digest of its content,
// which is the SHA-256 of the body or what Parts.Sum returns.
func Fingerprint(method, path string, content [sha256.Size]byte) [sha256.Size]byte {
	return hashFields(method, path, string(content[:]))
}

// Parts digests a multipart body by its parts. The boundary, which every client
// draws anew for each request, does not count, nor does the order of parts with
// different names, since a client that builds its form from a map repeats it in
// another order. The zero value has no parts.
type Parts struct {
	list []part
}

type part struct {
	name, digest string
}

// Add counts a part: its name, its file name if it has one, and the SHA-256 of
// its content.
func (p *Parts) Add(name, fileName string, content [sha256.Size]byte) {
	digest := hashFields(name, fileName, string(content[:]))
	p.list = append(p.list, part{name: name, digest: string(digest[:])})
}

// Sum returns the digest of the parts so far.
func (p *Parts) Sum() [sha256.Size]byte {
	sorted := slices.Clone(p.list)
	slices.SortStableFunc(sorted, func(a, b part) int { return cmp.Compare(a.name, b.name) })
	digests := make([]string, 0, len(sorted))
	for _, part := range sorted {
		digests = append(digests, part.digest)
	}
	return hashFields(digests...)
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
