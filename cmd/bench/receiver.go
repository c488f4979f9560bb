package main

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"time"

	"drawbridge/internal/secret"
	"drawbridge/internal/webhook/sender"
)

// signingSecret signs all webhooks to the receivers.
var signingSecret = secret.New("whsec_of-the-measurement")

// signatureHeader carries the signature (specification section 5).
const signatureHeader = "x-hmac-signature"

// endpoints listen on this machine, each on its own port.
type endpoints struct {
	urls []string
	// roots verify their certificates, nil without TLS.
	roots   *x509.CertPool
	servers []*httptest.Server
}

// listen opens n endpoints, with TLS or without, that a handler serves.
func listen(n int, secured bool, handler http.Handler) *endpoints {
	e := new(endpoints)
	if secured {
		e.roots = x509.NewCertPool()
	}
	for range n {
		server := httptest.NewUnstartedServer(handler)
		server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
		if secured {
			// HTTP/1.1 only: what is measured is one request per connection at a time.
			server.TLS = &tls.Config{NextProtos: []string{"http/1.1"}, MinVersion: tls.VersionTLS12}
			server.StartTLS()
			e.roots.AddCert(server.Certificate())
		} else {
			server.Start()
		}
		e.urls, e.servers = append(e.urls, server.URL+"/hook"), append(e.servers, server)
	}
	return e
}

func (e *endpoints) close() error {
	var errs []error
	for _, server := range e.servers {
		errs = append(errs, server.Config.Close()) // does not wait for handlers
	}
	return errors.Join(errs...)
}

// client returns a client that keeps one connection for each of its users.
func (e *endpoints) client(users int) *http.Client {
	return &http.Client{
		Transport: &http.Transport{
			MaxIdleConnsPerHost: users,
			TLSClientConfig:     &tls.Config{RootCAs: e.roots, MinVersion: tls.VersionTLS12},
		},
		Timeout: attemptTimeout,
	}
}

// receivers are a partner's endpoints that check every signature and confirm with
// 204.
type receivers struct {
	*endpoints

	scene scene
	// count is how many webhooks had the right signature, refused how many had not.
	count, refused atomic.Int64
}

// scene describes the endpoints and the applications of a measurement.
type scene struct {
	secured   bool
	endpoints int
	// answer is how long the endpoints take to answer, 0 for at once.
	answer time.Duration
	// arrived is called with each webhook's body and when its head had been read; it may be nil.
	arrived func(at time.Time, body []byte)
	// borrowers is how many are prepared, each with an application whose events go to one
	// of the endpoints in turn.
	borrowers int
}

// String is the name of the scene in the table.
func (s scene) String() string {
	noun := "endpoints"
	if s.endpoints == 1 {
		noun = "endpoint"
	}
	return fmt.Sprintf("%s, %d %s", schemeName(s.secured), s.endpoints, noun)
}

func schemeName(secured bool) string {
	if secured {
		return "TLS"
	}
	return "HTTP"
}

// newReceivers opens the endpoints of a scene.
func newReceivers(open *cleanup, s scene) *receivers {
	r := &receivers{scene: s}
	r.endpoints = listen(s.endpoints, s.secured, r)
	open.add(r.close)
	return r
}

// ServeHTTP receives one webhook.
func (r *receivers) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	at := time.Now()
	if request.Method == http.MethodHead && request.Header.Get("x-drawbridge-probe") == "true" {
		return // a worker's probe of the endpoint, which is no webhook
	}
	body, err := io.ReadAll(request.Body)
	expected := sender.Sign(signingSecret, body)
	if err != nil || !hmac.Equal([]byte(expected), []byte(request.Header.Get(signatureHeader))) {
		r.refused.Add(1)
		http.Error(w, "the signature does not match", http.StatusUnauthorized)
		return
	}
	if r.scene.arrived != nil {
		r.scene.arrived(at, body)
	}
	r.count.Add(1)
	if r.scene.answer > 0 {
		select {
		case <-time.After(r.scene.answer):
		case <-request.Context().Done():
		}
	}
	w.WriteHeader(http.StatusNoContent)
}

// waitForWebhooks waits until n webhooks have arrived.
func (r *receivers) waitForWebhooks(ctx context.Context, n int) error {
	return waitUntil(ctx, func() (bool, error) { return r.count.Load() >= int64(n), nil })
}

// check returns an error unless exactly the wanted number of webhooks came.
func (r *receivers) check(want int) error {
	if count, refused := r.count.Load(), r.refused.Load(); count != int64(want) || refused != 0 {
		return fmt.Errorf("%d requests arrived and %d were refused, want %d and none",
			count, refused, want)
	}
	return nil
}

// post is the bare floor of a delivery: sign, POST, read the answer.
func post(ctx context.Context, client *http.Client, url string, body []byte) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("making a POST: %w", err)
	}
	request.Header.Set("content-type", "application/json")
	request.Header.Set(signatureHeader, sender.Sign(signingSecret, body))
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
