package idempotency_test

import (
	"crypto/sha256"
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

func TestFingerprintTellsRequestsApart(t *testing.T) {
	t.Parallel()
	base := idempotency.Fingerprint("POST", "/v2/application", digest("{}"))
	if again := idempotency.Fingerprint("POST", "/v2/application", digest("{}")); again != base {
		t.Error("the same request has another fingerprint")
	}
	others := map[string][sha256.Size]byte{
		"method":       idempotency.Fingerprint("PUT", "/v2/application", digest("{}")),
		"path":         idempotency.Fingerprint("POST", "/v2/application/x", digest("{}")),
		"content":      idempotency.Fingerprint("POST", "/v2/application", digest("{ }")),
		"moved border": idempotency.Fingerprint("POST/", "v2/application", digest("{}")),
	}
	for name, other := range others {
		if other == base {
			t.Errorf("another %s has the same fingerprint", name)
		}
	}
}
