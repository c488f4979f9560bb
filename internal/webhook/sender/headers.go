package sender

import (
	"encoding/base64"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/http/httpguts"

	"drawbridge/internal/lending"
)

// The bounds of custom headers.
const (
	maxHeaders     = 50
	maxHeaderName  = 256
	maxHeaderValue = 4096
)

// The headers that Drawbridge itself sends.
const (
	headerAuthorization = "authorization"
	HeaderSignature     = "x-hmac-signature"
	headerPrevious      = "x-hmac-signature-previous"
	// ownPrefix is Drawbridge's own, standardPrefix that of Standard Webhooks. Custom
	// headers may use neither.
	ownPrefix      = "x-drawbridge-"
	standardPrefix = "webhook-"
)

// forbiddenHeaders cannot be set (specification section 5): they frame the message or
// choose its receiver. Other connection headers, such as upgrade, have no effect without
// these and are allowed.
var forbiddenHeaders = []string{"host", "content-length", "connection", "transfer-encoding"}

// http1Headers are not allowed in HTTP/2 (RFC 9113 section 8.2.2). Deliveries that carry
// one go over HTTP/1.1, so that exactly the configured headers are sent.
var http1Headers = []string{"keep-alive", "proxy-connection", "te", "upgrade"}

// Header is one header field. It prints with its value masked unless it is plain,
// because partners put API keys into custom headers; JSON shows the value.
type Header struct {
	// Name is in lower case once CheckHeaders has accepted it.
	Name string `json:"name"`
	// Value may be empty.
	Value string `json:"value"`
	// Plain means that the value may be shown. Any other value is write-only, including
	// those that an older release stored.
	Plain bool `json:"plain,omitempty"`
	// Kept, in a request to change headers, stands for the stored value of that name.
	Kept bool `json:"-"`
}

// String returns the header with a secret value masked.
func (h Header) String() string { return h.Name + ": " + MaskValue(h) }

// GoString masks as String does.
func (h Header) GoString() string { return fmt.Sprintf("webhook.Header(%q)", h.String()) }

// LogValue masks as String does.
func (h Header) LogValue() slog.Value { return slog.StringValue(h.String()) }

// ParseHeader parses a header as operators type it, "Name: value"; it is plain unless its
// name suggests a secret. The result still has to pass CheckHeaders. The error is a
// VALIDATION_ERROR of the field "header" and does not quote the line, which may contain a
// key.
func ParseHeader(line string) (Header, error) {
	name, value, found := strings.Cut(line, ":")
	if !found {
		return Header{}, lending.Invalid("header",
			`"header" has no colon; write it like "x-api-key: value"`)
	}
	name = strings.TrimSpace(name)
	words := strings.FieldsFunc(strings.ToLower(name), func(r rune) bool {
		return r == '-' || r == '_'
	})
	isSecret := slices.ContainsFunc(words, func(w string) bool {
		return slices.Contains(secretWords, w)
	})
	return Header{Name: name, Value: trimValue(value), Plain: !isSecret}, nil
}

// CheckHeaders checks the custom headers of a subscription and returns them in the order
// given, names in lower case and values without surrounding white space, which HTTP does
// not transmit. The error is a VALIDATION_ERROR that names each wrong one as
// headers[0].name or headers[0].value.
func CheckHeaders(headers []Header) ([]Header, error) {
	var errs lending.FieldErrors
	if len(headers) > maxHeaders {
		errs.Add("headers", "%d headers were given; at most %d are allowed", len(headers), maxHeaders)
		return nil, errs.Err()
	}
	valid := make([]Header, len(headers))
	seen := make(map[string]bool, len(headers))
	for i, header := range headers {
		name := strings.ToLower(header.Name)
		valid[i] = header
		valid[i].Name, valid[i].Value = name, trimValue(header.Value)
		if problem := nameProblem(header.Name, name, seen[name]); problem != "" {
			errs.Add(fmt.Sprintf("headers[%d].name", i), "%s", problem)
		}
		// Errors about a value do not quote it.
		field, short := fmt.Sprintf("headers[%d].value", i), cut(header.Name, maxHeaderName)
		at := strings.IndexFunc(valid[i].Value, func(c rune) bool {
			return c != '\t' && (c < ' ' || c > '~')
		})
		if size := len(valid[i].Value); size > maxHeaderValue {
			errs.Add(field, "the value of header %q has %d bytes; at most %d are allowed",
				short, size, maxHeaderValue)
		} else if at >= 0 {
			errs.Add(field, "the value of header %q contains a character at position %d that is "+
				"not printable ASCII, a space or a tab", short, at+1)
		}
		seen[name] = true
	}
	if err := errs.Err(); err != nil {
		return nil, err
	}
	return valid, nil
}

