package main

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// writePair puts a new self-signed pair into two files.
func writePair(t *testing.T, folder string) (cert, key string, pair tls.Certificate) {
	t.Helper()
	pair, _ = selfSigned(t)
	der, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	cert, key = filepath.Join(folder, "cert.pem"), filepath.Join(folder, "key.pem")
	for path, block := range map[string]*pem.Block{
		cert: {Type: "CERTIFICATE", Bytes: pair.Certificate[0]},
		key:  {Type: "PRIVATE KEY", Bytes: der},
	} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cert, key, pair
}

func TestServesHTTPSWithItsOwnCertificate(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	cert, key, pair := writePair(t, w.folder)
	w.vars["DRAWBRIDGE_TLS_CERT"], w.vars["DRAWBRIDGE_TLS_KEY"] = cert, key
	s := w.serve()
	if !strings.HasPrefix(s.url, "https://127.0.0.1:") {
		t.Fatalf("the ready line names %s", s.url)
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
	answer, err := client.Get(s.url + "/healthz")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK || answer.ProtoMajor != 2 ||
		!strings.HasPrefix(answer.Header.Get("Strict-Transport-Security"), "max-age=") {
		t.Errorf("answered %s %s with %v", answer.Proto, answer.Status, answer.Header)
	}
	old := strings.TrimPrefix(s.url, "https://")
	if conn, err := tls.Dial("tcp", old, &tls.Config{
		RootCAs: roots, MaxVersion: tls.VersionTLS11,
	}); err == nil {
		_ = conn.Close()
		t.Error("TLS 1.1 is accepted")
	}
}

// TestAutocert gets a certificate from an authority and shares it: a second
// process asks for none.
func TestAutocert(t *testing.T) {
	t.Parallel()
	const name = "bridge.lender.example"
	w := newWorld(t)
	var address atomic.Value
	ca := newAuthority(t, name, func() string {
		found, _ := address.Load().(string)
		return found
	})
	w.vars["DRAWBRIDGE_TLS_AUTOCERT"] = name
	w.vars["DRAWBRIDGE_TLS_AUTOCERT_DIRECTORY"] = ca.url + "/directory"
	roots := x509.NewCertPool()
	roots.AddCert(ca.root)
	for range 2 {
		s := w.serve()
		address.Store(strings.TrimPrefix(s.url, "https://"))
		dialer := &net.Dialer{Timeout: 20 * time.Second}
		conn, err := tls.DialWithDialer(dialer, "tcp", strings.TrimPrefix(s.url, "https://"),
			&tls.Config{RootCAs: roots, ServerName: name})
		if err != nil {
			t.Fatalf("no certificate: %v\n%s", err, s.logged())
		}
		_ = conn.Close()
		if status := s.stop(); status != 0 {
			t.Errorf("the service ended with %d", status)
		}
	}
	if ca.issued != 1 {
		t.Errorf("%d certificates were issued, want 1 that both share", ca.issued)
	}
}
