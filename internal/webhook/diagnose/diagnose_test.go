package diagnose

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"regexp"
	"strings"
	"testing"
	"time"

	"drawbridge/internal/webhook/delivery"
	"drawbridge/internal/webhook/sender"
)

// Each cause has its advice, so that every failure is explained, and is derived from the
// text of attempts that have no code.
func TestEveryCauseHasAdvice(t *testing.T) {
	t.Parallel()
	codes := regexp.MustCompile(`^[a-z_0-9]+$`)
	for _, cause := range sender.Causes() {
		text := cause.Text()
		if !codes.MatchString(string(cause)) || text == "" || strings.Contains(text, ":") {
			t.Errorf("%q says %q; a colon would end it too early", cause, text)
		}
		for _, said := range []string{text, text + ": of all things: this"} {
			if got := sender.CauseOf(said); got != cause {
				t.Errorf("%q is read as %q, want %q", said, got, cause)
			}
		}
		if cause != sender.CauseStatus && adviceByCause[cause] == "" {
			t.Errorf("there is no advice for %q", cause)
		}
	}
	if len(sender.Causes()) != len(adviceByCause)+1 {
		t.Errorf("%d causes, %d pieces of advice", len(sender.Causes()), len(adviceByCause))
	}
	got := sender.CauseOf("the endpoint answered 301 Moved Permanently")
	if got != sender.CauseStatus {
		t.Errorf("an answer is read as %q", got)
	}
}

func TestDiagnose(t *testing.T) {
	t.Parallel()
	html := []sender.Header{{Name: "content-type", Value: "text/html; charset=utf-8"}}
	tests := []struct {
		name    string
		attempt delivery.Attempt
		owner   Owner
		summary string
		next    string
	}{
		{"delivered", delivery.Attempt{HTTPStatus: 200}, "", "", ""},
		{"no such name", delivery.Attempt{
			ErrorClass: sender.ClassDNS, Error: sender.CauseNoName.Text() + ": hooks.example",
		}, OwnerPartner, "The host name does not exist: hooks.example.", "typing mistake"},
		{
			"refused",
			delivery.Attempt{ErrorClass: sender.ClassConnect, Error: sender.CauseRefused.Text()},
			OwnerPartner,
			"The connection was refused.", "Nothing listens",
		},
		{
			"expired",
			delivery.Attempt{
				ErrorClass: sender.ClassTLS,
				Error:      sender.CauseExpired.Text() + ": it ended on 2026-11-19 09:30 UTC, 2 days ago",
			},
			OwnerPartner, "The certificate has expired: it ended on 2026-11-19 09:30 UTC, 2 days ago.",
			"renew the certificate",
		},
		{
			"unreachable",
			delivery.Attempt{ErrorClass: sender.ClassConnect, Error: sender.CauseUnreachable.Text()},
			OwnerNetwork,
			"cannot be reached", "firewall",
		},
		{"blocked", delivery.Attempt{
			ErrorClass: sender.ClassBlocked, Error: sender.CauseBlocked.Text() +
				": 10.0.0.1:443 may not be called",
		}, OwnerPartner, "The address is refused", "public addresses"},
		{"waiting", delivery.Attempt{
			ErrorClass: sender.ClassTimeout, Error: sender.CauseAnswerTime.Text(),
			Duration: 30 * time.Second,
			DNS:      12 * time.Millisecond, Connect: 80 * time.Millisecond, TLS: 120 * time.Millisecond,
		}, OwnerPartner, "(30.0 s in all: name lookup 12 ms, connecting 80 ms, TLS 120 ms, waiting " +
			"for the first byte 29.8 s).", "answer at once"},
		{"connecting", delivery.Attempt{
			ErrorClass: sender.ClassTimeout, Error: sender.CauseConnectTime.Text(),
			Duration: 30 * time.Second,
			DNS:      12 * time.Millisecond, Connect: 29988 * time.Millisecond,
		}, OwnerPartner, "(30.0 s in all: name lookup 12 ms, connecting 30.0 s).", "firewall"},
		{"redirect", delivery.Attempt{
			ErrorClass: sender.ClassHTTP3xx, HTTPStatus: 301,
			Error:           "the endpoint answered 301 Moved Permanently",
			ResponseHeaders: []sender.Header{{Name: "location", Value: "https://new.example/"}},
		}, OwnerPartner, "redirects are not followed.", "points to https://new.example/"},
		{"redirect to nowhere", delivery.Attempt{
			ErrorClass: sender.ClassHTTP3xx, HTTPStatus: 304,
			Error: "the endpoint answered 304 Not Modified",
		}, OwnerPartner, "redirects are not followed.", "which URL answers by itself"},
		{"unauthorized", delivery.Attempt{
			ErrorClass: sender.ClassHTTP4xx, HTTPStatus: 401,
			Error: "the endpoint answered 401 Unauthorized",
		}, OwnerPartner, "The endpoint answered 401 Unauthorized.", "wrong secret"},
		{
			"unauthorized with a signature", answering(401, sender.AuthHMAC),
			OwnerPartner, "", "wrong secret",
		},
		{"unauthorized with a token", answering(401, sender.AuthBearer), OwnerPartner, "", "wrong token"},
		{
			"unauthorized with a header", answering(401, sender.AuthNone, sender.Header{
				Name: "x-api-key", Value: "key",
			}),
			OwnerPartner, "", "a custom header with a wrong value",
		},
		{
			"unauthorized without anything", answering(401, sender.AuthNone, sender.Header{
				Name: "x-tenant", Value: "5", Plain: true,
			}),
			OwnerPartner, "", "wants credentials, and none were sent",
		},
		{
			"forbidden without anything", answering(403, sender.AuthNone),
			OwnerPartner, "", "may want credentials",
		},
		{"forbidden with a token", answering(403, sender.AuthBearer), OwnerPartner, "", "wrong token"},
		{
			"not found without anything", answering(404, sender.AuthNone),
			OwnerPartner, "", "path in the URL",
		},
		{"forbidden by a firewall", delivery.Attempt{
			ErrorClass: sender.ClassHTTP4xx, HTTPStatus: 403, Error: "the endpoint answered 403 Forbidden",
			ResponseHeaders: html,
		}, OwnerPartner, "403 Forbidden with a web page.", "firewall or bot protection"},
		{"a web page without its type", delivery.Attempt{
			ErrorClass: sender.ClassHTTP4xx, HTTPStatus: 403, Error: "the endpoint answered 403 Forbidden",
			ResponseBody: []byte("\n <!DOCTYPE html><html>"),
		}, OwnerPartner, "with a web page.", "firewall"},
		{"forbidden by the endpoint", delivery.Attempt{
			ErrorClass: sender.ClassHTTP4xx, HTTPStatus: 403, Error: "the endpoint answered 403 Forbidden",
			ResponseBody: []byte(`{"error":"bad signature"}`),
		}, OwnerPartner, "403 Forbidden.", "wrong secret"},
		{"not found as a web page", delivery.Attempt{
			ErrorClass: sender.ClassHTTP4xx, HTTPStatus: 404, Error: "the endpoint answered 404 Not Found",
			ResponseHeaders: html,
		}, OwnerPartner, "404 Not Found.", "path in the URL"},
		{"too many", delivery.Attempt{
			ErrorClass: sender.ClassHTTP4xx, HTTPStatus: 429,
			Error:           "the endpoint answered 429 Too Many Requests",
			ResponseHeaders: []sender.Header{{Name: "retry-after", Value: "120"}},
		}, OwnerPartner, "429", "faster than the endpoint allows. Lower"},
		{"a status without advice", delivery.Attempt{
			ErrorClass: sender.ClassHTTP4xx, HTTPStatus: 418,
			Error: "the endpoint answered 418 I'm a teapot",
		}, OwnerPartner, "418", "endpoint's log"},
		{"server error", delivery.Attempt{
			ErrorClass: sender.ClassHTTP5xx, HTTPStatus: 500, Error: "the endpoint answered 500 x",
		}, OwnerPartner, "500", "failed while it worked"},
		{"unavailable for a while", delivery.Attempt{
			ErrorClass: sender.ClassHTTP5xx, HTTPStatus: 503, Error: "the endpoint answered 503 x",
			ResponseHeaders: []sender.Header{{Name: "retry-after", Value: "120"}},
		}, OwnerPartner, "503", "retry-after 120"},
		{
			"process died",
			delivery.Attempt{ErrorClass: sender.ClassUnknown},
			OwnerUs,
			"outcome is not known.", "deliver it twice",
		},
		{
			"process died, in other words",
			delivery.Attempt{ErrorClass: sender.ClassUnknown, Error: "it stopped"},
			OwnerUs, "It stopped.", "deliver it twice",
		},
		{
			"an old text",
			delivery.Attempt{ErrorClass: sender.ClassTLS, Error: "tls: bad"},
			OwnerPartner,
			"Tls: bad.", "endpoint's log",
		},
		{
			"no text",
			delivery.Attempt{ErrorClass: sender.ClassTLS},
			OwnerPartner, "error class tls.",
			"endpoint's log",
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got := Attempt(test.attempt)
			if got.Owner != test.owner || !strings.Contains(got.Summary, test.summary) ||
				!strings.Contains(got.Next, test.next) || (got.Next == "") != (test.owner == "") {
				t.Errorf("diagnosis %+v", got)
			}
		})
	}
}

