package webhook_test

import (
	"net/http/httptest"
	"testing"
	"time"

	"drawbridge/internal/webhook"
)

// The log says how each attempt travelled: over a new connection, over one that
// was kept, and not at all.
func TestAttemptsTellHowTheyTravelled(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	endpoint := newReceiver(t, nil)
	h.subscribe(t, endpoint.URL, nil)
	for n := range 2 {
		h.clock.move(time.Second)
		h.publish(t)
		h.work(t)
		attempt := h.newest(t).Attempts[0]
		if attempt.Protocol != "HTTP/1.1" || attempt.TLSVersion != "TLS 1.3" {
			t.Errorf("attempt over %q, %q", attempt.Protocol, attempt.TLSVersion)
		}
		if attempt.Reused == nil || *attempt.Reused != (n == 1) {
			t.Errorf("request %d: reused %v", n+1, attempt.Reused)
		}
		want := endpoint.Certificate().NotAfter
		if attempt.CertificateExpires == nil || !attempt.CertificateExpires.Equal(want) {
			t.Errorf("certificate until %v, want %v", attempt.CertificateExpires, want)
		}
	}
	endpoint.Close()
	h.clock.move(time.Second)
	h.publish(t)
	h.work(t)
	attempt := h.newest(t).Attempts[0]
	if attempt.ErrorClass != webhook.ClassConnect || attempt.Protocol != "" ||
		attempt.Reused != nil || attempt.TLSVersion != "" || attempt.CertificateExpires != nil {
		t.Errorf("of a refused connection: %+v", attempt)
	}
}

func TestAnAttemptOverHTTP2SaysSo(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	endpoint := newReceiver(t, nil)
	modern := httptest.NewUnstartedServer(endpoint.Config.Handler)
	modern.EnableHTTP2 = true
	modern.StartTLS()
	t.Cleanup(modern.Close)
	h.subscribe(t, modern.URL, nil)
	h.publish(t)
	h.work(t)
	if attempt := h.newest(t).Attempts[0]; attempt.Protocol != "HTTP/2" {
		t.Errorf("protocol %q, error %q", attempt.Protocol, attempt.Error)
	}
}
