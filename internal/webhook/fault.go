package webhook

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"
	"unicode"
)

// ErrorClass is the kind of a failed attempt; the empty class is a delivered one.
type ErrorClass string

// The error classes.
const (
	ClassDNS      ErrorClass = "dns"
	ClassConnect  ErrorClass = "connect"
	ClassTLS      ErrorClass = "tls"
	ClassTimeout  ErrorClass = "timeout"
	ClassBlocked  ErrorClass = "blocked_address"
	ClassHTTP3xx  ErrorClass = "http_3xx"
	ClassHTTP4xx  ErrorClass = "http_4xx"
	ClassHTTP5xx  ErrorClass = "http_5xx"
	ClassProtocol ErrorClass = "protocol"
	// ClassUnknown: the process died during the attempt or gave it up, so
	// nobody knows what the endpoint received.
	ClassUnknown ErrorClass = "unknown"
)

// ErrorClasses lists every class in the order of an attempt's phases.
func ErrorClasses() []ErrorClass {
	return []ErrorClass{
		ClassDNS, ClassBlocked, ClassConnect, ClassTLS, ClassTimeout,
		ClassHTTP3xx, ClassHTTP4xx, ClassHTTP5xx, ClassProtocol, ClassUnknown,
	}
}

// maxErrorText bounds the error text of an attempt, in bytes.
const maxErrorText = 500

// The beginnings of an attempt's error text. Diagnose recognises them, so an
// old attempt is explained from its text alone.
const (
	saidNoName      = "the host name does not exist"
	saidNoAddress   = "the host name has no address"
	saidNameServer  = "the name servers gave no answer"
	saidDNSTime     = "time ran out while the name was looked up"
	saidBlocked     = "the address is refused"
	saidURL         = "the URL is refused"
	saidRefused     = "the connection was refused"
	saidUnreachable = "the address cannot be reached"
	saidNoConnect   = "no connection could be made"
	saidConnectTime = "time ran out while connecting"
	saidExpired     = "the certificate has expired"
	saidNotYet      = "the certificate is not valid yet"
	saidWrongName   = "the certificate is for another name"
	saidUntrusted   = "the certificate is not trusted"
	saidBadCert     = "the certificate is not acceptable"
	saidNoTLS       = "the endpoint does not speak TLS"
	saidAlert       = "the endpoint refused the TLS handshake"
	saidHandshake   = "the TLS handshake broke off"
	saidTLSTime     = "time ran out during the TLS handshake"
	saidAnswerTime  = "time ran out while waiting for the answer"
	saidClosed      = "the connection was closed before an answer came"
	saidReset       = "the connection was reset before an answer came"
	saidNotHTTP     = "the answer is not valid HTTP"
	saidHeadTooBig  = "the headers of the answer are too large"
	saidBadStatus   = "the status is not a final one"
	saidStopped     = "the sender stopped before an answer came"
	saidStatus      = "the endpoint answered"
)

// fault is why an attempt ended without a status.
type fault struct {
	class ErrorClass
	// said is one of the beginnings above, detail what came with it.
	said, detail string
	// status is that of an answer that was not a final one, else 0.
	status int
	cause  error
}

func (f *fault) Error() string {
	if f.detail == "" {
		return f.said
	}
	return f.said + ": " + f.detail
}

func (f *fault) Unwrap() error { return f.cause }

// newFault makes a fault; a detail that an endpoint may have chosen is made
// printable and cut.
func newFault(class ErrorClass, said string, cause error) *fault {
	f := &fault{class: class, said: said, cause: cause}
	if cause != nil {
		f.detail = printable(cause.Error(), maxErrorText)
	}
	return f
}

// interrupted returns the fault of an attempt whose time ran out or that was
// given up, else nil. It takes precedence over what the network says then.
func interrupted(ctx context.Context, err error, said string) *fault {
	switch {
	case errors.Is(context.Cause(ctx), context.Canceled):
		return newFault(ClassUnknown, saidStopped, nil)
	case ctx.Err() != nil, errors.Is(err, os.ErrDeadlineExceeded):
		return newFault(ClassTimeout, said, nil)
	}
	return nil
}

func dnsFault(ctx context.Context, host string, err error) error {
	if f := interrupted(ctx, nil, saidDNSTime); f != nil {
		return f
	}
	said := saidNameServer
	var dns *net.DNSError
	switch {
	case errors.Is(err, errNoAddress):
		said = saidNoAddress
	case errors.As(err, &dns) && dns.IsNotFound:
		said = saidNoName
	case dns != nil:
		// The resolver's text may name its server, which is ours and nobody's
		// business: "read udp 10.0.0.5:4711->10.0.0.53:53: i/o timeout".
		cause := dns.Err[strings.LastIndex(dns.Err, ": ")+1:]
		f := newFault(ClassDNS, said, err)
		f.detail = printable(host+": "+strings.TrimSpace(cause), maxErrorText)
		return f
	}
	f := newFault(ClassDNS, said, err)
	f.detail = host
	return f
}

func blockedFault(err error) error { return newFault(ClassBlocked, saidBlocked, err) }

func connectFault(ctx context.Context, err error) error {
	if f := interrupted(ctx, nil, saidConnectTime); f != nil {
		return f
	}
	var blocked *BlockedError
	switch {
	case errors.As(err, &blocked):
		return blockedFault(blocked)
	case errors.Is(err, syscall.ECONNREFUSED):
		return newFault(ClassConnect, saidRefused, nil)
	case errors.Is(err, syscall.ENETUNREACH), errors.Is(err, syscall.EHOSTUNREACH),
		errors.Is(err, syscall.ETIMEDOUT):
		return newFault(ClassConnect, saidUnreachable, rootCause(err))
	}
	return newFault(ClassConnect, saidNoConnect, rootCause(err))
}

