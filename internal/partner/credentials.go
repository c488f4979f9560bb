package partner

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"strings"
	"time"

	"github.com/google/uuid"
)

// The prefixes let people, and scanners for leaked secrets, recognise the kind of a value.
const (
	clientIDPrefix = "dbc_"
	secretPrefix   = "dbs_"
)

// hintLength is how many characters of a secret may be shown later.
const hintLength = 4

// Credentials are what a client sends with every request.
type Credentials struct {
	// ClientID is public: it appears in lists and logs.
	ClientID string
	// Secret is known only to the partner once it has been shown.
	Secret string
}

// hint returns the end of a secret, by which people distinguish secrets. It reveals 24 of 256
// bits.
func hint(secret string) string { return secret[len(secret)-hintLength:] }

// clientID formats a UUID as the id of a client, so that lists of clients use the same page
// cursors as every other list.
func clientID(uid uuid.UUID) string { return clientIDPrefix + hex.EncodeToString(uid[:]) }

// clientUID parses the result of clientID.
func clientUID(id string) (uuid.UUID, bool) {
	digits, ok := strings.CutPrefix(id, clientIDPrefix)
	raw, err := hex.DecodeString(digits)
	if !ok || err != nil || len(raw) != len(uuid.UUID{}) {
		return uuid.Nil, false
	}
	uid := uuid.UUID(raw)
	return uid, clientID(uid) == id // rejects upper-case digits
}

// The names of the clients of the demo data set for DemoCredentials.
const (
	DemoPlain = "plain"
	DemoGroup = "group"
)

// DemoCredentials always derives the same credentials from a name, because the demo data set
// prints them on every run although only their hash is stored. They are no secret to anyone who
// has the source.
func DemoCredentials(name string) Credentials {
	sum := sha256.Sum256([]byte("demo client secret of " + name))
	return Credentials{
		ClientID: clientID(uuid.NewSHA1(uuid.NameSpaceOID, []byte("demo client id of "+name))),
		Secret:   secretPrefix + base64.RawURLEncoding.EncodeToString(sum[:]),
	}
}

// hashSecret returns the stored form of a secret.
//
// One round of SHA-256 is right here, and a slow password hash is not: slow
// hashes make up for secrets that people choose and that a dictionary guesses.
// Ours are 32 bytes from the system's random source, so anyone who steals the hash
// must search 2^256 values however fast each try is. A slow hash would buy
// nothing and cost every request tens of milliseconds of processor.
func hashSecret(secret string) [sha256.Size]byte { return sha256.Sum256([]byte(secret)) }

// storedSecrets is the part of a client's row that a secret is checked against.
type storedSecrets struct {
	SecretHash         []byte     `db:"secret_hash"`
	PreviousSecretHash []byte     `db:"previous_secret_hash"`
	PreviousValidUntil *time.Time `db:"previous_valid_until"`
	RevokedAt          *time.Time `db:"revoked_at"`
}

// accepts reports whether secret is the current secret, or the previous one during its overlap,
// of a client that is not revoked. It always compares against both hashes, with a stand-in for a
// missing one, so that the time it takes reveals nothing: neither how much of a hash was right,
// nor whether the client exists, is revoked or is being rotated.
func (s storedSecrets) accepts(secret string, now time.Time) bool {
	given := hashSecret(secret)
	current := matches(given, s.SecretHash)
	previous := matches(given, s.PreviousSecretHash)
	inOverlap := s.PreviousValidUntil != nil && now.Before(*s.PreviousValidUntil)
	return s.RevokedAt == nil && (current || previous && inOverlap)
}

func matches(given [sha256.Size]byte, stored []byte) bool {
	exists := len(stored) == sha256.Size
	if !exists {
		stored = make([]byte, sha256.Size)
	}
	return subtle.ConstantTimeCompare(given[:], stored) == 1 && exists
}
