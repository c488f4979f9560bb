// Package emailtest has mail servers for tests: one that behaves like a mail server, over real
// sockets and real TLS, and one that follows a script to misbehave. It does not depend on the code
// under test.
package emailtest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// Run runs the tests of a package with a certificate authority of their own as the trusted root,
// set in the way an operator would: by SSL_CERT_FILE. It is for TestMain and returns the exit
// status.
func Run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "drawbridge-emailtest-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }() // the system cleans its own folder
	path := filepath.Join(dir, "roots.pem")
	block := &pem.Block{Type: "CERTIFICATE", Bytes: theAuthority().certificate.Raw}
	if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	// Go reads the variable once, at the first verification, so it is set here and not in a test.
	if err := os.Setenv("SSL_CERT_FILE", path); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// authority signs certificates.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

// theAuthority is the authority that Run makes trusted.
var theAuthority = sync.OnceValue(newAuthority)

func newAuthority() *authority {
	key := newKey()
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: "Drawbridge test authority"},
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              time.Now().Add(24 * time.Hour),
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign,
	}
	return &authority{certificate: sign(template, template, key, key), key: key}
}

// Certificate returns a certificate for localhost and 127.0.0.1. An untrusted one is signed by an
// unknown authority.
func Certificate(trusted bool) tls.Certificate {
	issuer := theAuthority()
	if !trusted {
		issuer = newAuthority()
	}
	key := newKey()
	certificate := sign(&x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()),
		Subject:      pkix.Name{CommonName: "localhost"},
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(24 * time.Hour),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames:     []string{"localhost"},
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1)},
	}, issuer.certificate, key, issuer.key)
	return tls.Certificate{Certificate: [][]byte{certificate.Raw}, PrivateKey: key}
}

// newKey and sign fail only without a random source; no test can go on then.

func newKey() *ecdsa.PrivateKey {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	return key
}

func sign(template, issuer *x509.Certificate, key, issuerKey *ecdsa.PrivateKey) *x509.Certificate {
	raw, err := x509.CreateCertificate(rand.Reader, template, issuer, &key.PublicKey, issuerKey)
	if err != nil {
		panic(err)
	}
	certificate, err := x509.ParseCertificate(raw)
	if err != nil {
		panic(err)
	}
	return certificate
}
