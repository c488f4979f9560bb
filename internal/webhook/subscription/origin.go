package subscription

import (
	"fmt"
	"net"
	"net/url"
	"strings"

	"drawbridge/internal/lending"
	"drawbridge/internal/webhook/sender"
)

// SameOrigin reports whether two addresses have the same scheme, host and port, ignoring
// the case of the host and whether a default port is written out.
func SameOrigin(one, other string) bool {
	a, b := originOf(one), originOf(other)
	return a == b && a != ""
}

// originOf returns an address without its path; empty if it is not a URL.
func originOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return u.Scheme + "://" + net.JoinHostPort(strings.ToLower(u.Hostname()), port)
}

// checkMove refuses to send stored credentials to another scheme, host or port, where
// they might be read. settings are the wanted ones, normalised by check; rotate means
// that they include another secret. A signing secret may stay: it is never sent.
func (s Settings) checkMove(current Subscription, rotate bool) error {
	if SameOrigin(current.URL, s.URL) {
		return nil
	}
	var errs lending.FieldErrors
	if s.Auth == sender.AuthBearer && !rotate {
		errs.Add("secret", `"secret" must be given again: a stored token does not move to `+
			"another scheme, host or port")
	}
	for i, header := range s.Headers {
		if header.Kept && !header.Plain && header.Value != "" {
			errs.Add(fmt.Sprintf("headers[%d].value", i), "the value of header %q must be given "+
				"again: a stored secret value does not move to another scheme, host or port", header.Name)
		}
	}
	if len(errs) == 0 {
		return nil
	}
	// The request is not invalid in itself.
	return &lending.Error{Code: lending.CodeInvalidState, Message: errs[0].Message, Details: errs}
}

// keepHeaders fills in the stored values of headers marked Kept. It returns
// VALIDATION_ERROR for one that is not stored, and for one that would reveal a secret
// value.
func keepHeaders(wanted, stored []sender.Header) ([]sender.Header, error) {
	kept := make([]sender.Header, len(wanted))
	var errs lending.FieldErrors
	for i, header := range wanted {
		kept[i] = header
		if !header.Kept {
			continue
		}
		now, found := findHeader(stored, strings.ToLower(header.Name))
		field := fmt.Sprintf("headers[%d].value", i)
		switch {
		case !found:
			errs.Add(field, "there is no stored value of header %q to keep; give one", header.Name)
		case header.Plain && !now.Plain:
			errs.Add(field, "the stored value of header %q is secret; give it again to make it plain",
				header.Name)
		}
		kept[i].Value, kept[i].Plain = now.Value, now.Plain
	}
	return kept, errs.Err()
}

// allKept marks all headers as Kept.
func allKept(headers []sender.Header) []sender.Header {
	kept := make([]sender.Header, len(headers))
	for i, header := range headers {
		kept[i] = header
		kept[i].Kept = true
	}
	return kept
}
