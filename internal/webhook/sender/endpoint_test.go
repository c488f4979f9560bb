package sender

import (
	"bufio"
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/textproto"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"drawbridge/internal/secret"
)

// hookName is the name under which tests reach their endpoints.
const hookName = "hooks.example"

// authority issues the certificates of test endpoints.
type authority struct {
	pool *x509.CertPool
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t testing.TB) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "Test Authority"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(raw)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(cert)
	return &authority{pool: pool, cert: cert, key: key}
}

// pemOf encodes a certificate in PEM.
func pemOf(cert *x509.Certificate) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Raw})
}

// issue returns a server configuration with a certificate for name that is
// valid until the given time from now.
func (a *authority) issue(t testing.TB, name string, from, until time.Duration) *tls.Config {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		NotBefore: time.Now().Add(from), NotAfter: time.Now().Add(until),
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Config{
		Certificates: []tls.Certificate{{Certificate: [][]byte{raw}, PrivateKey: key}},
		MinVersion:   tls.VersionTLS12,
	}
}

// received is one request as it came over the wire.
type received struct {
	// conn numbers the connections from 1.
	conn int
	// line is the request line, head the header lines, both without line ends.
	line string
	head []string
	body []byte
}

// value returns the value of a header line; the name must match exactly.
func (r received) value(name string) (string, int) {
	value, count := "", 0
	for _, line := range r.head {
		if got, rest, _ := strings.Cut(line, ": "); got == name {
			value, count = rest, count+1
		}
	}
	return value, count
}

// endpointConn is a connection that an endpoint's script answers on.
type endpointConn struct {
	net.Conn
	number int
	reader *bufio.Reader
	server *rawEndpoint
}

// request reads the next request; an error means that there is no further one.
func (c *endpointConn) request() (received, error) {
	r := received{conn: c.number}
	text := textproto.NewReader(c.reader)
	var err error
	if r.line, err = text.ReadLine(); err != nil {
		return r, err
	}
	length := 0
	for {
		line, err := text.ReadLine()
		if err != nil {
			return r, err
		}
		if line == "" {
			break
		}
		r.head = append(r.head, line)
		if name, value, _ := strings.Cut(line, ":"); strings.EqualFold(name, "content-length") {
			if length, err = strconv.Atoi(strings.TrimSpace(value)); err != nil {
				return r, err
			}
		}
	}
	r.body = make([]byte, length)
	if _, err := io.ReadFull(c.reader, r.body); err != nil {
		return r, err
	}
	c.server.mu.Lock()
	defer c.server.mu.Unlock()
	c.server.requests = append(c.server.requests, r)
	return r, nil
}

// say writes an answer unchanged.
func (c *endpointConn) say(text string) { _, _ = io.WriteString(c, text) }

// untilClosed waits for the other side to close.
func (c *endpointConn) untilClosed() { _, _ = io.Copy(io.Discard, c.reader) }

// reset closes with a TCP reset.
func (c *endpointConn) reset() {
	conn := c.Conn
	if secured, ok := conn.(*tls.Conn); ok {
		conn = secured.NetConn()
	}
	_ = conn.(*net.TCPConn).SetLinger(0)
	_ = conn.Close()
}

// rawEndpoint is a partner's endpoint on a real socket that reads and writes
// bytes, not messages.
type rawEndpoint struct {
	listener net.Listener

	mu       sync.Mutex
	requests []received
	conns    int
}

// serve starts an endpoint; a nil config is plain TCP. script runs once for
// each connection, which is closed after it.
func serve(t testing.TB, config *tls.Config, script func(*endpointConn)) *rawEndpoint {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	e := &rawEndpoint{listener: listener}
	var running sync.WaitGroup
	stopping := make(chan struct{})
	running.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			running.Go(func() {
				running.Go(func() { <-stopping; _ = conn.Close() })
				e.answer(conn, config, script)
			})
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		close(stopping)
		running.Wait()
	})
	return e
}

func (e *rawEndpoint) answer(conn net.Conn, config *tls.Config, script func(*endpointConn)) {
	defer conn.Close()
	e.mu.Lock()
	e.conns++
	number := e.conns
	e.mu.Unlock()
	if config != nil {
		secured := tls.Server(conn, config)
		if secured.Handshake() != nil {
			return
		}
		conn = secured
	}
	script(&endpointConn{Conn: conn, number: number, reader: bufio.NewReader(conn), server: e})
}

// port is the endpoint's port.
func (e *rawEndpoint) port() int { return e.listener.Addr().(*net.TCPAddr).Port }

// plain and secure are the endpoint's URLs.
func (e *rawEndpoint) plain() string {
	return "http://" + e.listener.Addr().String() + "/hook"
}

func (e *rawEndpoint) secure() string {
	return "https://" + net.JoinHostPort(hookName, strconv.Itoa(e.port())) + "/hook?tenant=7"
}

// got returns the requests so far, and the number of connections.
func (e *rawEndpoint) got() ([]received, int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.requests), e.conns
}

// respond answers each request of a connection with the same text.
func respond(text string) func(*endpointConn) {
	return func(c *endpointConn) {
		for {
			if _, err := c.request(); err != nil {
				return
			}
			c.say(text)
		}
	}
}

// once answers one request with the text and closes the connection.
func once(text string) func(*endpointConn) {
	return func(c *endpointConn) {
		if _, err := c.request(); err == nil {
			c.say(text)
		}
	}
}

const ok200 = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"

// testBody is a payload with exactly the fields of a funding event.
var testBody = []byte(`{"application_id":"7d5f0c6e-2f1b-4a57-9a55-1f3f6f6f2a10",` +
	`"status":"FUNDING_SETTLED","timestamp":"2026-11-21T09:30:00.123456Z"}`)

const testSecret = "whsec_0Yb3kD2sJm8xQv5nR7tW1zC4fH6jL9pA"

// hook returns a signed request to a URL.
func hook(url string) Request {
	return Request{
		URL: url, Delivery: "d-1", Number: 1, RetriesLeft: 2,
		Event: Identity{Kind: "disbursement.funding.settled", UID: "e-1"},
		Auth:  AuthHMAC, Secret: secret.New(testSecret), Body: bytes.Clone(testBody),
	}
}

// newTestSender returns a sender that reaches test endpoints on this machine.
func newTestSender(t testing.TB, change func(*Config)) *Sender {
	t.Helper()
	config := Config{
		Policy: loopback, Resolver: names{hookName: {"127.0.0.1"}},
		Timeout: 2 * time.Minute, Version: "1.2.3",
	}
	if change != nil {
		change(&config)
	}
	s := New(config)
	t.Cleanup(s.Close)
	return s
}

// sendUntil sends with twice the time each time until the attempt is as it should be, and returns
// the last one and its time: a busy machine may use up any before it comes to what a test is about.
func sendUntil(
	t testing.TB, change func(*Config), request func() Request, right func(Attempt) bool,
) (attempt Attempt, limit time.Duration) {
	t.Helper()
	for limit = 500 * time.Millisecond; limit < 2*time.Minute; limit *= 2 {
		sender := newTestSender(t, func(c *Config) {
			if c.Timeout = limit; change != nil {
				change(c)
			}
		})
		if attempt = sender.Send(t.Context(), request()); right(attempt) {
			return attempt, limit
		}
	}
	return attempt, limit
}