// rootCause drops the address that the net package puts before its errors.
func rootCause(err error) error {
	if op, ok := errors.AsType[*net.OpError](err); ok {
		return op.Err
	}
	return err
}

func tlsFault(ctx context.Context, err error) error {
	if f := interrupted(ctx, err, saidTLSTime); f != nil {
		return f
	}
	if f := certificateFault(err); f != nil {
		return f
	}
	var op *net.OpError
	var record tls.RecordHeaderError
	switch {
	case errors.As(err, &record):
		return newFault(ClassTLS, saidNoTLS, nil)
	case errors.As(err, &op) && op.Op == "remote error":
		return newFault(ClassTLS, saidAlert, op.Err)
	case errors.Is(err, io.EOF):
		return newFault(ClassTLS, saidHandshake, errors.New("the endpoint closed the connection"))
	}
	return newFault(ClassTLS, saidHandshake, rootCause(err))
}

// certificateFault explains a certificate that was refused, in the words that
// its owner needs: dates and names instead of the verifier's.
func certificateFault(err error) *fault {
	var invalid x509.CertificateInvalidError
	var name x509.HostnameError
	var authority x509.UnknownAuthorityError
	var verification *tls.CertificateVerificationError
	switch {
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return expiryFault(invalid.Cert, time.Now())
	case errors.As(err, &name):
		f := newFault(ClassTLS, saidWrongName, name)
		f.detail = printable(fmt.Sprintf("it is valid for %s, not for %s",
			namesOf(name.Certificate), name.Host), maxErrorText)
		return f
	case errors.As(err, &authority):
		f := newFault(ClassTLS, saidUntrusted, authority)
		f.detail = "its issuer is unknown, or the endpoint does not send the certificates in between"
		if authority.Cert != nil {
			f.detail += printable(" (issuer "+authority.Cert.Issuer.String()+")", maxErrorText)
		}
		return f
	case errors.As(err, &verification):
		return newFault(ClassTLS, saidBadCert, verification.Err)
	}
	return nil
}

// expiryFault says how long ago a certificate ended or when it begins.
func expiryFault(cert *x509.Certificate, now time.Time) *fault {
	const day = "2006-01-02 15:04 UTC"
	if now.Before(cert.NotBefore) {
		f := newFault(ClassTLS, saidNotYet, nil)
		f.detail = "it begins on " + cert.NotBefore.UTC().Format(day)
		return f
	}
	f := newFault(ClassTLS, saidExpired, nil)
	f.detail = fmt.Sprintf("it ended on %s, %s ago", cert.NotAfter.UTC().Format(day),
		roughly(now.Sub(cert.NotAfter)))
	return f
}

// roughly writes a duration as people say it.
func roughly(d time.Duration) string {
	units := []struct {
		size time.Duration
		name string
	}{{24 * time.Hour, "day"}, {time.Hour, "hour"}, {time.Minute, "minute"}, {time.Second, "second"}}
	for _, unit := range units {
		if n := int(d / unit.size); n == 1 {
			return "1 " + unit.name
		} else if n > 1 {
			return fmt.Sprintf("%d %ss", n, unit.name)
		}
	}
	return "less than a second"
}

// namesOf lists a few of the names that a certificate is valid for.
func namesOf(cert *x509.Certificate) string {
	const few = 5
	names := slices.Clone(cert.DNSNames)
	for _, ip := range cert.IPAddresses {
		names = append(names, ip.String())
	}
	switch {
	case len(names) == 0:
		return "no name at all"
	case len(names) > few:
		return strings.Join(names[:few], ", ") + " and others"
	}
	return strings.Join(names, ", ")
}

// answerFault classifies what went wrong between the first byte sent and the
// end of the answer's headers.
func answerFault(ctx context.Context, err error) error {
	if ready, ok := errors.AsType[*fault](err); ok {
		return ready
	}
	if f := interrupted(ctx, err, saidAnswerTime); f != nil {
		return f
	}
	var op *net.OpError
	switch {
	case errors.As(err, &op) && op.Op == "remote error":
		// With TLS 1.3 a refusal arrives only after the handshake.
		return newFault(ClassTLS, saidAlert, op.Err)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return newFault(ClassProtocol, saidClosed, nil)
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return newFault(ClassProtocol, saidReset, nil)
	}
	return newFault(ClassProtocol, saidNotHTTP, err)
}

// statusClass returns the class of a final status: empty for the delivered
// ones, 200 to 299 (specification section 6.1).
func statusClass(status int) ErrorClass {
	switch {
	case status >= 200 && status <= 299:
		return ""
	case status >= 300 && status <= 399:
		return ClassHTTP3xx
	case status >= 400 && status <= 499:
		return ClassHTTP4xx
	case status >= 500 && status <= 599:
		return ClassHTTP5xx
	}
	return ClassProtocol
}

// printable makes text that an endpoint had a hand in fit for a log line and
// a database column: valid UTF-8, no control characters, at most limit bytes.
func printable(text string, limit int) string {
	clean := strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, text)
	return cut(clean, limit)
}

// cut shortens text to at most limit bytes at the boundary of a character.
func cut(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	const dots = "..."
	return strings.ToValidUTF8(text[:limit-len(dots)], "") + dots
}
