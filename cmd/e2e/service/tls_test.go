package service

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"drawbridge/cmd/e2e/e2etest"
)

func TestServesHTTPSWithItsOwnCertificate(t *testing.T) {
	t.Parallel()
	w := e2etest.New(t)
	cert, key, pair := e2etest.WritePair(t, w.Folder)
	w.Env["DRAWBRIDGE_TLS_CERT"], w.Env["DRAWBRIDGE_TLS_KEY"] = cert, key
	s := w.Serve()
	if !strings.HasPrefix(s.URL, "https://127.0.0.1:") {
		t.Fatalf("the ready line names %s", s.URL)
	}
	leaf, err := x509.ParseCertificate(pair.Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(leaf)
	client := &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: true,
	}}
	answer, err := client.Get(s.URL + "/healthz")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK || answer.ProtoMajor != 2 ||
		!strings.HasPrefix(answer.Header.Get("Strict-Transport-Security"), "max-age=") {
		t.Errorf("answered %s %s with %v", answer.Proto, answer.Status, answer.Header)
	}
	old := strings.TrimPrefix(s.URL, "https://")
	if conn, err := tls.Dial("tcp", old, &tls.Config{
		RootCAs: roots, MaxVersion: tls.VersionTLS11,
	}); err == nil {
		_ = conn.Close()
		t.Error("TLS 1.1 is accepted")
	}
}

// TestAutocert gets a certificate from an authority and shares it: a second process
// requests none.
func TestAutocert(t *testing.T) {
	t.Parallel()
	const name = "bridge.lender.example"
	w := e2etest.New(t)
	var address atomic.Value
	ca := newAuthority(t, name, func() string {
		found, _ := address.Load().(string)
		return found
	})
	w.Env["DRAWBRIDGE_TLS_AUTOCERT"] = name
	w.Env["DRAWBRIDGE_TLS_AUTOCERT_DIRECTORY"] = ca.url + "/directory"
	roots := x509.NewCertPool()
	roots.AddCert(ca.root)
	for range 2 {
		s := w.Serve()
		address.Store(strings.TrimPrefix(s.URL, "https://"))
		dialer := &net.Dialer{Timeout: 20 * time.Second}
		conn, err := tls.DialWithDialer(dialer, "tcp", strings.TrimPrefix(s.URL, "https://"),
			&tls.Config{RootCAs: roots, ServerName: name})
		if err != nil {
			t.Fatalf("no certificate: %v\n%s", err, s.Logged())
		}
		_ = conn.Close()
		if status := s.Stop(); status != 0 {
			t.Errorf("the service ended with %d", status)
		}
	}
	if ca.issued != 1 {
		t.Errorf("%d certificates were issued, want 1 that both share", ca.issued)
	}
}
