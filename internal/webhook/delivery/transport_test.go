package delivery_test

import (
	"net/http/httptest"
	"testing"
	"time"

	"drawbridge/internal/webhook/sender"
	"drawbridge/internal/webhook/webhooktest"
)

// The log shows how each attempt was sent: over a new connection, over a reused one, and
// not at all.
func TestAttemptsTellHowTheyTravelled(t *testing.T) {
	t.Parallel()
	h := webhooktest.New(t)
	endpoint := webhooktest.NewReceiver(t, nil)
	h.Subscribe(t, endpoint.URL, nil)
	for n := range 2 {
		h.Clock.Move(time.Second)
		h.Publish(t)
		h.Work(t)
		attempt := h.Newest(t).Attempts[0]
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
	h.Clock.Move(time.Second)
	h.Publish(t)
	h.Work(t)
	attempt := h.Newest(t).Attempts[0]
	if attempt.ErrorClass != sender.ClassConnect || attempt.Protocol != "" ||
		attempt.Reused != nil || attempt.TLSVersion != "" || attempt.CertificateExpires != nil {
		t.Errorf("of a refused connection: %+v", attempt)
	}
}

func TestAnAttemptOverHTTP2SaysSo(t *testing.T) {
	t.Parallel()
	h := webhooktest.New(t)
	endpoint := webhooktest.NewReceiver(t, nil)
	modern := httptest.NewUnstartedServer(endpoint.Config.Handler)
	modern.EnableHTTP2 = true
	modern.StartTLS()
	t.Cleanup(modern.Close)
	h.Subscribe(t, modern.URL, nil)
	h.Publish(t)
	h.Work(t)
	if attempt := h.Newest(t).Attempts[0]; attempt.Protocol != "HTTP/2" {
		t.Errorf("protocol %q, error %q", attempt.Protocol, attempt.Error)
	}
}
