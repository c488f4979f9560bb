package sender

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"unicode/utf16"

	"drawbridge/internal/secret"
)

// echoes are the ways in which an answer may contain a secret.
var echoes = map[string]func(string) string{
	"plain":          func(s string) string { return s },
	"query":          url.QueryEscape,
	"path":           url.PathEscape,
	"percent":        func(s string) string { return eachByte(s, "%%%02x") },
	"JSON":           func(s string) string { return string(must(json.Marshal(s))) },
	"JSON, escaped":  func(s string) string { return eachUnit(s, `\u%04X`) },
	"JSON, slashes":  func(s string) string { return strings.ReplaceAll(s, "/", `\/`) },
	"HTML":           html.EscapeString,
	"HTML, decimal":  func(s string) string { return eachRune(s, "&#%d;") },
	"HTML, hex":      func(s string) string { return eachRune(s, "&#x%02x;") },
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
	"base64, slashes":      func(s string) string { return strings.ReplaceAll(inBase(s), "/", `\/`) },
	"base64, query":        func(s string) string { return url.QueryEscape(inBase(s)) },
	"base64, JSON escaped": func(s string) string { return eachByte(inBase(s), `\u%04x`) },
	"base64, HTML": func(s string) string {
		return strings.NewReplacer("+", "&#43;", "/", "&sol;", "=", "&#x3d;").Replace(inBase(s))
	},
	"base64, 60 columns":    func(s string) string { return inLines(inBase(s), 60, "\n") },
	"base64, 76 columns":    func(s string) string { return inLines(inBase(s), 76, "\r\n") },
	"base64, 8 columns":     func(s string) string { return inLines(inBase(s), 8, "\r\n ") },
	"base64, lines in JSON": func(s string) string { return inLines(inBase(s), 8, `\r\n`) },
	"base64, lines in query": func(s string) string {
		return url.QueryEscape(inLines(inBase(s), 8, "\n"))
	},
}

func inBase(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }

// inLines breaks a text into lines of a fixed length, as MIME does.
func inLines(text string, columns int, end string) string {
	var out strings.Builder
	for ; len(text) > columns; text = text[columns:] {
		out.WriteString(text[:columns] + end)
	}
	return out.String() + text
}

