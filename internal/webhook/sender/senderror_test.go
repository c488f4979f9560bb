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
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// System errors that no endpoint can be made to cause at will.
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
		name    string
		problem error
		class   ErrorClass
		text    string
	}{
		{
			"a silent name server", dnsError(ctx, "hooks.example", &net.DNSError{
				Err: "read udp 10.0.0.5:4711->10.0.0.53:53: i/o timeout", IsTimeout: true,
			}), ClassDNS, CauseNameServer.Text() + ": hooks.example: i/o timeout",
		},
		{
			"refused", connectError(ctx, system("dial", syscall.ECONNREFUSED)), ClassConnect,
			CauseRefused.Text(),
		},
		{
			"no route to the network", connectError(ctx, system("dial", syscall.ENETUNREACH)),
			ClassConnect, CauseUnreachable.Text() + ": connect: network is unreachable",
		},
		{
			"no route to the host", connectError(ctx, system("dial", syscall.EHOSTUNREACH)),
			ClassConnect, CauseUnreachable.Text(),
		},
		{
			"the system's own timeout", connectError(ctx, system("dial", syscall.ETIMEDOUT)),
			ClassConnect, CauseUnreachable.Text(),
		},
		{
			"no file left", connectError(ctx, system("dial", syscall.EMFILE)), ClassConnect,
			CauseNoConnect.Text() + ": connect: too many open files",
		},
		{
			"no file left for the name server", dnsError(ctx, "hooks.example", &net.DNSError{
				Err: "dial udp 10.0.0.53:53: socket: too many open files",
			}), ClassDNS, CauseNameServer.Text() + ": hooks.example: too many open files",
		},
		{
			"no port left", connectError(ctx, system("dial", syscall.EADDRNOTAVAIL)), ClassConnect,
			CauseNoConnect.Text(),
		},
		{
			"no port left for IPv4", connectError(ctx, &net.OpError{
				Op: "dial", Addr: &net.TCPAddr{IP: net.IPv4(203, 0, 113, 9), Port: 443},
				Err: os.NewSyscallError("connect", syscall.EADDRNOTAVAIL),
			}), ClassConnect, CauseNoConnect.Text() + ": connect: cannot assign",
		},
		{
			"not from the network", connectError(ctx, errors.New("x")), ClassConnect,
			CauseNoConnect.Text() + ": x",
		},
		{
			"certificate of another kind", tlsError(ctx, verification, retryNow), ClassTLS,
			CauseBadCert.Text(),
		},
		{
			"broken handshake", tlsError(ctx, errors.New("tls: x"), retryNow), ClassTLS,
			CauseHandshake.Text() + ": tls: x",
		},
		{"closed handshake", tlsError(ctx, io.EOF, retryNow), ClassTLS, CauseHandshake.Text() +
			": the endpoint closed"},
		{"reset", answerError(ctx, system("read", syscall.ECONNRESET)), ClassProtocol, CauseReset.Text()},
		{
			"broken pipe", answerError(ctx, system("write", syscall.EPIPE)), ClassProtocol,
			CauseReset.Text(),
		},
		{"alert after the handshake", answerError(ctx, &net.OpError{
			Op: "remote error", Err: errors.New("tls: certificate required"),
		}), ClassTLS, CauseAlert.Text() + ": tls: certificate required"},
		{
			"a fault stays", answerError(ctx, fmt.Errorf("x: %w", headTooLarge())), ClassProtocol,
			CauseHeadTooBig.Text(),
		},
		{
			"GOAWAY", http2Error(errors.New("http2: server sent GOAWAY and closed the connection")),
			ClassProtocol, CauseClosed.Text(),
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			f, ok := errors.AsType[*sendError](test.problem)
			if !ok || f.class != test.class || !strings.HasPrefix(f.Error(), test.text) {
				t.Errorf("fault %v, want %q, %q", test.problem, test.class, test.text)
			}
			ours := strings.HasPrefix(test.name, "no file left") || test.name == "no port left for IPv4"
			if ok && f.isLocal() != ours {
				t.Errorf("fault %v is local: %t", test.problem, f.isLocal())
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

// An endpoint that accepts the connection and reads nothing stops a body that is too
// large for the buffers in between; the deadline ends it.
func TestSendToAnEndpointThatReadsNothing(t *testing.T) {
	t.Parallel()
	end := serve(t, nil, func(*endpointConn) { <-t.Context().Done() })
	r := hook(end.plain())
	r.Body = make([]byte, 32<<20)
	request := func() Request { return r }
	attempt, _ := sendUntil(t, nil, request, func(a Attempt) bool { return a.Sent })
	if attempt.Class != ClassTimeout || !attempt.Sent {
		t.Errorf("class %q, error %q, sent %v", attempt.Class, attempt.Error, attempt.Sent)
	}
}

// A large body that the endpoint stops reading ends at once, with its answer if there was
// one.
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
		if attempt.Class != ClassProtocol { // and not ClassTimeout
			t.Errorf("%s: class %q, error %q, after %s", name, attempt.Class, attempt.Error,
				attempt.Timings.Total)
		}
	}
}

// Cancelling in the middle of a body does not undo the receipt before it.
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

func TestRoughly(t *testing.T) {
	t.Parallel()
	tests := []struct {
		d    time.Duration
		want string
	}{
		{0, "less than a second"},
		{time.Second, "1 second"},
		{59 * time.Second, "59 seconds"},
		{90 * time.Second, "1 minute"},
		{5 * time.Hour, "5 hours"},
		{25 * time.Hour, "1 day"},
		{49 * time.Hour, "2 days"},
	}
	for _, test := range tests {
		if got := Roughly(test.d); got != test.want {
			t.Errorf("roughly(%s) = %q, want %q", test.d, got, test.want)
		}
	}
}

func TestStatusClass(t *testing.T) {
	t.Parallel()
	for status := -1; status <= 1100; status++ {
		var want ErrorClass
		switch status / 100 {
		case 2:
			want = ""
		case 3:
			want = ClassHTTP3xx
		case 4:
			want = ClassHTTP4xx
		case 5:
			want = ClassHTTP5xx
		default:
			want = ClassProtocol
		}
		if got := statusClass(status); got != want {
			t.Errorf("statusClass(%d) = %q, want %q", status, got, want)
		}
	}
}

func TestErrorClassesAreComplete(t *testing.T) {
	t.Parallel()
	seen := map[ErrorClass]bool{}
	for _, class := range ErrorClasses() {
		if class == "" || seen[class] {
			t.Errorf("class %q is empty or listed twice", class)
		}
		seen[class] = true
	}
	for _, attempt := range []Attempt{{Class: ClassUnknown}, {Class: statusClass(302)}} {
		if !seen[attempt.Class] || attempt.Delivered() {
			t.Errorf("class %q", attempt.Class)
		}
	}
}
