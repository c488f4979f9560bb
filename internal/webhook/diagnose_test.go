package webhook

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Each beginning of an error text has its advice, so that nothing that can go
// wrong stays unexplained.
func TestEveryFaultHasAdvice(t *testing.T) {
	t.Parallel()
	file, err := parser.ParseFile(token.NewFileSet(), "fault.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	ast.Inspect(file, func(node ast.Node) bool {
		spec, ok := node.(*ast.ValueSpec)
		if !ok || !strings.HasPrefix(spec.Names[0].Name, "said") || len(spec.Values) != 1 {
			return true
		}
		text, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
		if err != nil {
			t.Fatal(err)
		}
		found++
		if strings.Contains(text, ":") {
			t.Errorf("%q holds a colon, which would end it too early", text)
		}
		advice, ok := adviceBySaid[text]
		if text != saidStatus && (!ok || advice.owner == "" || advice.next == "") {
			t.Errorf("there is no advice for %q", text)
		}
		return true
	})
	if found != len(adviceBySaid)+1 {
		t.Errorf("%d texts, %d pieces of advice", found, len(adviceBySaid))
	}
}

func TestDiagnose(t *testing.T) {
	t.Parallel()
	html := []Header{{Name: "content-type", Value: "text/html; charset=utf-8"}}
	tests := []struct {
		name    string
		attempt AttemptRecord
		owner   Owner
		summary string
		next    string
	}{
		{"delivered", AttemptRecord{HTTPStatus: 200}, "", "", ""},
		{"no such name", AttemptRecord{
			ErrorClass: ClassDNS, Error: saidNoName + ": hooks.example",
		}, OwnerPartner, "The host name does not exist: hooks.example.", "typing mistake"},
		{
			"refused",
			AttemptRecord{ErrorClass: ClassConnect, Error: saidRefused},
			OwnerPartner,
			"The connection was refused.", "Nothing listens",
		},
		{
			"expired",
			AttemptRecord{
				ErrorClass: ClassTLS,
				Error:      saidExpired + ": it ended on 2026-11-19 09:30 UTC, 2 days ago",
			},
			OwnerPartner, "The certificate has expired: it ended on 2026-11-19 09:30 UTC, 2 days ago.",
			"renew the certificate",
		},
		{
			"unreachable",
			AttemptRecord{ErrorClass: ClassConnect, Error: saidUnreachable},
			OwnerNetwork,
			"cannot be reached", "firewall",
		},
		{"blocked", AttemptRecord{
			ErrorClass: ClassBlocked, Error: saidBlocked + ": 10.0.0.1:443 may not be called",
		}, OwnerPartner, "The address is refused", "public addresses"},
		{"waiting", AttemptRecord{
			ErrorClass: ClassTimeout, Error: saidAnswerTime, Duration: 30 * time.Second,
			DNS: 12 * time.Millisecond, Connect: 80 * time.Millisecond, TLS: 120 * time.Millisecond,
		}, OwnerPartner, "(30.0 s in all: name lookup 12 ms, connecting 80 ms, TLS 120 ms, waiting " +
			"for the first byte 29.8 s).", "answer at once"},
		{"connecting", AttemptRecord{
			ErrorClass: ClassTimeout, Error: saidConnectTime, Duration: 30 * time.Second,
			DNS: 12 * time.Millisecond, Connect: 29988 * time.Millisecond,
		}, OwnerPartner, "(30.0 s in all: name lookup 12 ms, connecting 30.0 s).", "firewall"},
		{"redirect", AttemptRecord{
			ErrorClass: ClassHTTP3xx, HTTPStatus: 301, Error: "the endpoint answered 301 Moved Permanently",
			ResponseHeaders: []Header{{Name: "location", Value: "https://new.example/"}},
		}, OwnerPartner, "redirects are not followed.", "points to https://new.example/"},
		{"redirect to nowhere", AttemptRecord{
			ErrorClass: ClassHTTP3xx, HTTPStatus: 304, Error: "the endpoint answered 304 Not Modified",
		}, OwnerPartner, "redirects are not followed.", "which URL answers by itself"},
		{"unauthorized", AttemptRecord{
			ErrorClass: ClassHTTP4xx, HTTPStatus: 401, Error: "the endpoint answered 401 Unauthorized",
		}, OwnerPartner, "The endpoint answered 401 Unauthorized.", "wrong secret"},
		{"forbidden by a firewall", AttemptRecord{
			ErrorClass: ClassHTTP4xx, HTTPStatus: 403, Error: "the endpoint answered 403 Forbidden",
			ResponseHeaders: html,
		}, OwnerPartner, "403 Forbidden with a web page.", "firewall or bot protection"},
		{"a web page without its type", AttemptRecord{
			ErrorClass: ClassHTTP4xx, HTTPStatus: 403, Error: "the endpoint answered 403 Forbidden",
			ResponseBody: []byte("\n <!DOCTYPE html><html>"),
		}, OwnerPartner, "with a web page.", "firewall"},
		{"forbidden by the endpoint", AttemptRecord{
			ErrorClass: ClassHTTP4xx, HTTPStatus: 403, Error: "the endpoint answered 403 Forbidden",
			ResponseBody: []byte(`{"error":"bad signature"}`),
		}, OwnerPartner, "403 Forbidden.", "wrong secret"},
		{"not found as a web page", AttemptRecord{
			ErrorClass: ClassHTTP4xx, HTTPStatus: 404, Error: "the endpoint answered 404 Not Found",
			ResponseHeaders: html,
		}, OwnerPartner, "404 Not Found.", "path in the URL"},
		{"too many", AttemptRecord{
			ErrorClass: ClassHTTP4xx, HTTPStatus: 429, Error: "the endpoint answered 429 Too Many Requests",
			ResponseHeaders: []Header{{Name: "retry-after", Value: "120"}},
		}, OwnerPartner, "429", "faster than the endpoint allows. Lower"},
		{"a status without advice", AttemptRecord{
			ErrorClass: ClassHTTP4xx, HTTPStatus: 418, Error: "the endpoint answered 418 I'm a teapot",
		}, OwnerPartner, "418", "endpoint's log"},
		{"server error", AttemptRecord{
			ErrorClass: ClassHTTP5xx, HTTPStatus: 500, Error: "the endpoint answered 500 x",
		}, OwnerPartner, "500", "failed while it worked"},
		{"unavailable for a while", AttemptRecord{
			ErrorClass: ClassHTTP5xx, HTTPStatus: 503, Error: "the endpoint answered 503 x",
			ResponseHeaders: []Header{{Name: "retry-after", Value: "120"}},
		}, OwnerPartner, "503", "retry-after 120"},
		{
			"process died",
			AttemptRecord{ErrorClass: ClassUnknown},
			OwnerUs,
			"outcome is not known.", "deliver it twice",
		},
		{
			"process died, in other words",
			AttemptRecord{ErrorClass: ClassUnknown, Error: "it stopped"},
			OwnerUs, "It stopped.", "deliver it twice",
		},
		{
			"an old text",
			AttemptRecord{ErrorClass: ClassTLS, Error: "tls: bad"},
			OwnerPartner,
			"Tls: bad.", "endpoint's log",
		},
		{
			"no text",
			AttemptRecord{ErrorClass: ClassTLS},
			OwnerPartner, "error class tls.",
			"endpoint's log",
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got := Diagnose(test.attempt)
			if got.Owner != test.owner || !strings.Contains(got.Summary, test.summary) ||
				!strings.Contains(got.Next, test.next) || (got.Next == "") != (test.owner == "") {
				t.Errorf("diagnosis %+v", got)
			}
		})
	}
}