// answering is an attempt of a subscription that got this answer.
func answering(status int, auth sender.Auth, custom ...sender.Header) delivery.Attempt {
	return delivery.Attempt{
		ErrorClass: sender.ClassHTTP4xx, HTTPStatus: status, Error: "the endpoint answered",
		RequestHeaders: sender.Credentials(auth, custom),
	}
}

// A real failure is explained by its own text.
func TestDiagnoseOfARealAttempt(t *testing.T) {
	t.Parallel()
	certificate := expired(t)
	endpoint := httptest.NewUnstartedServer(http.NotFoundHandler())
	endpoint.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}}
	endpoint.StartTLS()
	t.Cleanup(endpoint.Close)
	roots := x509.NewCertPool()
	roots.AddCert(certificate.Leaf)
	send := sender.New(sender.Config{
		Policy:  sender.Policy{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}},
		RootCAs: roots,
	})
	t.Cleanup(send.Close)
	attempt := send.Send(t.Context(), sender.Request{
		URL: endpoint.URL, Event: sender.Identity{Kind: "task.created"}, Number: 1,
		Auth: sender.AuthNone,
	})
	got := Attempt(delivery.Attempt{
		ErrorClass: attempt.Class, Cause: attempt.Cause, Error: attempt.Error,
		Duration: attempt.Timings.Total,
	})
	if got.Owner != OwnerPartner || !strings.Contains(got.Summary, "2 days ago") ||
		!strings.Contains(got.Next, "renew") {
		t.Errorf("diagnosis %+v", got)
	}
}

// expired is a certificate for this machine that expired two days ago.
func expired(t *testing.T) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-100 * time.Hour), NotAfter: time.Now().Add(-49 * time.Hour),
		IsCA: true, BasicConstraintsValid: true,
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(raw)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{raw}, PrivateKey: key, Leaf: leaf}
}