// showsBase64 reports whether a text shows a part of a secret in base64, across lines and
// with some characters escaped.
func showsBase64(text, known string) bool {
	bare := strings.NewReplacer("\r", "", "\n", "", " ", "", `\r`, "", `\n`, "", `\`, "", "%0A", "",
		"%0D", "", "%2B", "+", "%2F", "/", "%20", "").Replace(text)
	const few = 8
	for encoded := inBase(known); len(encoded) > few+4; encoded = encoded[1:] {
		if strings.Contains(bare, encoded[:few]) {
			return true
		}
	}
	return false
}

func eachByte(s, format string) string {
	var out strings.Builder
	for _, b := range []byte(s) {
		fmt.Fprintf(&out, format, b)
	}
	return out.String()
}

func eachRune(s, format string) string {
	var out strings.Builder
	for _, char := range s {
		fmt.Fprintf(&out, format, char)
	}
	return out.String()
}

// eachUnit formats each UTF-16 unit, as JSON escapes characters.
func eachUnit(s, format string) string {
	var out strings.Builder
	for _, unit := range utf16.Encode([]rune(s)) {
		fmt.Fprintf(&out, format, unit)
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
		"tok???>>>?secret?ok-0987654321-abcdefghijklmnop?", strings.Repeat("long?>~", 30),
		"Zażółć gęślą jaźń", "🔑 <klucz> 😀",
	} {
		secrets := secretsOf(Request{Secret: secret.New(known)})
		for name, echo := range echoes {
			got := secrets.hide("before " + echo(known) + " after")
			if !strings.HasPrefix(got, "before ") || !strings.HasSuffix(got, " after") ||
				!strings.Contains(got, Masked) {
				t.Errorf("%s of %q became %q", name, known, got)
			}
			if showsBase64(got, known) {
				t.Errorf("%s of %q shows in %q", name, known, got)
			}
			for other, look := range echoes {
				if strings.Contains(got, look(known)) {
					t.Errorf("%s of %q still shows in the form %s: %q", name, known, other, got)
				}
			}
		}
	}
}

// A text without a secret is unchanged.
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

// Some endpoints decode Basic credentials.
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

// The kept part of an answer is cut after masking: half a secret would not be recognised.
func TestNoPartOfASecretIsKept(t *testing.T) {
	t.Parallel()
	const part = "AbCd1234AbCd"
	token := "tok_" + strings.Repeat("AbCd1234", 30)
	key := strings.Repeat("Kk09", maxHeaderValue/4)
	head := func(line string) string {
		return "HTTP/1.1 200 OK\r\n" + line + "\r\nContent-Length: 0\r\n\r\n"
	}
	garbage := "HTTP/9" + strings.Repeat("p", maxErrorText-270)
	body := func(text string) string {
		return "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + text
	}
	for name, answer := range map[string]string{
		"header across the edge": head("x-echo: " + strings.Repeat("p", maxHeaderValue-200) + token),
		"longest header":         head("x-echo: x-key=" + key),
		"encoding":               head("content-encoding: " + token),
		"status line":            garbage + token + " 200 OK\r\n\r\n",
		"body that repeats it":   body(strings.Repeat("Bearer "+token+"\n", 400)),
		"a body that repeats it in base64": body(strings.Repeat(
			base64.StdEncoding.EncodeToString([]byte(token))+"\n", 400)),
		"body that repeats it in lines": body(strings.Repeat(
			inLines(inBase(token), 60, "\r\n")+"\n", 400)),
		"body that breaks off in lines": "HTTP/1.1 200 OK\r\nContent-Length: 999\r\n\r\n" +
			inLines(inBase(token), 8, `\n`)[:205],
		"body that breaks off in an escape": "HTTP/1.1 200 OK\r\nContent-Length: 999\r\n\r\n" +
			eachByte(inBase(token), "%%%02x")[:101],
		"body that breaks off in a longer escape": "HTTP/1.1 200 OK\r\nContent-Length: 999\r\n\r\n" +
			eachRune(inBase(token), `\u%04x`)[:101],
		"body that breaks off after no escape": "HTTP/1.1 200 OK\r\nContent-Length: 999\r\n\r\n" +
			"100 % " + inBase(token)[:9],
		"body that repeats it by percent": body(strings.Repeat(eachByte(token, "%%%02x")+"\n", 400)),
		"body that breaks off":            "HTTP/1.1 200 OK\r\nContent-Length: 999\r\n\r\n" + token[:200],
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			end := serve(t, nil, once(answer))
			r := hook(end.plain())
			r.Auth, r.Secret = AuthBearer, secret.New(token)
			r.Headers = []Header{{Name: "x-key", Value: key}}
			a := newTestSender(t, nil).Send(t.Context(), r)
			kept := fmt.Sprint(a.ResponseHeaders, a.Error, a.Note, string(a.ResponseBody))
			for _, known := range []string{
				part, strings.ToLower(part), "Kk09Kk09Kk09", eachByte(part, "%%%02x"),
				inBase(token)[:12], inBase(token)[:8], eachByte(inBase(token)[:4], "%%%02x"),
			} {
				if _, after, found := strings.Cut(kept, known); found {
					t.Errorf("%q is kept, before %.200s", known, after)
				}
			}
			if !strings.Contains(kept, Masked) {
				t.Errorf("nothing is masked in %.200q", kept)
			}
		})
	}
}

// A text that resembles a secret almost everywhere is not searched to its end.
func TestSearchForSecretsIsBounded(t *testing.T) {
	t.Parallel()
	known := strings.Repeat("a", maxHeaderValue-1) + "b"
	r := Request{}
	for i := range 50 {
		r.Headers = append(r.Headers, Header{Name: fmt.Sprint("x-", i), Value: known[i:]})
	}
	text := strings.Repeat("a", maxBody+maxEcho)
	if got := secretsOf(r).mask(text, false); strings.Contains(got, "a") {
		t.Errorf("became %.40q ... of %d bytes", got, len(got))
	}
	// One bound applies to all headers of an answer together.
	header := http.Header{}
	for i := range maxLogHeaders {
		header.Set(fmt.Sprint("x-", i), strings.Repeat(`\`, 255))
	}
	fields, _ := logHeaders(header, secretsOf(Request{Secret: secret.New(strings.Repeat(`\`, 256))}))
	if last := fields[len(fields)-1]; last.Value != Masked {
		t.Errorf("the last of %d headers became %.40q", len(fields), last.Value)
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
		if len(known) < minRedacted || strings.ContainsAny(known, Masked) {
			return
		}
		for name, echo := range echoes {
			if got := secrets.hide(echo(known)); strings.HasPrefix(name, "base64") &&
				showsBase64(got, known) {
				t.Errorf("%s of %q shows in %q", name, known, got)
			}
		}
	})
}