// trimValue trims what HTTP calls optional white space.
func trimValue(value string) string { return strings.Trim(value, " \t") }

// nameProblem says why a name cannot be sent or may not be set, else "". Validity is checked
// on the name as given: some letters beyond ASCII become ordinary ones in lower case.
func nameProblem(given, name string, repeated bool) string {
	switch {
	case given == "":
		return "a header has no name"
	case len(given) > maxHeaderName:
		return fmt.Sprintf("a header name has %d characters; at most %d are allowed",
			len(given), maxHeaderName)
	case !httpguts.ValidHeaderFieldName(given):
		return fmt.Sprintf("header name %q is not valid; use letters, digits and hyphens", given)
	case slices.Contains(forbiddenHeaders, name):
		return fmt.Sprintf("header %q cannot be set; it is part of how the request is sent", name)
	case strings.HasPrefix(name, ownPrefix):
		return fmt.Sprintf("header %q cannot be set; names that begin with %s are Drawbridge's own",
			name, ownPrefix)
	case strings.HasPrefix(name, standardPrefix):
		return fmt.Sprintf("header %q cannot be set; names that begin with %s are reserved for Standard "+
			"Webhooks", name, standardPrefix)
	case repeated:
		return fmt.Sprintf("header %q is given twice; give each name once, whatever its case", name)
	}
	return ""
}

// buildHeaders returns the header fields of a request in the order in which they are
// sent, except those that frame it. Later ones replace earlier ones of the same name:
// defaults, custom headers, Drawbridge's own, authentication.
func buildHeaders(r Request, userAgent, environment string) []Header {
	set := make(headerSet, 0, len(r.Headers)+16)
	set.plain("content-type", "application/json")
	set.plain("user-agent", userAgent)
	set.plain("accept-encoding", "gzip")
	if r.Traceparent != nil {
		set.plain(TraceHeader, *r.Traceparent)
	}
	for _, header := range r.Headers {
		set.put(Header{Name: strings.ToLower(header.Name), Value: header.Value, Plain: header.Plain})
	}
	for _, header := range r.Event.Headers() {
		set.put(header)
	}
	set.plain("x-drawbridge-delivery", r.Delivery)
	set.plain("x-drawbridge-attempt", strconv.Itoa(r.Number))
	set.plain("x-drawbridge-retries-left", strconv.Itoa(r.RetriesLeft))
	if environment != "" {
		set.plain("x-drawbridge-environment", environment)
	}
	if r.Test {
		set.plain("x-drawbridge-test", "true")
	}
	switch r.Auth {
	case AuthHMAC:
		// A signature helps to find a mistake and does not reveal its key, so it is plain.
		set.plain(HeaderSignature, Sign(r.Secret, r.Body))
		if !r.Previous.IsZero() {
			set.plain(headerPrevious, Sign(r.Previous, r.Body))
		}
		if r.Standard {
			at := strconv.FormatInt(r.At.Unix(), 10)
			set.plain("webhook-id", r.Event.UID)
			set.plain("webhook-timestamp", at)
			signed := append([]byte(r.Event.UID+"."+at+"."), r.Body...)
			signature := "v1," + base64.StdEncoding.EncodeToString(Mac(r.Secret, signed))
			if !r.Previous.IsZero() {
				signature += " v1," + base64.StdEncoding.EncodeToString(Mac(r.Previous, signed))
			}
			set.plain("webhook-signature", signature)
		}
	case AuthBearer:
		set.put(Header{Name: headerAuthorization, Value: "Bearer " + r.Secret.Reveal()})
	case AuthNone:
	}
	return set
}

// Credentials returns the headers that a subscription sends with each request, masked as
// in the log: they show how an endpoint can identify the sender.
func Credentials(auth Auth, custom []Header) []Header {
	return Mask(buildHeaders(Request{Auth: auth, Headers: custom}, "", ""))
}

// headerSet holds each name once.
type headerSet []Header

// plain adds or replaces a header whose value may be logged.
func (s *headerSet) plain(name, value string) {
	s.put(Header{Name: name, Value: value, Plain: true})
}

func (s *headerSet) put(header Header) {
	for i := range *s {
		if (*s)[i].Name == header.Name {
			(*s)[i] = header
			return
		}
	}
	*s = append(*s, header)
}

// FieldOf returns the first value of a header, or "".
func FieldOf(headers []Header, name string) string {
	for _, header := range headers {
		if strings.EqualFold(header.Name, name) {
			return header.Value
		}
	}
	return ""
}

// TraceHeader is the field that carries a trace (W3C Trace Context).
const TraceHeader = "traceparent"
