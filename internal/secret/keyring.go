package secret

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
)

const (
	// keyScheme begins every local key; the name is the one that keeper URLs use.
	keyScheme = "base64key://"
	keyBytes  = 32
	// keyIDBytes of the key's hash name it. Four are enough to distinguish the few keys of one
	// installation and reveal nothing useful about the key.
	keyIDBytes = 4
	// sealVersion begins every encrypted value, so that another format can follow.
	sealVersion = "v1"
)

// Errors that Open returns, wrapped with the location of the value.
var (
	// ErrUnknownKey: the value was encrypted with a key that is not in the ring.
	ErrUnknownKey = errors.New("no key of the key ring has sealed it")
	// ErrCorrupt: the value was not made by Seal for this location. It was damaged, truncated, or
	// copied from another row, column or table.
	ErrCorrupt = errors.New("it does not open: damaged, or moved from another place")
)

// UnknownKeyError names the key that a value was encrypted with and that is not in the ring. It is
// an ErrUnknownKey.
type UnknownKeyError struct{ ID string }

// Error names the key by its id.
func (e *UnknownKeyError) Error() string { return "key id " + e.ID + ": " + ErrUnknownKey.Error() }

// Unwrap returns ErrUnknownKey.
func (e *UnknownKeyError) Unwrap() error { return ErrUnknownKey }

// Keyring encrypts with its first key and decrypts with all of them. It is safe for concurrent use
// and cannot be changed.
type Keyring struct {
	keys []key
}

// key is one AES-256-GCM key, named by the start of its hash.
type key struct {
	id      string
	aead    cipher.AEAD
	trivial bool
}

// ParseKeyring parses keys of the form "base64key://KEY", several separated by commas: the first
// encrypts, all decrypt. KEY is 32 bytes in base64, standard or URL-safe, padded or not; the scheme
// may be left out after the first key. The error names the position of the wrong key and never its
// text.
func ParseKeyring(raw string) (*Keyring, error) {
	ring := &Keyring{}
	for i, part := range strings.Split(raw, ",") {
		parsed, err := parseKey(strings.TrimSpace(part), i == 0)
		if err != nil {
			return nil, fmt.Errorf("key %d %w", i+1, err)
		}
		if ring.find(parsed.id) != nil {
			return nil, fmt.Errorf("key %d is given twice", i+1)
		}
		ring.keys = append(ring.keys, parsed)
	}
	return ring, nil
}

// GenerateKey returns a new random key in the form that ParseKeyring accepts.
func GenerateKey() string {
	random := make([]byte, keyBytes)
	rand.Read(random) // never fails: crypto/rand ends the process instead
	return keyScheme + base64.StdEncoding.EncodeToString(random)
}

// parseKey parses one key. Its errors continue a sentence that begins "key 2".
func parseKey(part string, needScheme bool) (key, error) {
	text, found := strings.CutPrefix(part, keyScheme)
	if !found && (needScheme || strings.Contains(part, "://")) {
		return key{}, fmt.Errorf("must begin with %s", keyScheme)
	}
	// Both base64 alphabets are accepted, because openssl writes one and keeper URLs are documented
	// with the other.
	text = strings.NewReplacer("-", "+", "_", "/").Replace(strings.TrimRight(text, "="))
	// The decoder's own error is left out: it shows where the text is wrong.
	material, err := base64.RawStdEncoding.Strict().DecodeString(text)
	if err != nil {
		return key{}, errors.New("is not base64; make one: openssl rand -base64 32")
	}
	if len(material) != keyBytes {
		return key{}, fmt.Errorf("has %d bytes and must have %d; make one: openssl rand -base64 32",
			len(material), keyBytes)
	}
	block, err := aes.NewCipher(material)
	if err != nil {
		return key{}, fmt.Errorf("cannot be used: %w", err)
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		return key{}, fmt.Errorf("cannot be used: %w", err)
	}
	sum := sha256.Sum256(append([]byte("drawbridge key id "), material...))
	return key{
		id: hex.EncodeToString(sum[:keyIDBytes]), aead: aead,
		trivial: slices.Max(material) == slices.Min(material),
	}, nil
}

// Trivial reports whether a key of the ring is one byte repeated, which is easy to guess: good
// enough to try things out, and for nothing else.
func (r *Keyring) Trivial() bool {
	return slices.ContainsFunc(r.keys, func(k key) bool { return k.trivial })
}

// Current returns the id of the key that encrypts.
func (r *Keyring) Current() string { return r.keys[0].id }

// IDs returns the ids of all keys, the encrypting one first.
func (r *Keyring) IDs() []string {
	ids := make([]string, len(r.keys))
	for i, k := range r.keys {
		ids[i] = k.id
	}
	return ids
}

// Seal encrypts plain for one location: table, column and the row's id. The result is printable
// ASCII that names its key.
func (r *Keyring) Seal(plain []byte, table, column, rowID string) string {
	k := r.keys[0]
	//nolint:gosec // this AEAD makes its own random nonce and takes none
	box := k.aead.Seal(nil, nil, plain, place(k.id, table, column, rowID))
	return sealVersion + "." + k.id + "." + base64.RawURLEncoding.EncodeToString(box)
}

// Open decrypts a value that Seal made for the same location. Errors wrap ErrUnknownKey or
// ErrCorrupt.
func (r *Keyring) Open(sealed, table, column, rowID string) ([]byte, error) {
	plain, err := r.open(sealed, table, column, rowID)
	if err != nil {
		return nil, fmt.Errorf("opening %s.%s of row %s: %w", table, column, rowID, err)
	}
	return plain, nil
}

func (r *Keyring) open(sealed, table, column, rowID string) ([]byte, error) {
	id, encoded, ok := split(sealed)
	if !ok {
		return nil, ErrCorrupt
	}
	k := r.find(id)
	if k == nil {
		return nil, &UnknownKeyError{ID: id}
	}
	box, err := base64.RawURLEncoding.Strict().DecodeString(encoded)
	if err != nil {
		return nil, ErrCorrupt
	}
	plain, err := k.aead.Open(nil, nil, box, place(id, table, column, rowID))
	if err != nil {
		return nil, ErrCorrupt
	}
	return plain, nil
}

// KeyID returns the id of the key that encrypted a value, and false for a value that Seal did not
// make.
func KeyID(sealed string) (string, bool) {
	id, _, ok := split(sealed)
	return id, ok
}

// split takes "v1.ID.BOX" apart; the id is checked so that an error may quote it.
func split(sealed string) (id, box string, ok bool) {
	version, rest, _ := strings.Cut(sealed, ".")
	id, box, found := strings.Cut(rest, ".")
	raw, err := hex.DecodeString(id)
	if !found || version != sealVersion || err != nil || len(raw) != keyIDBytes {
		return "", "", false
	}
	return id, box, id == strings.ToLower(id)
}

// find returns the key of that id, or nil.
func (r *Keyring) find(id string) *key {
	for i := range r.keys {
		if r.keys[i].id == id {
			return &r.keys[i]
		}
	}
	return nil
}

// place is the associated data: each part is preceded by its length, so that no two different
// locations give the same bytes.
func place(parts ...string) []byte {
	data := []byte(sealVersion)
	for _, part := range parts {
		data = binary.BigEndian.AppendUint32(data, uint32(len(part)))
		data = append(data, part...)
	}
	return data
}
