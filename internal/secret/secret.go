// Package secret keeps the values that must never be read by accident: the
// signing secrets and bearer tokens of webhook subscriptions.
//
// In memory they travel as [String], which every printer, logger and encoder
// shows as "[hidden]"; only Reveal gives the text, so that a search for Reveal
// lists each place that can leak one.
//
// At rest they are encrypted by a [Keyring]: AES-256-GCM under the first key, decrypted by any of
// them, so that a key is replaced by putting the new one in front, re-encrypting every value, and
// then dropping the old one. The table, the column and the row are authenticated with the value: a
// ciphertext copied to another row does not decrypt there.
//
// No error of this package quotes a key, a plain text or a ciphertext.
package secret

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"io"
	"log/slog"
	"time"
)

// hidden replaces a secret wherever it would be printed.
const hidden = "[hidden]"

// MaxOverlap is how long a replaced secret may stay valid at most, so that a typing slip does not
// keep a leaked one alive.
const MaxOverlap = 30 * 24 * time.Hour

// tokenBytes is the entropy of a generated token.
const tokenBytes = 32

// String is a text that prints as "[hidden]". The zero value is the empty secret, which means that
// there is none.
type String struct {
	// A pointer, because fmt cannot call the methods of an unexported field: a
	// struct that holds a String there prints this address, not the text.
	text *string
}

// New returns the secret that holds text.
func New(text string) String {
	if text == "" {
		return String{}
	}
	return String{text: &text}
}

// NewToken returns a secret of 32 random bytes in URL-safe base64 behind
// prefix, for example "whsec_".
func NewToken(prefix string) String {
	random := make([]byte, tokenBytes)
	rand.Read(random) // never fails: crypto/rand ends the process instead
	return New(prefix + base64.RawURLEncoding.EncodeToString(random))
}

// Reveal returns the text itself.
func (s String) Reveal() string {
	if s.text == nil {
		return ""
	}
	return *s.text
}

// IsZero reports whether there is no secret.
func (s String) IsZero() bool { return s.text == nil }

// Equal compares in a time that depends only on the lengths.
func (s String) Equal(other String) bool {
	return subtle.ConstantTimeCompare([]byte(s.Reveal()), []byte(other.Reveal())) == 1
}

// String returns "[hidden]", or the empty string of an empty secret.
func (s String) String() string {
	if s.IsZero() {
		return ""
	}
	return hidden
}

// GoString hides the text from %#v.
func (s String) GoString() string { return fmt.Sprintf("secret.String(%q)", s.String()) }

// Format hides the text from every verb, %x and %d included.
func (s String) Format(state fmt.State, verb rune) {
	if verb == 'v' && state.Flag('#') {
		_, _ = io.WriteString(state, s.GoString())
		return
	}
	_, _ = io.WriteString(state, s.String())
}

// MarshalText hides the text from text encoders and from map keys.
func (s String) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// MarshalJSON hides the text from JSON.
func (s String) MarshalJSON() ([]byte, error) { return []byte(`"` + s.String() + `"`), nil }

// LogValue hides the text from log/slog.
func (s String) LogValue() slog.Value { return slog.StringValue(s.String()) }

// Match is which of a subscription's secrets a pasted value equals.
type Match string

// The results of Compare.
const (
	MatchCurrent  Match = "current"
	MatchPrevious Match = "previous"
	MatchNone     Match = "none"
)

// Compare returns which secret the pasted value is without revealing either. An empty value or an
// empty secret matches nothing.
func Compare(pasted, current, previous String) Match {
	switch {
	case pasted.IsZero():
		return MatchNone
	case pasted.Equal(current):
		return MatchCurrent
	case pasted.Equal(previous):
		return MatchPrevious
	}
	return MatchNone
}
