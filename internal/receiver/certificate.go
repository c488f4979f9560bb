package receiver

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"time"
)

// WrongName is the host that the wrong certificate names.
const WrongName = "another-host.example"

// wrongCertificate makes a certificate that is valid, but for another name and from an untrusted
// issuer.
func wrongCertificate(now time.Time) (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("making the key of the sample receiver: %w", err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(now.UnixMicro()), Subject: pkix.Name{CommonName: WrongName},
		DNSNames: []string{WrongName}, NotBefore: now.Add(-time.Hour),
		NotAfter: now.Add(365 * 24 * time.Hour), KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	signed, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("making the certificate of the sample receiver: %w", err)
	}
	return tls.Certificate{Certificate: [][]byte{signed}, PrivateKey: key}, nil
}
