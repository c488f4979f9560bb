package service

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"math/big"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/acme"
)

// authority is a small ACME authority (RFC 8555) for one name. It does not verify
// accounts, but issues nothing before it has seen the response to its challenge
// (tls-alpn-01, RFC 8737) at the given address.
type authority struct {
	t      *testing.T
	url    string
	name   string
	look   func() string
	root   *x509.Certificate
	key    *ecdsa.PrivateKey
	mu     sync.Mutex
	valid  bool
	chain  []byte
	issued int
}

func newAuthority(t *testing.T, name string, look func() string) *authority {
	t.Helper()
	a := &authority{t: t, name: name, look: look}
	var err error
	if a.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		t.Fatal(err)
	}
	root := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "Test authority"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, root, root, a.key.Public(), a.key)
	if err == nil {
		a.root, err = x509.ParseCertificate(der)
	}
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(a)
	t.Cleanup(server.Close)
	a.url = server.URL
	return a
}

// ServeHTTP implements the protocol; each path is one kind of resource.
func (a *authority) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Replay-Nonce", rand.Text())
	w.Header().Set("Content-Type", "application/json")
	a.mu.Lock()
	defer a.mu.Unlock()
	var status int
	var answer any
	switch r.URL.Path {
	case "/directory":
		status, answer = http.StatusOK, map[string]string{
			"newNonce": a.url + "/nonce", "newAccount": a.url + "/account",
			"newOrder": a.url + "/order",
		}
	case "/nonce":
		status, answer = http.StatusOK, struct{}{}
	case "/account":
		w.Header().Set("Location", a.url+"/account/1")
		status, answer = http.StatusCreated, map[string]string{"status": "valid"}
	case "/order":
		w.Header().Set("Location", a.url+"/order/1")
		status, answer = http.StatusCreated, a.order()
	case "/order/1":
		status, answer = http.StatusOK, a.order()
	case "/authorization":
		status, answer = http.StatusOK, a.authorization()
	case "/challenge":
		a.valid = a.check() == nil
		status, answer = http.StatusOK, a.challenge()
	case "/finalize":
		status, answer = http.StatusOK, a.finalize(r)
	case "/certificate":
		w.Header().Set("Content-Type", "application/pem-certificate-chain")
		_, _ = w.Write(a.chain) // the client notices an incomplete chain
		return
	}
	w.WriteHeader(status)
	if err := json.NewEncoder(w).Encode(answer); err != nil {
		a.t.Errorf("answering %s: %v", r.URL.Path, err)
	}
}

func (a *authority) status(done bool) string {
	if done {
		return "valid"
	}
	return "pending"
}

func (a *authority) order() map[string]any {
	state := "pending"
	switch {
	case a.chain != nil:
		state = "valid"
	case a.valid:
		state = "ready"
	}
	return map[string]any{
		"status": state, "identifiers": []any{map[string]string{"type": "dns", "value": a.name}},
		"authorizations": []string{a.url + "/authorization"}, "finalize": a.url + "/finalize",
		"certificate": a.url + "/certificate",
	}
}

func (a *authority) challenge() map[string]string {
	return map[string]string{
		"type": "tls-alpn-01", "url": a.url + "/challenge", "token": "t0ken",
		"status": a.status(a.valid),
	}
}

func (a *authority) authorization() map[string]any {
	return map[string]any{
		"status":     a.status(a.valid),
		"identifier": map[string]string{"type": "dns", "value": a.name},
		"challenges": []any{a.challenge()},
	}
}

// check connects as an authority does and requires the extension of RFC 8737.
func (a *authority) check() error {
	conn, err := tls.Dial("tcp", a.look(), &tls.Config{
		ServerName: a.name, NextProtos: []string{acme.ALPNProto}, InsecureSkipVerify: true,
	})
	if err != nil {
		return err
	}
	defer conn.Close()
	state := conn.ConnectionState()
	proof := []int{1, 3, 6, 1, 5, 5, 7, 1, 31}
	has := slices.ContainsFunc(state.PeerCertificates[0].Extensions, func(e pkix.Extension) bool {
		return e.Critical && e.Id.Equal(proof)
	})
	if state.NegotiatedProtocol != acme.ALPNProto || !has {
		return errors.New("the challenge is not answered")
	}
	return nil
}

// finalize signs the certificate request in the payload of the message.
func (a *authority) finalize(r *http.Request) map[string]any {
	var message struct {
		Payload string `json:"payload"`
	}
	var payload struct {
		CSR string `json:"csr"`
	}
	err := json.NewDecoder(r.Body).Decode(&message)
	text, decodeErr := base64.RawURLEncoding.DecodeString(message.Payload)
	err = errors.Join(err, decodeErr, json.Unmarshal(text, &payload))
	der, decodeErr := base64.RawURLEncoding.DecodeString(payload.CSR)
	request, parseErr := x509.ParseCertificateRequest(der)
	if err = errors.Join(err, decodeErr, parseErr); err != nil || !a.valid {
		a.t.Errorf("finalizing: %v, proven %t", err, a.valid)
		return nil
	}
	a.issued++
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(int64(a.issued) + 1), DNSNames: request.DNSNames,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(90 * 24 * time.Hour),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	signed, err := x509.CreateCertificate(rand.Reader, leaf, a.root, request.PublicKey, a.key)
	if err != nil {
		a.t.Errorf("issuing: %v", err)
	}
	a.chain = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: signed})
	return a.order()
}
