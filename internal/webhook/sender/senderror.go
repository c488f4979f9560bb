package sender

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

// ErrorClass is the kind of failure of an attempt; empty for a delivered one.
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
	// ClassUnknown: the process died during the attempt or abandoned it, so it is not known
	// what the endpoint received.
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

// sendError is why an attempt ended without a status.
type sendError struct {
	class ErrorClass
	cause Cause
	// detail is what follows the cause in the error text.
	detail string
	// status is that of an answer that was not final, else 0.
	status int
	err    error
}

func (e *sendError) Error() string {
	if e.detail == "" {
		return e.cause.Text()
	}
	return e.cause.Text() + ": " + e.detail
}

func (e *sendError) Unwrap() error { return e.err }

// newSendError makes an error and makes its detail printable, as an endpoint may have chosen it.
// The text is shortened only after secrets are masked: a part of a secret would not be found.
func newSendError(class ErrorClass, cause Cause, err error) *sendError {
	made := &sendError{class: class, cause: cause, err: err}
	if err != nil {
		made.detail = printable(err.Error(), 4*maxHead) // a byte may be quoted as \x00
	}
	return made
}

// withDetail replaces the detail of the error.
func (e *sendError) withDetail(format string, args ...any) *sendError {
	e.detail = printable(fmt.Sprintf(format, args...), maxErrorText)
	return e
}

// isLocal reports that no connection could be made because this machine lacks a resource.
func (e *sendError) isLocal() bool {
	if e.class != ClassConnect && e.class != ClassDNS {
		return false
	}
	dns, resolving := errors.AsType[*net.DNSError](e.err)
	if op, ok := errors.AsType[*net.OpError](e.err); ok && errors.Is(op, syscall.EADDRNOTAVAIL) {
		// Every port is in use; with IPv6 it may also mean that this machine has none of that.
		to, ok := op.Addr.(*net.TCPAddr)
		return ok && to.IP.To4() != nil
	}
	return slices.ContainsFunc([]syscall.Errno{
		syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM,
	}, func(lack syscall.Errno) bool {
		return errors.Is(e.err, lack) || resolving && strings.HasSuffix(dns.Err, lack.Error())
	})
}

// asSendError returns the send error within err; any other error counts as invalid HTTP.
func asSendError(err error) *sendError {
	if f, ok := errors.AsType[*sendError](err); ok {
		return f
	}
	return newSendError(ClassProtocol, CauseNotHTTP, err)
}

// interrupted returns the error of an attempt that timed out or was abandoned, else nil.
// It takes precedence over the network error that results.
func interrupted(ctx context.Context, err error, cause Cause) *sendError {
	switch {
	case errors.Is(context.Cause(ctx), context.Canceled):
		return newSendError(ClassUnknown, CauseStopped, nil)
	case ctx.Err() != nil, errors.Is(err, os.ErrDeadlineExceeded):
		return newSendError(ClassTimeout, cause, nil)
	}
	return nil
}

func dnsError(ctx context.Context, host string, err error) error {
	if f := interrupted(ctx, nil, CauseDNSTime); f != nil {
		return f
	}
	cause := CauseNameServer
	var dns *net.DNSError
	switch {
	case errors.Is(err, errNoAddress):
		cause = CauseNoAddress
	case errors.As(err, &dns) && dns.IsNotFound:
		cause = CauseNoName
	case dns != nil:
		// The resolver's text may name its server, which is internal to us: "read udp
		// 10.0.0.5:4711->10.0.0.53:53: i/o timeout".
		text := dns.Err[strings.LastIndex(dns.Err, ": ")+1:]
		return newSendError(ClassDNS, cause, err).withDetail("%s: %s", host, strings.TrimSpace(text))
	}
	return newSendError(ClassDNS, cause, err).withDetail("%s", host)
}

func blockedError(err error) error { return newSendError(ClassBlocked, CauseBlocked, err) }

