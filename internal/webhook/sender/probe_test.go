package sender

import (
	"crypto/tls"
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestProbeReadsCertificates(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	ca := newAuthority(t)
	ca.cert.NotAfter = time.Now().Add(400 * day)
	tests := []struct {
		name  string
		until time.Duration
		warns int
	}{
		{"two months left", 60 * day, 0},
		{"20 days left", 20 * day, 21},
		{"6 days left", 6 * day, 7},
		{"12 hours left", 12 * time.Hour, 1},
		{"expired", -49 * time.Hour, -1},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			end := serve(t, ca.issue(t, hookName, -100*time.Hour, test.until), respond(ok200))
			sender := newTestSender(t, func(c *Config) { c.RootCAs = ca.pool })
			probe := sender.Probe(t.Context(), end.secure(), time.Minute, false)
			if failed := probe.Class != ""; failed != (test.warns == -1) {
				t.Errorf("class %q, error %q", probe.Class, probe.Error)
			}
			if test.warns == -1 {
				if probe.Class != ClassTLS || !strings.HasPrefix(probe.Error, CauseExpired.Text()) {
					t.Errorf("class %q, error %q", probe.Class, probe.Error)
				}
			}
			left := time.Until(probe.Expires) - test.until
			if left > time.Minute || left < -time.Minute {
				t.Errorf("expires %s, want in %s", probe.Expires, test.until)
			}
			if got := CertificateWarning(probe.Expires, time.Now()); got != test.warns {
				t.Errorf("warns at %d days, want %d", got, test.warns)
			}
			if requests, _ := end.got(); len(requests) != 0 {
				t.Errorf("a look at the certificate sent %d requests", len(requests))
			}
		})
	}
}

func TestProbeFindsWhatWouldKeepDeliveriesFromArriving(t *testing.T) {
	t.Parallel()
	ca, stranger := newAuthority(t), newAuthority(t)
	good := ca.issue(t, hookName, -time.Hour, time.Hour)
	tests := []struct {
		name   string
		config *tls.Config
		script func(*endpointConn)
		class  ErrorClass
		text   string
	}{
		{"well", good, respond("HTTP/1.1 204 No Content\r\n\r\n"), "", ""},
		{"no HEAD there", good, respond("HTTP/1.1 405 Method Not Allowed\r\n\r\n"), "", ""},
		{"busy", good, respond("HTTP/1.1 503 Service Unavailable\r\n\r\n"), "", ""},
		{
			"redirect", good,
			respond("HTTP/1.1 302 Found\r\nLocation: https://else.example/\u009b2J\r\n\r\n"), ClassHTTP3xx,
			"the endpoint answered: 302, a redirect to https://else.example/",
		},
		{
			"wrong name", ca.issue(t, "other.example", -time.Hour, time.Hour), respond(ok200), ClassTLS,
			CauseWrongName.Text(),
		},
		{
			"unknown issuer", stranger.issue(t, hookName, -time.Hour, time.Hour), respond(ok200),
			ClassTLS, CauseUntrusted.Text(),
		},
		{"hanging before TLS", nil, (*endpointConn).untilClosed, ClassTimeout, CauseTLSTime.Text()},
		{"hanging after the request", good, func(c *endpointConn) {
			_, _ = c.reader.ReadString('\n')
			c.untilClosed()
		}, ClassTimeout, CauseAnswerTime.Text()},
		{"no HTTP", good, respond("220 mail.example ESMTP\r\n"), ClassProtocol, CauseNotHTTP.Text()},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			end := serve(t, test.config, test.script)
			sender := newTestSender(t, func(c *Config) { c.RootCAs = ca.pool })
			right := func(p Probe) bool {
				return p.Class == test.class && strings.HasPrefix(p.Error, test.text)
			}
			var probe Probe
			for limit := 200 * time.Millisecond; limit < 2*time.Minute; limit *= 2 {
				if probe = sender.Probe(t.Context(), end.secure(), limit, true); right(probe) {
					break
				}
			}
			if !right(probe) {
				t.Errorf("class %q, error %q; want %q, %q", probe.Class, probe.Error, test.class, test.text)
			}
			if strings.ContainsRune(probe.Location+probe.Error, 0x9b) {
				t.Errorf("the endpoint's control characters came through: %q", probe.Location)
			}
		})
	}
}

// A probe is no delivery: a HEAD request that identifies itself, carries nothing, and
// uses a separate connection.
func TestProbeSendsNoEvent(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	end := serve(t, ca.issue(t, hookName, -time.Hour, time.Hour), respond(ok200))
	sender := newTestSender(t, func(c *Config) { c.RootCAs = ca.pool })
	if attempt := sender.Send(t.Context(), hook(end.secure())); !attempt.Delivered() {
		t.Fatal(attempt.Error)
	}
	if probe := sender.Probe(t.Context(), end.secure(), time.Minute, true); probe.Class != "" ||
		probe.TLSVersion != "TLS 1.3" || probe.Timings.FirstByte <= 0 || probe.Issuer == "" {
		t.Fatalf("probe %+v", probe)
	}
	requests, _ := end.got()
	if len(requests) != 2 {
		t.Fatalf("%d requests, want the delivery and the probe", len(requests))
	}
	probe := requests[1]
	head := strings.Join(probe.head, "\n")
	if !strings.HasPrefix(probe.line, "HEAD /") || len(probe.body) != 0 || probe.conn != 2 {
		t.Errorf("the probe is %q with %d bytes on %d", probe.line, len(probe.body), probe.conn)
	}
	for _, want := range []string{"x-drawbridge-probe: true", "user-agent: Drawbridge-Webhooks/"} {
		if !strings.Contains(head, want) {
			t.Errorf("the probe does not say %q: %s", want, head)
		}
	}
	for _, secret := range []string{"signature", "authorization", "x-drawbridge-event", "content"} {
		if strings.Contains(head, secret) {
			t.Errorf("the probe sends %q: %s", secret, head)
		}
	}
}

func TestProbeOverHTTP2(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	method := make(chan string, 1)
	end := serveHTTP2(t, ca, func(_ http.ResponseWriter, r *http.Request) {
		method <- r.Method + " " + r.Header.Get("X-Drawbridge-Probe")
	})
	sender := newTestSender(t, func(c *Config) { c.RootCAs = ca.pool })
	probe := sender.Probe(t.Context(), end.hook().URL, time.Minute, true)
	if probe.Class != "" || probe.Status != 200 || probe.Protocol != "HTTP/2.0" {
		t.Errorf("probe %+v", probe)
	}
	if got := <-method; got != "HEAD true" {
		t.Errorf("the endpoint got %q", got)
	}
}
