package sender

import (
	"slices"
	"strings"
)

// Masked replaces a secret value.
const Masked = "[hidden]"

// secretWords in the name of a custom header mark its value as a credential.
var secretWords = []string{
	"auth", "authorization", "key", "apikey", "token", "secret", "password", "pin", "cookie",
	"session", "signature", "credential",
}

// MaskValue returns the value of a request header as it may be shown.
func MaskValue(h Header) string {
	if h.Value == "" || h.Plain {
		return h.Value
	}
	if strings.EqualFold(h.Name, headerAuthorization) {
		scheme, _, found := strings.Cut(h.Value, " ")
		if found && slices.Contains([]string{"basic", "bearer", "digest"}, strings.ToLower(scheme)) {
			return scheme + " " + Masked
		}
	}
	return Masked
}

// Mask returns a copy of request headers with secret values masked.
func Mask(headers []Header) []Header {
	safe := make([]Header, len(headers))
	for i, header := range headers {
		safe[i] = Header{Name: header.Name, Value: MaskValue(header)}
	}
	return safe
}

// IsMasked reports whether a logged header value hides a secret.
func IsMasked(value string) bool { return strings.Contains(value, Masked) }
