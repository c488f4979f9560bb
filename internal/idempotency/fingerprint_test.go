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

type formPart struct{ name, file, content string }

func sum(parts ...formPart) [sha256.Size]byte {
	var digests idempotency.Parts
	for _, part := range parts {
		digests.Add(part.name, part.file, digest(part.content))
	}
	return digests.Sum()
}

func TestPartsCountAndTheirFormDoesNot(t *testing.T) {
	t.Parallel()
	amount := formPart{"updatedLoanAmount", "", "9000.00"}
	first := formPart{"files", "a.pdf", "A"}
	second := formPart{"files", "b.pdf", "B"}
	base := sum(amount, first, second)
	tests := []struct {
		name  string
		parts []formPart
		same  bool
	}{
		{"the same", []formPart{amount, first, second}, true},
		{"names in another order", []formPart{first, second, amount}, true},
		{"names interleaved", []formPart{first, amount, second}, true},
		{"files in another order", []formPart{amount, second, first}, false},
		{"a part less", []formPart{amount, first}, false},
		{"a part twice", []formPart{amount, first, second, second}, false},
		{"another value", []formPart{{"updatedLoanAmount", "", "9000"}, first, second}, false},
		{"another file name", []formPart{amount, {"files", "c.pdf", "A"}, second}, false},
		{"another part name", []formPart{amount, {"file", "a.pdf", "A"}, second}, false},
		{"a file for a value", []formPart{{"updatedLoanAmount", "x", "9000.00"}, first, second}, false},
		{"nothing", nil, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if got := sum(test.parts...) == base; got != test.same {
				t.Errorf("same digest: %v, want %v", got, test.same)
			}
		})
	}
	var growing idempotency.Parts
	growing.Add("a", "", digest("1"))
	before := growing.Sum()
	if growing.Add("b", "", digest("2")); growing.Sum() == before {
		t.Error("a part that was added after Sum does not count")
	}
}
