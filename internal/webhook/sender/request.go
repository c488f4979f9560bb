package sender

import (
	"net/netip"
	"time"

	"drawbridge/internal/secret"
)

// Request is one attempt to make.
type Request struct {
	// URL is checked against the sender's policy again.
	URL string
	// Event identifies the event that the request reports.
	Event Identity
	// Delivery is the delivery's id, Number the attempt's number from 1, and RetriesLeft how
	// many may follow it.
	Delivery            string
	Number, RetriesLeft int
	// Standard adds the signature of Standard Webhooks under AuthHMAC; At is the time of the
	// attempt that it covers.
	Standard bool
	At       time.Time
	// Test marks a test event.
	Test bool
	// Headers are the custom headers, as CheckHeaders returned them.
	Headers []Header
	Auth    Auth
	// Secret is the signing secret or the bearer token, Previous the previous signing secret
	// while both are in force, else zero.
	Secret, Previous secret.String
	// Traceparent is sent as the header of that name, unless nil.
	Traceparent *string
	// Body is sent unchanged.
	Body []byte
}

// Timings are the durations of an attempt's phases; a phase that was not
// reached, or that a reused connection saved, is zero.
type Timings struct {
	DNS     time.Duration
	Connect time.Duration
	TLS     time.Duration
	// FirstByte is from the end of sending the request to the first byte of the answer.
	FirstByte time.Duration
	// Total is the whole attempt.
	Total time.Duration
}

// Attempt is the outcome of one request, safe to log: secrets are masked and everything
// that the endpoint chose is bounded. Its texts are valid UTF-8 without control
// characters; only ResponseBody holds the bytes as received.
type Attempt struct {
	// Status is the HTTP status, 0 without one.
	Status int
	// Class is empty when the endpoint confirmed receipt.
	Class ErrorClass
	// Cause is why receipt was not confirmed, empty when Class is.
	Cause Cause
	// Error describes in plain words what went wrong, empty when Class is.
	Error string
	// Note describes anything odd about an answer that counts all the same.
	Note string
	// Address is the address dialled or refused, the zero value if none.
	Address netip.AddrPort
	// Protocol is "HTTP/1.1" or "HTTP/2", empty without an answer.
	Protocol string
	// TLSVersion is "TLS 1.2" or "TLS 1.3", empty without TLS.
	TLSVersion string
	// Reused means that the connection had carried an earlier request.
	Reused bool
	// Sent means that the endpoint may have received the request.
	Sent bool
	// Local means that this machine had no resources left for a connection: nothing was sent,
	// and the endpoint is not to blame.
	Local   bool
	Timings Timings
	// RequestHeaders are those sent, or about to be, in their order.
	RequestHeaders []Header
	// ResponseHeaders are sorted by name.
	ResponseHeaders []Header
	// ResponseBody holds the first 16 KiB, decompressed.
	ResponseBody []byte
	// Truncated means that the body was longer than that.
	Truncated bool
	// RetryAfter is the delay that a 429 or 503 answer asked for, from when the answer came;
	// 0 if it asked for none.
	RetryAfter time.Duration
	// CertificateExpires is when the endpoint's certificate expires, zero without TLS.
	CertificateExpires time.Time
}

// Delivered reports whether the endpoint confirmed receipt: a status of 200 to
// 299, whatever became of the body after it.
func (a Attempt) Delivered() bool { return a.Class == "" }

// Auth is how deliveries of a subscription prove their origin (specification section 5).
type Auth string

// The authentication schemes.
const (
	AuthNone   Auth = "none"
	AuthHMAC   Auth = "hmac"
	AuthBearer Auth = "bearer"
)