func connectError(ctx context.Context, err error) error {
	if f := interrupted(ctx, nil, CauseConnectTime); f != nil {
		return f
	}
	var blocked *BlockedError
	switch {
	case errors.As(err, &blocked):
		return blockedError(blocked)
	case errors.Is(err, syscall.ECONNREFUSED):
		return newSendError(ClassConnect, CauseRefused, nil)
	case errors.Is(err, syscall.ENETUNREACH), errors.Is(err, syscall.EHOSTUNREACH),
		errors.Is(err, syscall.ETIMEDOUT):
		return newSendError(ClassConnect, CauseUnreachable, rootCause(err))
	}
	f := newSendError(ClassConnect, CauseNoConnect, rootCause(err))
	f.err = err
	return f
}

// rootCause drops the address that the net package prepends to its errors.
func rootCause(err error) error {
	if op, ok := errors.AsType[*net.OpError](err); ok {
		return op.Err
	}
	return err
}

// tlsError explains why a handshake failed. For a refused certificate it gives the dates
// and names that the owner needs, instead of the verifier's words.
func tlsError(ctx context.Context, err error, now time.Time) error {
	if f := interrupted(ctx, err, CauseTLSTime); f != nil {
		return f
	}
	var invalid x509.CertificateInvalidError
	var name x509.HostnameError
	var authority x509.UnknownAuthorityError
	var verification *tls.CertificateVerificationError
	var op *net.OpError
	var record tls.RecordHeaderError
	switch {
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		const day = "2006-01-02 15:04 UTC"
		cert := invalid.Cert
		if now.Before(cert.NotBefore) {
			return newSendError(ClassTLS, CauseNotYet, nil).withDetail(
				"it begins on %s", cert.NotBefore.UTC().Format(day))
		}
		return newSendError(ClassTLS, CauseExpired, nil).withDetail("it ended on %s, %s ago",
			cert.NotAfter.UTC().Format(day), Roughly(now.Sub(cert.NotAfter)))
	case errors.As(err, &name):
		return newSendError(ClassTLS, CauseWrongName, name).withDetail("it is valid for %s, not for %s",
			namesOf(name.Certificate), name.Host)
	case errors.As(err, &authority):
		f := newSendError(ClassTLS, CauseUntrusted, authority)
		f.detail = "its issuer is unknown, or the endpoint does not send the certificates in between"
		if authority.Cert != nil {
			f.detail += printable(" (issuer "+authority.Cert.Issuer.String()+")", maxErrorText)
		}
		return f
	case errors.As(err, &verification):
		return newSendError(ClassTLS, CauseBadCert, verification.Err)
	case errors.As(err, &record):
		return newSendError(ClassTLS, CauseNoTLS, nil)
	case errors.As(err, &op) && op.Op == "remote error":
		return newSendError(ClassTLS, CauseAlert, op.Err)
	case errors.Is(err, io.EOF):
		return newSendError(ClassTLS, CauseHandshake, errors.New("the endpoint closed the connection"))
	}
	return newSendError(ClassTLS, CauseHandshake, rootCause(err))
}

// Roughly formats a duration in its largest whole unit, for people.
func Roughly(d time.Duration) string {
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

// answerError classifies errors between the first byte sent and the end of the answer's
// headers.
func answerError(ctx context.Context, err error) error {
	if ready, ok := errors.AsType[*sendError](err); ok {
		return ready
	}
	if f := interrupted(ctx, err, CauseAnswerTime); f != nil {
		return f
	}
	var op *net.OpError
	switch {
	case errors.As(err, &op) && op.Op == "remote error":
		// With TLS 1.3 a refusal arrives only after the handshake.
		return newSendError(ClassTLS, CauseAlert, op.Err)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return newSendError(ClassProtocol, CauseClosed, nil)
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return newSendError(ClassProtocol, CauseReset, nil)
	}
	return newSendError(ClassProtocol, CauseNotHTTP, err)
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

// printable makes text that an endpoint may have influenced safe for a log line and a
// database column: valid UTF-8, no control characters, at most limit bytes.
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
