package webhook

import (
	"slices"
	"strings"
)

// masked stands where a secret value was.
const masked = "[hidden]"

// plainHeaders are the request headers whose values the log shows. Everything
// else was chosen by a partner and may be a credential, whatever its name.
var plainHeaders = []string{
	"accept", "accept-charset", "accept-encoding", "accept-language", "cache-control",
	"content-encoding", "content-language", "content-length", "content-type", "host",
	"origin", "pragma", "referer", "te", "traceparent", "tracestate", "user-agent",
	headerSignature, headerPrevious,
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
