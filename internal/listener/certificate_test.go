package listener

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// writePair puts a new self-signed pair into two files, and returns the certificate.
func writePair(t *testing.T, folder string) (cert, key, der string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	signed, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	cert, key = filepath.Join(folder, "cert.pem"), filepath.Join(folder, "key.pem")
	for path, block := range map[string]*pem.Block{
		cert: {Type: "CERTIFICATE", Bytes: signed}, key: {Type: "PRIVATE KEY", Bytes: encoded},
	} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cert, key, string(signed)
}

func TestCertificateFilesAreReadAgain(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	cert, key, first := writePair(t, folder)
	files := &certificateFiles{cert: cert, key: key}
	if err := files.load(); err != nil {
		t.Fatal(err)
	}
	current := func() string {
		pair, err := files.get(nil)
		if err != nil {
			t.Fatal(err)
		}
		return string(pair.Certificate[0])
	}
	if current() != first {
		t.Error("another certificate is served")
	}
	_, _, second := writePair(t, folder)
	date := func(path string, at time.Time) {
		t.Helper()
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
	}
	later := time.Now().Add(time.Minute)
	date(cert, later)
	if current() != second {
		t.Error("the new certificate is not served")
	}
	// A copy that keeps the time of its source may be older than the key.
	date(key, later.Add(time.Minute))
	if current() != second {
		t.Error("another certificate is served")
	}
	_, _, second = writePair(t, folder)
	date(cert, later.Add(time.Second))
	date(key, later.Add(time.Minute))
	if current() != second {
		t.Error("a new certificate that is older than its key is not served")
	}
	if err := os.WriteFile(cert, []byte("half a file"), 0o600); err != nil {
		t.Fatal(err)
	}
	if current() != second {
		t.Error("a broken file replaced a good certificate")
	}
	const named = "DRAWBRIDGE_TLS_CERT "
	if err := files.load(); err == nil || !strings.HasPrefix(err.Error(), named) {
		t.Errorf("of a broken file it says %v", err)
	}
	if err := os.Remove(cert); err != nil {
		t.Fatal(err)
	}
	if err := files.load(); err == nil || !strings.HasPrefix(err.Error(), named) {
		t.Errorf("of one that is gone it says %v", err)
	}
}
