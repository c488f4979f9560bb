package idempotency_test

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"testing"

	"drawbridge/internal/idempotency"
	"drawbridge/internal/lending"
)

func digest(content string) [sha256.Size]byte { return sha256.Sum256([]byte(content)) }

func TestParseKey(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		values []string
		want   string
		ok     bool
	}{
		{"none", nil, "", true},
		{
			"a UUID",
			[]string{"7b8f2d1c-5a94-4c0e-8f2a-1b3c5d7e9f01"},
			"7b8f2d1c-5a94-4c0e-8f2a-1b3c5d7e9f01", true,
		},
		{"one character", []string{"!"}, "!", true},
		{"last visible one", []string{"~"}, "~", true},
		{"255 characters", []string{strings.Repeat("k", 255)}, strings.Repeat("k", 255), true},
		{"256 characters", []string{strings.Repeat("k", 256)}, "", false},
		{"empty", []string{""}, "", false},
		{"space", []string{"a b"}, "", false},
		{"tab", []string{"a\tb"}, "", false},
		{"NUL", []string{"a\x00"}, "", false},
		{"delete", []string{"a\x7f"}, "", false},
		{"umlaut", []string{"schlüssel"}, "", false},
		{"not UTF-8", []string{"\xff"}, "", false},
		{"twice", []string{"a", "a"}, "", false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got, err := idempotency.ParseKey(test.values)
			if got != test.want || (err == nil) != test.ok {
				t.Errorf("got %q, %v, want %q", got, err, test.want)
			}
			if err != nil {
				wantCode(t, err, lending.CodeValidation)
				if !strings.Contains(err.Error(), `"Idempotency-Key"`) {
					t.Errorf("%q does not name the header", err)
				}
			}
		})
	}
}

// fingerprint returns the fingerprint in the current encoding.
func fingerprint(method, path, content string) [sha256.Size]byte {
	return idempotency.NewFingerprint(method, path, digest(content))[0]
}

func TestFingerprintTellsRequestsApart(t *testing.T) {
	t.Parallel()
	base := fingerprint("POST", "/v2/application", "{}")
	if again := fingerprint("POST", "/v2/application", "{}"); again != base {
		t.Error("the same request has another fingerprint")
	}
	others := map[string][sha256.Size]byte{
		"method":       fingerprint("PUT", "/v2/application", "{}"),
		"path":         fingerprint("POST", "/v2/application/x", "{}"),
		"content":      fingerprint("POST", "/v2/application", "{ }"),
		"moved border": fingerprint("POST/", "v2/application", "{}"),
	}
	for name, other := range others {
		if other == base {
			t.Errorf("another %s has the same fingerprint", name)
		}
	}
}

// TestFingerprintIsAsStored has the hash that release 0.1.0 stored for a draw. A change of this
// hash loses the keys of every earlier release.
func TestFingerprintIsAsStored(t *testing.T) {
	t.Parallel()
	const empty = "1dc3de5b9ba593b4405768641444b6fffda168c1182e678f23dab1de14d0eeae"
	content, err := hex.DecodeString(empty)
	if err != nil {
		t.Fatal(err)
	}
	got := idempotency.NewFingerprint("POST", "/v2/loan/:uid/request-draw?uid=x&id=",
		[sha256.Size]byte(content))
	const want = "07cbbbe985d6e462a46778f8eaf11c339ce53632c8fecb1598a71eefe7b3f2f1"
	if hex.EncodeToString(got[0][:]) != want {
		t.Errorf("fingerprint %x, want %s", got[0], want)
	}
}