// A real failure is explained by its own text.
func TestDiagnoseOfARealAttempt(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	end := serve(t, ca.issue(t, hookName, -100*time.Hour, -49*time.Hour), respond(ok200))
	sender := newTestSender(t, func(c *SenderConfig) { c.RootCAs = ca.pool })
	attempt := sender.Send(t.Context(), hook(end.secure()))
	got := Diagnose(AttemptRecord{
		ErrorClass: attempt.Class, Error: attempt.Error, Duration: attempt.Timings.Total,
	})
	if got.Owner != OwnerPartner || !strings.Contains(got.Summary, "2 days ago") ||
		!strings.Contains(got.Next, "renew") {
		t.Errorf("diagnosis %+v", got)
	}
}

func TestRoughly(t *testing.T) {
	t.Parallel()
	tests := []struct {
		d    time.Duration
		want string
	}{
		{0, "less than a second"},
		{time.Second, "1 second"},
		{59 * time.Second, "59 seconds"},
		{90 * time.Second, "1 minute"},
		{5 * time.Hour, "5 hours"},
		{25 * time.Hour, "1 day"},
		{49 * time.Hour, "2 days"},
	}
	for _, test := range tests {
		if got := roughly(test.d); got != test.want {
			t.Errorf("roughly(%s) = %q, want %q", test.d, got, test.want)
		}
	}
}

func TestStatusClass(t *testing.T) {
	t.Parallel()
	for status := -1; status <= 1100; status++ {
		var want ErrorClass
		switch status / 100 {
		case 2:
			want = ""
		case 3:
			want = ClassHTTP3xx
		case 4:
			want = ClassHTTP4xx
		case 5:
			want = ClassHTTP5xx
		default:
			want = ClassProtocol
		}
		if got := statusClass(status); got != want {
			t.Errorf("statusClass(%d) = %q, want %q", status, got, want)
		}
	}
}

func TestErrorClassesAreComplete(t *testing.T) {
	t.Parallel()
	seen := map[ErrorClass]bool{}
	for _, class := range ErrorClasses() {
		if class == "" || seen[class] {
			t.Errorf("class %q is empty or listed twice", class)
		}
		seen[class] = true
	}
	for _, attempt := range []Attempt{{Class: ClassUnknown}, {Class: statusClass(302)}} {
		if !seen[attempt.Class] || attempt.Delivered() {
			t.Errorf("class %q", attempt.Class)
		}
	}
}
