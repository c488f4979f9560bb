package lending_test

import (
	"errors"
	"strings"
	"testing"

	"drawbridge/internal/lending"
)

func TestFaultsText(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, text, want, fault string
	}{
		{"plain", "Acme Solar", "Acme Solar", ""},
		{"surrounding space goes", "  Acme \t", "Acme", ""},
		{"umlauts count once each", strings.Repeat("ü", 10), strings.Repeat("ü", 10), ""},
		{"empty", "", "", `"name" is required`},
		{"only space", " \n ", "", `"name" is required`},
		{"too long", strings.Repeat("a", 11), "", `"name" must have at most 10 characters`},
		{"line break", "a\nb", "", `"name" must be one line without control characters`},
		{"NUL", "a\x00b", "", `"name" must be one line without control characters`},
		{"Latin-1", "caf\xe9", "", `"name" must be UTF-8 text`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var faults lending.Faults
			got := faults.Text("name", test.text, 10)
			if test.fault == "" {
				if err := faults.Err(); err != nil || got != test.want {
					t.Fatalf("got %q, %v; want %q", got, err, test.want)
				}
				return
			}
			refusal, ok := errors.AsType[*lending.Error](faults.Err())
			if !ok || refusal.Message != test.fault || refusal.Details[0].Field != "name" {
				t.Fatalf("got %+v, want %q", refusal, test.fault)
			}
		})
	}
}
