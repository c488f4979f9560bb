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
		name, text, want, problem string
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
			var errs lending.FieldErrors
			got := errs.Text("name", test.text, 10)
			if test.problem == "" {
				if err := errs.Err(); err != nil || got != test.want {
					t.Fatalf("got %q, %v; want %q", got, err, test.want)
				}
				return
			}
			refusal, ok := errors.AsType[*lending.Error](errs.Err())
			if !ok || refusal.Message != test.problem || refusal.Details[0].Field != "name" {
				t.Fatalf("got %+v, want %q", refusal, test.problem)
			}
		})
	}
}
