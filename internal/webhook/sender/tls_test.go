package sender

import (
	"crypto/tls"
	"strings"
	"testing"
	"time"
)

func TestSendTLSFailures(t *testing.T) {
	t.Parallel()
	ca, stranger := newAuthority(t), newAuthority(t)
	good := ca.issue(t, hookName, -time.Hour, time.Hour)
	clientCert := good.Clone()
	clientCert.ClientAuth = tls.RequireAnyClientCert
	old := good.Clone()
	old.MinVersion, old.MaxVersion = tls.VersionTLS10, tls.VersionTLS11
	tests := []struct {
		name   string
		config *tls.Config
		script func(*endpointConn)
		class  ErrorClass
		text   string
	}{
		{
			"expired", ca.issue(t, hookName, -100*time.Hour, -49*time.Hour), respond(ok200), ClassTLS,
			"the certificate has expired: it ended on ",
		},
		{
			"expired, how long ago", ca.issue(t, hookName, -100*time.Hour, -49*time.Hour), respond(ok200),
			ClassTLS, " UTC, 2 days ago",
		},
		{
			"not valid yet", ca.issue(t, hookName, time.Hour, 2*time.Hour), respond(ok200), ClassTLS,
			"the certificate is not valid yet: it begins on ",
		},
		{
			"another name", ca.issue(t, "other.example", -time.Hour, time.Hour), respond(ok200), ClassTLS,
			"the certificate is for another name: it is valid for other.example, not for hooks.example",
		},
		{
			"unknown issuer", stranger.issue(t, hookName, -time.Hour, time.Hour), respond(ok200), ClassTLS,
			"the certificate is not trusted: its issuer is unknown",
		},
		{
			"client certificate wanted", clientCert, respond(ok200), ClassTLS,
			"the endpoint refused the TLS handshake: tls: certificate required",
		},
		{"old TLS only", old, respond(ok200), ClassTLS, "the endpoint refused the TLS handshake"},
		{"no TLS", nil, func(c *endpointConn) {
			c.say("HTTP/1.1 400 Bad Request\r\n\r\n")
			c.untilClosed()
		}, ClassTLS, "the endpoint does not speak TLS"},
		{"closed at once", nil, func(*endpointConn) {}, ClassTLS, "the TLS handshake broke off"},
		{"reset", nil, func(c *endpointConn) {
			_, _ = c.reader.Peek(1)
			c.reset()
		}, ClassTLS, "the TLS handshake broke off"},
		{
			"silence", nil, (*endpointConn).untilClosed, ClassTimeout,
			"time ran out during the TLS handshake",
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			end := serve(t, test.config, test.script)
			right := func(a Attempt) bool {
				return a.Class == test.class && strings.Contains(a.Error, test.text)
			}
			attempt, _ := sendUntil(t, func(c *Config) { c.RootCAs = ca.pool },
				func() Request { return hook(end.secure()) }, right)
			if !right(attempt) {
				t.Errorf("class %q, error %q; want %q, %q", attempt.Class, attempt.Error, test.class,
					test.text)
			}
			if attempt.Status != 0 || !attempt.Address.IsValid() || attempt.Timings.TLS <= 0 {
				t.Errorf("status %d, address %s, TLS %s", attempt.Status, attempt.Address,
					attempt.Timings.TLS)
			}
			if requests, _ := end.got(); len(requests) != 0 {
				t.Errorf("the endpoint got %d requests", len(requests))
			}
		})
	}
}

// The certificate must be for the name in the URL, an address included.
func TestSendTLSToAnAddress(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	end := serve(t, ca.issue(t, hookName, -time.Hour, time.Hour), respond(ok200))
	sender := newTestSender(t, func(c *Config) { c.RootCAs = ca.pool })
	url := strings.Replace(end.plain(), "http://", "https://", 1)
	attempt := sender.Send(t.Context(), hook(url))
	if attempt.Class != ClassTLS || !strings.HasPrefix(attempt.Error, CauseWrongName.Text()) {
		t.Errorf("class %q, error %q", attempt.Class, attempt.Error)
	}
}

func TestSendReportsTLSAndTimings(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	end := serve(t, ca.issue(t, hookName, -time.Hour, 5*time.Hour), respond(ok200))
	sender := newTestSender(t, func(c *Config) { c.RootCAs = ca.pool })
	first := sender.Send(t.Context(), hook(end.secure()))
	timings := first.Timings
	if !first.Delivered() || timings.DNS <= 0 || timings.Connect <= 0 || timings.TLS <= 0 ||
		timings.FirstByte <= 0 || timings.Total < timings.DNS+timings.Connect+timings.TLS {
		t.Errorf("error %q, timings %+v", first.Error, timings)
	}
	if left := time.Until(first.CertificateExpires); left < 4*time.Hour || left > 5*time.Hour {
		t.Errorf("the certificate expires in %s", left)
	}
	if first.Address.String() != end.listener.Addr().String() || first.Protocol != "HTTP/1.1" ||
		first.TLSVersion != "TLS 1.3" {
		t.Errorf("address %s, protocol %s over %s", first.Address, first.Protocol, first.TLSVersion)
	}
	second := sender.Send(t.Context(), hook(end.secure()))
	if !second.Reused || second.Timings.DNS+second.Timings.Connect+second.Timings.TLS != 0 ||
		second.Address != first.Address || second.CertificateExpires != first.CertificateExpires ||
		second.TLSVersion != first.TLSVersion {
		t.Errorf("on a reused connection: %+v", second)
	}
}
