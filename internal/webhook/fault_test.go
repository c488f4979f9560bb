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
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Errors of the system that no endpoint can be made to cause at will.
func TestFaults(t *testing.T) {
	t.Parallel()
	system := func(op string, number syscall.Errno) error {
		return &net.OpError{Op: op, Net: "tcp", Err: os.NewSyscallError("connect", number)}
	}
	verification := &tls.CertificateVerificationError{Err: x509.CertificateInvalidError{
		Cert: &x509.Certificate{}, Reason: x509.TooManyIntermediates,
	}}
	ctx := t.Context()
	tests := []struct {
		name  string
		fault error
		class ErrorClass
		text  string
	}{
		{
			"a silent name server", dnsFault(ctx, "hooks.example", &net.DNSError{
				Err: "read udp 10.0.0.5:4711->10.0.0.53:53: i/o timeout", IsTimeout: true,
			}), ClassDNS, saidNameServer + ": hooks.example: i/o timeout",
		},
		{"refused", connectFault(ctx, system("dial", syscall.ECONNREFUSED)), ClassConnect, saidRefused},
		{
			"no route to the network", connectFault(ctx, system("dial", syscall.ENETUNREACH)),
			ClassConnect, saidUnreachable + ": connect: network is unreachable",
		},
		{
			"no route to the host", connectFault(ctx, system("dial", syscall.EHOSTUNREACH)),
			ClassConnect, saidUnreachable,
		},
		{
			"the system's own timeout", connectFault(ctx, system("dial", syscall.ETIMEDOUT)),
			ClassConnect, saidUnreachable,
		},
		{
			"no file left", connectFault(ctx, system("dial", syscall.EMFILE)), ClassConnect,
			saidNoConnect + ": connect: too many open files",
		},
		{
			"no port left", connectFault(ctx, system("dial", syscall.EADDRNOTAVAIL)), ClassConnect,
			saidNoConnect,
		},
		{"not from the network", connectFault(ctx, errors.New("x")), ClassConnect, saidNoConnect + ": x"},
		{"certificate of another kind", tlsFault(ctx, verification), ClassTLS, saidBadCert},
		{"broken handshake", tlsFault(ctx, errors.New("tls: x")), ClassTLS, saidHandshake + ": tls: x"},
		{"closed handshake", tlsFault(ctx, io.EOF), ClassTLS, saidHandshake + ": the endpoint closed"},
		{"reset", answerFault(ctx, system("read", syscall.ECONNRESET)), ClassProtocol, saidReset},
		{"broken pipe", answerFault(ctx, system("write", syscall.EPIPE)), ClassProtocol, saidReset},
		{"alert after the handshake", answerFault(ctx, &net.OpError{
			Op: "remote error", Err: errors.New("tls: certificate required"),
		}), ClassTLS, saidAlert + ": tls: certificate required"},
		{
			"a fault stays", answerFault(ctx, fmt.Errorf("x: %w", headTooLarge())), ClassProtocol,
			saidHeadTooBig,
		},
		{
			"GOAWAY", http2Fault(errors.New("http2: server sent GOAWAY and closed the connection")),
			ClassProtocol, saidClosed,
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			f, ok := errors.AsType[*fault](test.fault)
			if !ok || f.class != test.class || !strings.HasPrefix(f.Error(), test.text) {
				t.Errorf("fault %v, want %q, %q", test.fault, test.class, test.text)
			}
		})
	}
}

func TestNamesOf(t *testing.T) {
	t.Parallel()
	many := []string{"a", "b", "c", "d", "e", "f"}
	tests := []struct {
		cert *x509.Certificate
		want string
	}{
		{&x509.Certificate{}, "no name at all"},
		{&x509.Certificate{DNSNames: many[:2]}, "a, b"},
		{&x509.Certificate{DNSNames: many[:1], IPAddresses: []net.IP{{1, 2, 3, 4}}}, "a, 1.2.3.4"},
		{&x509.Certificate{DNSNames: many}, "a, b, c, d, e and others"},
	}
	for _, test := range tests {
		if got := namesOf(test.cert); got != test.want {
			t.Errorf("namesOf = %q, want %q", got, test.want)
		}
	}
}

// An endpoint that takes the connection and reads nothing stops a body that
// is too large for the buffers on the way; the deadline ends it.
func TestSendToAnEndpointThatReadsNothing(t *testing.T) {
	t.Parallel()
	end := serve(t, nil, func(*endpointConn) { <-t.Context().Done() })
	r := hook(end.plain())
	r.Body = make([]byte, 32<<20)
	// A busy machine may need longer than that to connect and to send the head.
	var attempt Attempt
	for limit := time.Second; limit < 2*time.Minute && !attempt.Sent; limit *= 2 {
		sender := newTestSender(t, func(c *SenderConfig) { c.Timeout = limit })
		attempt = sender.Send(t.Context(), r)
	}
	if attempt.Class != ClassTimeout || !attempt.Sent {
		t.Errorf("class %q, error %q, sent %v", attempt.Class, attempt.Error, attempt.Sent)
	}
}

// A large body that the endpoint cuts short ends at once, with its answer if
// there was one.
func TestSendCutShort(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]func(*endpointConn){
		"closed": func(*endpointConn) {},
		"reset": func(c *endpointConn) {
			_, _ = c.reader.Peek(1)
			c.reset()
		},
	} {
		end := serve(t, nil, script)
		r := hook(end.plain())
		r.Body = make([]byte, 8<<20)
		attempt := newTestSender(t, nil).Send(t.Context(), r)
		if attempt.Class != ClassProtocol || attempt.Timings.Total > 5*time.Second {
			t.Errorf("%s: class %q, error %q, after %s", name, attempt.Class, attempt.Error,
				attempt.Timings.Total)
		}
	}
}

// Giving up in the middle of a body does not undo the receipt before it.
func TestSendGivenUpDuringTheBody(t *testing.T) {
	t.Parallel()
	answered := make(chan struct{})
	end := serve(t, nil, func(c *endpointConn) {
		if _, err := c.request(); err == nil {
			c.say("HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\nthanks")
			close(answered)
			c.untilClosed()
		}
	})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var attempt Attempt
	var sending sync.WaitGroup
	sending.Go(func() { attempt = newTestSender(t, nil).Send(ctx, hook(end.plain())) })
	<-answered
	// Loopback is faster than this by far.
	time.AfterFunc(200*time.Millisecond, cancel)
	sending.Wait()
	if !attempt.Delivered() || !strings.Contains(attempt.Note, "when the sender stopped") {
		t.Errorf("class %q, error %q, note %q", attempt.Class, attempt.Error, attempt.Note)
	}
}
