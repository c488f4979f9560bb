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

// plainHeaders are the request headers whose values the log shows. Everything
// else was chosen by a partner and may be a credential, whatever its name.
var plainHeaders = []string{
	"accept", "accept-charset", "accept-encoding", "accept-language", "cache-control",
	"content-encoding", "content-language", "content-length", "content-type", "host",
	"origin", "pragma", "referer", "te", "traceparent", "tracestate", "user-agent",
	headerSignature, headerPrevious,
}

// secretWords in the name of a custom header mark its value as a credential.
var secretWords = []string{
	"auth", "cookie", "credential", "key", "pass", "secret", "signature", "token",
}

// maskValue returns what the log shows as the value of a request header. A
// signature is shown: it helps to find a mistake and does not reveal its key.
func maskValue(h Header) string {
	name := strings.ToLower(h.Name)
	if h.Value == "" || slices.Contains(plainHeaders, name) || strings.HasPrefix(name, ownPrefix) {
		return h.Value
	}
	if name == headerAuthorization {
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
		name := strings.ToLower(header.Name)
		if slices.Contains(plainHeaders, name) || !soundsSecret(name) {
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

// soundsSecret reports whether a header's name says that it holds a credential.
func soundsSecret(name string) bool {
	return slices.ContainsFunc(secretWords, func(w string) bool { return strings.Contains(name, w) })
}

// hide masks the secrets in text that an endpoint sent.
func (s secretTexts) hide(text string) string {
	for _, known := range s {
		text = strings.ReplaceAll(text, known, masked)
	}
	return text
}
