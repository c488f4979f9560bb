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

// The prefixes let people, and scanners for leaked secrets, tell what they see.
const (
	clientIDPrefix = "dbc_"
	secretPrefix   = "dbs_"
)

// hintLength is how much of a secret may be shown later, in characters.
const hintLength = 4

// Credentials are what a partner sends with every request.
type Credentials struct {
	// ClientID is public: it appears in lists and logs.
	ClientID string
	// Secret is known to the partner alone once it was shown.
	Secret string
}

// hint returns the end of a secret, by which people tell secrets apart. It gives
// away 24 bits of 256.
func hint(secret string) string { return secret[len(secret)-hintLength:] }

// clientID writes a UUID as the id of a client, so that lists of clients page by
// the same cursors as every other list.
func clientID(uid uuid.UUID) string { return clientIDPrefix + hex.EncodeToString(uid[:]) }

// clientUID reads what clientID wrote.
func clientUID(id string) (uuid.UUID, bool) {
	digits, ok := strings.CutPrefix(id, clientIDPrefix)
	raw, err := hex.DecodeString(digits)
	if !ok || err != nil || len(raw) != len(uuid.UUID{}) {
		return uuid.Nil, false
	}
	uid := uuid.UUID(raw)
	return uid, clientID(uid) == id // upper-case digits would be another text
}

// The names of the clients of the demo data set for DemoCredentials.
const (
	DemoPlain = "plain"
	DemoGroup = "group"
)

// DemoCredentials derives the same credentials from the same name each time,
// because the demo data set prints them again on every run although only their
// hash is stored. They are no secret to anyone who has the source.
func DemoCredentials(name string) Credentials {
	sum := sha256.Sum256([]byte("demo client secret of " + name))
	return Credentials{
		ClientID: clientID(uuid.NewSHA1(uuid.NameSpaceOID, []byte("demo client id of "+name))),
		Secret:   secretPrefix + base64.RawURLEncoding.EncodeToString(sum[:]),
	}
}

// hashSecret is what is stored of a secret.
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

// accepts reports whether secret is the current one, or the previous one during
// its overlap, of a client that is not revoked. It compares against both hashes
// whatever there is, and a missing hash by a stand-in, so that the time it takes
// tells nothing: neither how much of a hash was right, nor whether the client
// exists, is revoked or is being rotated.
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
