package apptest

import (
	"crypto/x509"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
)

// Endpoint is a partner's endpoint that keeps the bodies it receives.
type Endpoint struct {
	*httptest.Server

	mu     sync.Mutex
	bodies []string
}

// NewEndpoint starts an HTTPS endpoint that gives these answers in turn, then repeats the last;
// without any it answers 200. It stops with the test.
func NewEndpoint(t testing.TB, answers ...http.HandlerFunc) *Endpoint {
	t.Helper()
	e := newEndpoint(t, answers)
	e.StartTLS()
	return e
}

// NewPlainEndpoint is NewEndpoint over plain http.
func NewPlainEndpoint(t testing.TB, answers ...http.HandlerFunc) *Endpoint {
	t.Helper()
	e := newEndpoint(t, answers)
	e.Start()
	return e
}

func newEndpoint(t testing.TB, answers []http.HandlerFunc) *Endpoint {
	e := &Endpoint{}
	e.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter,
		q *http.Request,
	) {
		body, err := io.ReadAll(q.Body)
		if err != nil {
			t.Errorf("reading a delivery: %v", err)
		}
		e.mu.Lock()
		e.bodies = append(e.bodies, string(body))
		count := len(e.bodies)
		e.mu.Unlock()
		if len(answers) > 0 {
			answers[min(count, len(answers))-1](w, q)
		}
	}))
	t.Cleanup(e.Close)
	return e
}

// Received returns the received bodies, in order.
func (e *Endpoint) Received() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.bodies)
}

// Status answers with a status and nothing else.
func Status(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
}

// endpointRoots trust the certificate that every test server of net/http has.
var endpointRoots = sync.OnceValue(func() *x509.CertPool {
	server := httptest.NewTLSServer(nil)
	defer server.Close()
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	return roots
})
