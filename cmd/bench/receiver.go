package main

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"drawbridge/internal/secret"
	"drawbridge/internal/webhook"
)

// signingSecret signs everything that is sent to the receivers.
var signingSecret = secret.New("whsec_of-the-measurement")

// signatureHeader carries the signature (specification section 5).
const signatureHeader = "x-hmac-signature"

// receivers are a partner's endpoints on this machine. Each has a port of its
// own, checks every signature and confirms with 204.
type receivers struct {
	urls    []string
	roots   *x509.CertPool
	servers []*http.Server
	// arrived is told what came and when its head had been read.
	arrived func(at time.Time, body []byte)
	// count is how many came with the right signature, refused how many not.
	count, refused atomic.Int64
	// delay is how long answers take, in nanoseconds.
	delay atomic.Int64
}

// newReceivers listens on n ports, with TLS or without. arrived may be nil.
func newReceivers(
	ctx context.Context, n int, secured bool, arrived func(at time.Time, body []byte),
) (*receivers, error) {
	r := &receivers{arrived: arrived}
	var config *tls.Config
	scheme := "http"
	if secured {
		scheme = "https"
		certificate, err := selfSigned()
		if err != nil {
			return nil, err
		}
		r.roots = x509.NewCertPool()
		r.roots.AddCert(certificate.Leaf)
		// HTTP/1.1 only: what is measured is one request per connection at a time.
		config = &tls.Config{
			Certificates: []tls.Certificate{certificate}, NextProtos: []string{"http/1.1"},
			MinVersion: tls.VersionTLS12,
		}
	}
	for range n {
		listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
		if err != nil {
			return nil, errors.Join(fmt.Errorf("listening for webhooks: %w", err), r.close())
		}
		r.urls = append(r.urls, scheme+"://"+listener.Addr().String()+"/hook")
		if secured {
			listener = tls.NewListener(listener, config)
		}
		server := &http.Server{Handler: r, ReadHeaderTimeout: time.Minute}
		r.servers = append(r.servers, server)
		go func() { _ = server.Serve(listener) }() // it ends by close
	}
	return r, nil
}

// ServeHTTP receives one webhook.
func (r *receivers) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	at := time.Now()
	if request.Method == http.MethodHead && request.Header.Get("x-drawbridge-probe") == "true" {
		return // the workers' look at the endpoint, which is no webhook
	}
	body, err := io.ReadAll(request.Body)
	expected := webhook.Sign(signingSecret, body)
	if err != nil || !hmac.Equal([]byte(expected), []byte(request.Header.Get(signatureHeader))) {
		r.refused.Add(1)
		http.Error(w, "the signature does not match", http.StatusUnauthorized)
		return
	}
	if r.arrived != nil {
		r.arrived(at, body)
	}
	r.count.Add(1)
	if delay := time.Duration(r.delay.Load()); delay > 0 {
		select {
		case <-time.After(delay):
		case <-request.Context().Done():
		}
	}
	w.WriteHeader(http.StatusNoContent)
}

// check tells whether exactly the wanted number came.
func (r *receivers) check(want int) error {
	if count, refused := r.count.Load(), r.refused.Load(); count != int64(want) || refused != 0 {
		return fmt.Errorf("%d requests arrived and %d were refused, want %d and none",
			count, refused, want)
	}
	return nil
}

func (r *receivers) close() error {
	var errs []error
	for _, server := range r.servers {
		errs = append(errs, server.Close())
	}
	return errors.Join(errs...)
}

// client returns a client that keeps as many connections as it has users.
func (r *receivers) client(users int) *http.Client {
	return &http.Client{
		Transport: &http.Transport{
			MaxIdleConnsPerHost: users,
			TLSClientConfig:     &tls.Config{RootCAs: r.roots, MinVersion: tls.VersionTLS12},
		},
		Timeout: attemptTimeout,
	}
}

// post is the bare floor of a delivery: sign, POST, read the answer.
func post(ctx context.Context, client *http.Client, url string, body []byte) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("making a POST: %w", err)
	}
	request.Header.Set("content-type", "application/json")
	request.Header.Set(signatureHeader, webhook.Sign(signingSecret, body))
	response, err := client.Do(request)
	if err != nil {
		return fmt.Errorf("posting: %w", err)
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		return fmt.Errorf("reading the answer of a POST: %w", err)
	}
	if response.StatusCode != http.StatusNoContent {
		return fmt.Errorf("a POST was answered %s", response.Status)
	}
	return nil
}

// selfSigned makes a certificate for this machine that is its own authority.
func selfSigned() (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("making a key: %w", err)
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "bench"},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(24 * time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("making a certificate: %w", err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("reading a certificate: %w", err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}, nil
}
