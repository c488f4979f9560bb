package secret

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
)

const plain = "whsec_the-quick-brown-fox"

type holder struct {
	Public  String
	private String
	Nested  []String
	ByName  map[string]String
}

func TestStringIsHiddenFromEveryPrinter(t *testing.T) {
	t.Parallel()
	s := New(plain)
	held := holder{
		Public: s, private: s, Nested: []String{s}, ByName: map[string]String{"a": s},
	}
	values := map[string]any{
		"value": s, "pointer": &s, "struct": held, "pointer to struct": &held,
		"slice": []String{s}, "error": fmt.Errorf("saving %v: %w", s, errors.New("x")),
	}
	verbs := []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%T", "%p", "%t", "%c"}
	for name, value := range values {
		for _, verb := range verbs {
			if printed := fmt.Sprintf(verb, value); leaks(printed) {
				t.Errorf("%s printed by %s shows the secret: %s", name, verb, printed)
			}
		}
		if encoded, err := json.Marshal(value); err != nil || leaks(string(encoded)) {
			t.Errorf("%s as JSON: %s, %v", name, encoded, err)
		}
		var text, structured bytes.Buffer
		slog.New(slog.NewTextHandler(&text, nil)).Info("m", "k", value)
		slog.New(slog.NewJSONHandler(&structured, nil)).Info("m", "k", value)
		if leaks(text.String()) || leaks(structured.String()) {
			t.Errorf("%s in the log: %s %s", name, &text, &structured)
		}
	}
}

// leaks looks for the secret as text, in hexadecimal and as decimal bytes.
func leaks(printed string) bool {
	for _, form := range []string{"%s", "%x", "%X"} {
		if strings.Contains(printed, fmt.Sprintf(form, plain)) {
			return true
		}
	}
	return strings.Contains(printed, strings.Trim(fmt.Sprintf("%d", []byte(plain)), "[]"))
}

func TestStringIsHiddenFromPanics(t *testing.T) {
	t.Parallel()
	defer func() {
		if message := fmt.Sprint(recover()); leaks(message) {
			t.Errorf("the panic shows the secret: %s", message)
		}
	}()
	panic(holder{private: New(plain)})
}

func TestStringSaysWhetherThereIsOne(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, text, printed string
		zero                bool
	}{
		{"empty", "", "", true},
		{"set", plain, "[hidden]", false},
		{"the mask itself", "[hidden]", "[hidden]", false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := New(test.text)
			if s.Reveal() != test.text || s.String() != test.printed || s.IsZero() != test.zero {
				t.Errorf("Reveal %q, String %q, IsZero %v", s.Reveal(), s.String(), s.IsZero())
			}
			if !s.Equal(New(test.text)) || s.Equal(New(test.text+"x")) {
				t.Error("Equal compares something else than the text")
			}
		})
	}
}

func TestNewTokenIsRandomAndLong(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for range 1000 {
		token := NewToken("whsec_").Reveal()
		random, found := strings.CutPrefix(token, "whsec_")
		if !found || len(random) != 43 || strings.ContainsAny(random, "+/=") {
			t.Fatalf("token of %d characters behind the prefix, or not URL-safe", len(random))
		}
		if seen[token] {
			t.Fatal("a token came twice")
		}
		seen[token] = true
	}
}

func TestCompare(t *testing.T) {
	t.Parallel()
	current, previous := New("new-secret"), New("old-secret")
	tests := []struct {
		name              string
		pasted            String
		current, previous String
		want              Match
	}{
		{"current", New("new-secret"), current, previous, MatchCurrent},
		{"previous", New("old-secret"), current, previous, MatchPrevious},
		{"neither", New("other"), current, previous, MatchNone},
		{"longer", New("new-secret "), current, previous, MatchNone},
		{"nothing pasted", New(""), current, previous, MatchNone},
		{"nothing pasted, nothing stored", New(""), New(""), New(""), MatchNone},
		{"no previous", New("old-secret"), current, New(""), MatchNone},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if got := Compare(test.pasted, test.current, test.previous); got != test.want {
				t.Errorf("Compare = %q, want %q", got, test.want)
			}
		})
	}
}
