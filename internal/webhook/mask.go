package webhook

import (
	"slices"
	"strings"

	"drawbridge/internal/secret"
)

// masked stands where a secret value was.
const masked = "[hidden]"

// minRedacted is the shortest secret that is searched for in an answer: a
// shorter one would turn up in ordinary text by chance.
const minRedacted = 8

// secretWords in the name of a custom header mark its value as a credential.
var secretWords = []string{
	"auth", "authorization", "key", "apikey", "token", "secret", "password", "pin", "cookie",
	"session", "signature", "credential",
}

// maskValue returns what is shown as the value of a request header.
func maskValue(h Header) string {
	if h.Value == "" || h.Plain {
		return h.Value
	}
	if strings.EqualFold(h.Name, headerAuthorization) {
		scheme, _, found := strings.Cut(h.Value, " ")
		if found && slices.Contains([]string{"basic", "bearer", "digest"}, strings.ToLower(scheme)) {
			return scheme + " " + masked
		}
	}
	return masked
}

// Mask returns a copy of request headers with secret values masked.
func Mask(headers []Header) []Header {
	safe := make([]Header, len(headers))
	for i, header := range headers {
		safe[i] = Header{Name: header.Name, Value: maskValue(header)}
	}
	return safe
}

// secretTexts are the secrets of a request as they would look in an answer.
type secretTexts []string

// secretsOf collects them: some endpoints echo the headers that they received.
func secretsOf(r Request) secretTexts {
	var texts secretTexts
	add := func(text string) {
		if len(text) >= minRedacted {
			texts = append(texts, text)
		}
	}
	for _, s := range []secret.String{r.Secret, r.Previous} {
		add(s.Reveal())
	}
	for _, header := range r.Headers {
		if header.Plain {
			continue
		}
		add(header.Value)
		// "Bearer abc" and "Basic abc" hold the credential behind the scheme.
		if _, credential, found := strings.Cut(header.Value, " "); found {
			add(credential)
		}
	}
	return texts
}

// soundsSecret reports whether a word of a header's name says that it holds a
// credential.
func soundsSecret(name string) bool {
	words := strings.FieldsFunc(strings.ToLower(name), func(r rune) bool {
		return r == '-' || r == '_'
	})
	return slices.ContainsFunc(words, func(w string) bool { return slices.Contains(secretWords, w) })
}

// hide masks the secrets in text that an endpoint sent.
func (s secretTexts) hide(text string) string {
	for _, known := range s {
		text = strings.ReplaceAll(text, known, masked)
	}
	return text
}
