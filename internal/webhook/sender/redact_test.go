package sender

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"net/url"
	"strings"
	"testing"

	"drawbridge/internal/secret"
)

// echoes are the ways in which an answer may hold a secret.
var echoes = map[string]func(string) string{
	"plain":          func(s string) string { return s },
	"query":          url.QueryEscape,
	"path":           url.PathEscape,
	"percent":        func(s string) string { return eachByte(s, "%%%02x") },
	"JSON":           func(s string) string { return string(must(json.Marshal(s))) },
	"JSON, escaped":  func(s string) string { return eachByte(s, `\u%04X`) },
	"JSON, slashes":  func(s string) string { return strings.ReplaceAll(s, "/", `\/`) },
	"HTML":           html.EscapeString,
	"HTML, decimal":  func(s string) string { return eachByte(s, "&#%d;") },
	"HTML, hex":      func(s string) string { return eachByte(s, "&#x%02x;") },
	"base64":         func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) },
	"base64 for URL": func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) },
	"base64 of JSON": func(s string) string {
		return base64.StdEncoding.EncodeToString([]byte(`{"a":"` + s + `"}`))
	},
	"base64 of more": func(s string) string {
		return base64.StdEncoding.EncodeToString([]byte("Bearer " + s + " and more"))
	},
	"base64 of less": func(s string) string {
		return base64.StdEncoding.EncodeToString([]byte("ab" + s))
	},
}

func eachByte(s, format string) string {
	var out strings.Builder
	for _, b := range []byte(s) {
		fmt.Fprintf(&out, format, b)
	}
	return out.String()
}

func must(encoded []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return encoded
}

func TestHideEveryEncoding(t *testing.T) {
	t.Parallel()
	for _, known := range []string{
		"sekr", "a token with spaces/and+signs=", `quo"te\d <&> '%41%25'`, "%25x%2541", "+%2B&amp;",
	} {
		secrets := secretsOf(Request{Secret: secret.New(known)})
		for name, echo := range echoes {
			got := secrets.hide("before " + echo(known) + " after")
			if !strings.HasPrefix(got, "before ") || !strings.HasSuffix(got, " after") ||
				!strings.Contains(got, Masked) {
				t.Errorf("%s of %q became %q", name, known, got)
			}
			for other, look := range echoes {
				if strings.Contains(got, look(known)) {
					t.Errorf("%s of %q still shows in the form %s: %q", name, known, other, got)
				}
			}
		}
	}
}

// What holds no secret stays as it came.
func TestHideLeavesOtherTexts(t *testing.T) {
	t.Parallel()
	secrets := secretsOf(Request{
		Secret: secret.New("0123456789abcdef"),
		Headers: []Header{
			{Name: "x-tenant", Value: "abc"}, {Name: "accept", Value: "application/json", Plain: true},
		},
	})
	for _, text := range []string{
		"", "ok", `{"tenant":"abc","accept":"application/json"}`, "100 %", `\`, "&#;",
		"%zz &nosuch; \\u12", "0123456789abcde", "MDEyMzQ1Njc4OWFiY2Rl",
	} {
		if got := secrets.hide(text); got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
}

// Some endpoints decode what Basic credentials hold.
func TestHideBasicCredentials(t *testing.T) {
	t.Parallel()
	pair := base64.StdEncoding.EncodeToString([]byte("merchant:open sesame"))
	secrets := secretsOf(Request{Headers: []Header{{Name: "Authorization", Value: "Basic " + pair}}})
	for _, text := range []string{pair, "merchant:open sesame", "password=open+sesame"} {
		if got := secrets.hide(text); strings.Contains(got, "sesame") || strings.Contains(got, pair) {
			t.Errorf("%q became %q", text, got)
		}
	}
}

func FuzzHide(f *testing.F) {
	for _, echo := range echoes {
		f.Add("before "+echo("open se/same%25")+" after", "open se/same%25")
	}
	f.Add("%", "%%%%")
	f.Add(`\u00`, `\u00`)
	f.Add("&#x110000;", "abcd")
	f.Fuzz(func(t *testing.T, text, known string) {
		secrets := secretsOf(Request{Secret: secret.New(known)})
		got := secrets.hide(text)
		if len(known) >= minRedacted && strings.Contains(got, known) &&
			!strings.ContainsAny(known, Masked) {
			t.Errorf("%q still shows %q", got, known)
		}
	})
}
