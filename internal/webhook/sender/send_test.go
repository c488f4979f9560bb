package sender

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"drawbridge/internal/secret"
)

// The bytes on the wire, head and body, of both TLS and plain connections.
func TestSendBytesOnTheWire(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	sender := newTestSender(t, func(c *Config) { c.RootCAs = ca.pool })
	secured := serve(t, ca.issue(t, hookName, -time.Hour, time.Hour), respond(ok200))
	plain := serve(t, nil, respond(ok200))
	for _, end := range []struct {
		*rawEndpoint
		url, host, line string
	}{
		{
			secured, secured.secure(), fmt.Sprintf("%s:%d", hookName, secured.port()),
			"POST /hook?tenant=7 HTTP/1.1",
		},
		{plain, plain.plain(), fmt.Sprintf("127.0.0.1:%d", plain.port()), "POST /hook HTTP/1.1"},
	} {
		r := hook(end.url)
		r.Number, r.RetriesLeft = 2, 1
		r.Headers = []Header{{Name: "x-api-key", Value: "a b\tc"}, {Name: "x-empty"}}
		r.Event.Sequence, r.Event.Merchant = 7, "m-1"
		r.Event.Subject, r.Event.Reference = "disbursement/1042", "CRM 1/ä~"
		attempt := sender.Send(t.Context(), r)
		if !attempt.Delivered() || attempt.Status != 200 || string(attempt.ResponseBody) != "ok" {
			t.Fatalf("attempt %+v", attempt)
		}
		requests, _ := end.got()
		want := []string{
			"host: " + end.host,
			"content-type: application/json",
			"user-agent: Drawbridge-Webhooks/1.2.3",
			"accept-encoding: gzip",
			"x-api-key: a b\tc",
			"x-empty: ",
			"x-drawbridge-event: disbursement.funding.settled",
			"x-drawbridge-event-id: e-1",
			"x-drawbridge-sequence: 7",
			"x-drawbridge-merchant: m-1",
			"x-drawbridge-subject: disbursement/1042",
			"x-drawbridge-reference: CRM%201%2F%C3%A4~",
			"x-drawbridge-delivery: d-1",
			"x-drawbridge-attempt: 2",
			"x-drawbridge-retries-left: 1",
			"x-hmac-signature: " + Sign(secret.New(testSecret), testBody),
			fmt.Sprintf("content-length: %d", len(testBody)),
		}
		got := requests[0]
		if got.line != end.line || !slices.Equal(got.head, want) {
			t.Errorf("sent %q\n%s\nwant %q\n%s", got.line, strings.Join(got.head, "\n"),
				end.line, strings.Join(want, "\n"))
		}
		if !bytes.Equal(got.body, testBody) {
			t.Errorf("body %q", got.body)
		}
		for i, header := range attempt.RequestHeaders {
			line := strings.Replace(want[i], "a b\tc", Masked, 1)
			if header.Name+": "+header.Value != line {
				t.Errorf("logged %q, sent %q", header.Name+": "+header.Value, line)
			}
		}
	}
}

func TestSendHeaders(t *testing.T) {
	t.Parallel()
	end := serve(t, nil, respond(ok200))
	sender := newTestSender(t, nil)
	signature := Sign(secret.New(testSecret), testBody)
	tests := []struct {
		name   string
		change func(*Request)
		want   map[string]string // "" means absent
	}{
		{"custom user-agent and content-type once", func(r *Request) {
			r.Headers = []Header{
				{Name: "user-agent", Value: "Solar/1"}, {Name: "content-type", Value: "application/vnd.x+json"},
			}
		}, map[string]string{"user-agent": "Solar/1", "content-type": "application/vnd.x+json"}},
		{"bearer", func(r *Request) { r.Auth = AuthBearer }, map[string]string{
			"authorization": "Bearer " + testSecret, "x-hmac-signature": "",
		}},
		{"bearer overrules a custom authorization", func(r *Request) {
			r.Auth, r.Headers = AuthBearer, []Header{{Name: "authorization", Value: "Basic x"}}
		}, map[string]string{"authorization": "Bearer " + testSecret}},
		{"custom authorization beside a signature", func(r *Request) {
			r.Headers = []Header{{Name: "authorization", Value: "Basic x"}}
		}, map[string]string{"authorization": "Basic x", "x-hmac-signature": signature}},
		{"a signature overrules a custom one", func(r *Request) {
			r.Headers = []Header{{Name: "x-hmac-signature", Value: "mine"}}
		}, map[string]string{"x-hmac-signature": signature}},
		{"no authentication", func(r *Request) {
			r.Auth, r.Secret = AuthNone, secret.String{}
			r.Headers = []Header{{Name: "x-hmac-signature", Value: "mine"}}
		}, map[string]string{"x-hmac-signature": "mine", "authorization": ""}},
		{"rotation", func(r *Request) { r.Previous = secret.New("the-old-one") }, map[string]string{
			"x-hmac-signature":          signature,
			"x-hmac-signature-previous": Sign(secret.New("the-old-one"), testBody),
		}},
		{"no rotation", func(*Request) {}, map[string]string{
			"x-hmac-signature-previous": "", "x-drawbridge-test": "", "authorization": "",
		}},
		{"a test event", func(r *Request) { r.Test = true }, map[string]string{
			"x-drawbridge-test": "true",
		}},
		{"names of the connection", func(r *Request) {
			r.Headers = pairs{
				{"upgrade", "h2c"}, {"te", "gzip"}, {"trailer", "x"}, {"expect", "y"},
			}.headers()
		}, map[string]string{"upgrade": "h2c", "te": "gzip", "trailer": "x", "expect": "y"}},
	}
	for _, test := range tests {
		r := hook(end.plain())
		test.change(&r)
		if attempt := sender.Send(t.Context(), r); !attempt.Delivered() {
			t.Fatalf("%s: %s", test.name, attempt.Error)
		}
		requests, _ := end.got()
		last := requests[len(requests)-1]
		for name, want := range test.want {
			value, count := last.value(name)
			if want == "" && count != 0 || want != "" && (count != 1 || value != want) {
				t.Errorf("%s: %s came %d times as %q, want %q", test.name, name, count, value, want)
			}
		}
		for _, line := range last.head {
			name, _, _ := strings.Cut(line, ":")
			if name != strings.ToLower(name) {
				t.Errorf("%s: %q is not in lower case", test.name, name)
			}
		}
	}
}

func TestSendOutcomes(t *testing.T) {
	t.Parallel()
	const sized = "content-length: 2\r\n\r\nno"
	tests := []struct {
		name   string
		answer string
		status int
		class  ErrorClass
		text   string
	}{
		{"200", ok200, 200, "", ""},
		{"201", "HTTP/1.1 201 Created\r\n" + sized, 201, "", ""},
		{"204", "HTTP/1.1 204 No Content\r\n\r\n", 204, "", ""},
		{"204 with a body", "HTTP/1.1 204 No Content\r\n" + sized, 204, "", ""},
		{"299", "HTTP/1.1 299 Fine\r\n" + sized, 299, "", ""},
		{"200 of HTTP/1.0", "HTTP/1.0 200 OK\r\n\r\nok", 200, "", ""},
		{"200 without a phrase", "HTTP/1.1 200\r\ncontent-length: 0\r\n\r\n", 200, "", ""},
		{"200 with bare line feeds", "HTTP/1.1 200 OK\ncontent-length: 0\n\n", 200, "", ""},
		{
			"301", "HTTP/1.1 301 x\r\nlocation: https://e.example/\r\n" + sized, 301, ClassHTTP3xx,
			"answered 301 Moved Permanently",
		},
		{"302", "HTTP/1.1 302 x\r\nlocation: /next\r\n" + sized, 302, ClassHTTP3xx, "302"},
		{"304", "HTTP/1.1 304 x\r\n\r\n", 304, ClassHTTP3xx, "304"},
		{"307", "HTTP/1.1 307 x\r\nlocation: /next\r\n" + sized, 307, ClassHTTP3xx, "307"},
		{"400", "HTTP/1.1 400 x\r\n" + sized, 400, ClassHTTP4xx, "answered 400 Bad Request"},
		{"410", "HTTP/1.1 410 Gone\r\n" + sized, 410, ClassHTTP4xx, "answered 410 Gone"},
		{"499", "HTTP/1.1 499 x\r\n" + sized, 499, ClassHTTP4xx, "answered 499"},
		{"500", "HTTP/1.1 500 x\r\n" + sized, 500, ClassHTTP5xx, "500 Internal Server Error"},
		{"599", "HTTP/1.1 599 x\r\n" + sized, 599, ClassHTTP5xx, "answered 599"},
		{"600", "HTTP/1.1 600 x\r\n" + sized, 600, ClassProtocol, "not a final one: 600"},
		{"999", "HTTP/1.1 999 x\r\n" + sized, 999, ClassProtocol, "not a final one: 999"},
		{"099", "HTTP/1.1 099 x\r\n" + sized, 99, ClassProtocol, "not a final one: 99"},
		{
			"101", "HTTP/1.1 101 x\r\nupgrade: y\r\nconnection: upgrade\r\n\r\nbytes", 101,
			ClassProtocol, "not a final one: 101",
		},
		{"100 and then 200", "HTTP/1.1 100 Continue\r\n\r\n" + ok200, 200, "", ""},
		{
			"102 fifty times and then 200",
			strings.Repeat("HTTP/1.1 102 Processing\r\n\r\n", 50) + ok200, 200, "", "",
		},
		{
			"103 and then 500", "HTTP/1.1 103 x\r\nlink: y\r\n\r\nHTTP/1.1 500 x\r\n" + sized, 500,
			ClassHTTP5xx, "500",
		},
		{
			"102 and then nothing", "HTTP/1.1 102 Processing\r\n\r\n", 102, ClassProtocol,
			"not a final one: 102, and no other followed",
		},
		{
			"100 without end", strings.Repeat("HTTP/1.1 100 Continue\r\n\r\n", 2000), 100,
			ClassProtocol, "not a final one: 100",
		},
		{"nothing", "", 0, ClassProtocol, "closed before an answer came"},
		{"half a status line", "HTTP/1.1 20", 0, ClassProtocol, "closed before an answer came"},
		{"half a head", "HTTP/1.1 200 OK\r\ncontent-le", 0, ClassProtocol, "closed before"},
		{"another protocol", "SSH-2.0-OpenSSH_9.2\r\n", 0, ClassProtocol, "not valid HTTP"},
		{"binary", "\x00\x01\x02\xff\xfe\r\n\r\n", 0, ClassProtocol, "not valid HTTP"},
		{"HTTP/2 unasked", "HTTP/2.0 200 OK\r\n\r\n", 0, ClassProtocol, "not valid HTTP"},
		{"a status of four digits", "HTTP/1.1 2000 OK\r\n\r\n", 0, ClassProtocol, "not valid HTTP"},
		{"a status of letters", "HTTP/1.1 abc OK\r\n\r\n", 0, ClassProtocol, "not valid HTTP"},
		{"a negative status", "HTTP/1.1 -20 OK\r\n\r\n", 0, ClassProtocol, "not valid HTTP"},
		{
			"a header without colon", "HTTP/1.1 200 OK\r\nrubbish\r\n\r\n", 0, ClassProtocol,
			"not valid HTTP",
		},
		{
			"two lengths", "HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\nok", 0,
			ClassProtocol, "not valid HTTP",
		},
		{
			"a length of letters", "HTTP/1.1 200 OK\r\ncontent-length: x\r\n\r\n", 0, ClassProtocol,
			"not valid HTTP",
		},
		{
			"huge headers", "HTTP/1.1 200 OK\r\nx: " + strings.Repeat("y", maxHead) + "\r\n\r\n", 0,
			ClassProtocol, "headers of the answer are too large: more than 64 KiB",
		},
		{
			"many headers", "HTTP/1.1 200 OK\r\n" + strings.Repeat("x: y\r\n", maxHead/6+1) + "\r\n", 0,
			ClassProtocol, "headers of the answer are too large",
		},
		{
			"an endless status line", "HTTP/1.1 200 " + strings.Repeat("y", maxHead), 0,
			ClassProtocol, "headers of the answer are too large",
		},
	}
	sender := newTestSender(t, nil)
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			end := serve(t, nil, once(test.answer))
			attempt := sender.Send(t.Context(), hook(end.plain()))
			if attempt.Status != test.status || attempt.Class != test.class ||
				(test.text == "") != (attempt.Error == "") || !strings.Contains(attempt.Error, test.text) {
				t.Errorf("status %d, class %q, error %q; want %d, %q, %q", attempt.Status,
					attempt.Class, attempt.Error, test.status, test.class, test.text)
			}
			if attempt.Delivered() != (test.class == "") || !attempt.Sent {
				t.Errorf("delivered %v, sent %v", attempt.Delivered(), attempt.Sent)
			}
			if requests, _ := end.got(); len(requests) != 1 {
				t.Errorf("%d requests", len(requests))
			}
		})
	}
}

// The redirect target is never contacted, whatever the status and the form of the redirect.
func TestSendFollowsNoRedirect(t *testing.T) {
	t.Parallel()
	target := serve(t, nil, respond(ok200))
	sender := newTestSender(t, nil)
	for _, status := range []int{300, 301, 302, 303, 305, 307, 308} {
		end := serve(t, nil, respond(fmt.Sprintf(
			"HTTP/1.1 %d %s\r\nlocation: %s\r\nrefresh: 0; url=%s\r\ncontent-length: 0\r\n\r\n",
			status, http.StatusText(status), target.plain(), target.plain())))
		attempt := sender.Send(t.Context(), hook(end.plain()))
		if attempt.Class != ClassHTTP3xx || attempt.Status != status {
			t.Errorf("%d: class %q, status %d", status, attempt.Class, attempt.Status)
		}
		if requests, _ := end.got(); len(requests) != 1 {
			t.Errorf("%d: the endpoint got %d requests", status, len(requests))
		}
	}
	if requests, conns := target.got(); len(requests) != 0 || conns != 0 {
		t.Errorf("the target of the redirects got %d requests", len(requests))
	}
}

func TestSendConnectionDiesBeforeTheAnswer(t *testing.T) {
	t.Parallel()
	end := serve(t, nil, func(c *endpointConn) {
		if _, err := c.request(); err == nil {
			c.reset()
		}
	})
	attempt := newTestSender(t, nil).Send(t.Context(), hook(end.plain()))
	if attempt.Class != ClassProtocol || !strings.Contains(attempt.Error, "reset before an answer") {
		t.Errorf("class %q, error %q", attempt.Class, attempt.Error)
	}
}

// An endpoint may refuse a request without reading it.
func TestSendReadsAnEarlyAnswer(t *testing.T) {
	t.Parallel()
	end := serve(t, nil, func(c *endpointConn) {
		c.say("HTTP/1.1 413 x\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
		c.untilClosed()
	})
	r := hook(end.plain())
	r.Body = []byte(strings.Repeat("x", 1<<20))
	if attempt := newTestSender(t, nil).Send(t.Context(), r); attempt.Status != 413 {
		t.Errorf("status %d, error %q", attempt.Status, attempt.Error)
	}
}

func TestSendTimesOutWaitingForTheAnswer(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		said string
	}{
		{"silence", ""},
		{"half a head", "HTTP/1.1 200 OK\r\nx-slow: "},
		{"only informational", "HTTP/1.1 102 Processing\r\n\r\n"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			end := serve(t, nil, func(c *endpointConn) {
				if _, err := c.request(); err == nil {
					c.say(test.said)
					c.untilClosed()
				}
			})
			right := func(a Attempt) bool {
				return a.Class == ClassTimeout && a.Status == 0 &&
					strings.Contains(a.Error, "waiting for the answer")
			}
			request := func() Request { return hook(end.plain()) }
			attempt, limit := sendUntil(t, nil, request, right)
			if !right(attempt) {
				t.Errorf("class %q, error %q", attempt.Class, attempt.Error)
			}
			if total := attempt.Timings.Total; total < limit || total > limit+9*time.Second {
				t.Errorf("it took %s", total)
			}
		})
	}
}

// Sending one byte at a time does not keep an attempt alive beyond its deadline.
func TestSendDripOfHeaders(t *testing.T) {
	t.Parallel()
	end := serve(t, nil, func(c *endpointConn) {
		if _, err := c.request(); err != nil {
			return
		}
		ticker := time.NewTicker(20 * time.Millisecond)
		defer ticker.Stop()
		for _, char := range "HTTP/1.1 200 OK\r\nx: " + strings.Repeat("y", 1000) {
			if _, err := fmt.Fprintf(c, "%c", char); err != nil {
				return
			}
			<-ticker.C
		}
	})
	sender := newTestSender(t, func(c *Config) { c.Timeout = time.Second })
	if attempt := sender.Send(t.Context(), hook(end.plain())); attempt.Class != ClassTimeout {
		t.Errorf("class %q, error %q", attempt.Class, attempt.Error)
	}
}

func TestSendGivenUp(t *testing.T) {
	t.Parallel()
	arrived := make(chan struct{})
	end := serve(t, nil, func(c *endpointConn) {
		if _, err := c.request(); err == nil {
			close(arrived)
			c.untilClosed()
		}
	})
	ctx, cancel := context.WithCancel(t.Context())
	var attempt Attempt
	var sending sync.WaitGroup
	sending.Go(func() { attempt = newTestSender(t, nil).Send(ctx, hook(end.plain())) })
	<-arrived
	cancel()
	sending.Wait()
	if attempt.Class != ClassUnknown || !attempt.Sent ||
		!strings.Contains(attempt.Error, "sender stopped") {
		t.Errorf("class %q, error %q, sent %v", attempt.Class, attempt.Error, attempt.Sent)
	}
	before := newTestSender(t, nil).Send(ctx, hook(end.plain()))
	if before.Class != ClassUnknown || before.Sent {
		t.Errorf("given up before the start: class %q, sent %v", before.Class, before.Sent)
	}
}

func TestSendRefusesTheURL(t *testing.T) {
	t.Parallel()
	end := serve(t, nil, respond(ok200))
	strict := newTestSender(t, func(c *Config) { c.Policy = Policy{} })
	for _, url := range []string{end.plain(), "https://10.0.0.1/", "https://localhost/", "", "x"} {
		attempt := strict.Send(t.Context(), hook(url))
		if attempt.Class != ClassBlocked || attempt.Sent || attempt.Error == "" {
			t.Errorf("%s: class %q, error %q", url, attempt.Class, attempt.Error)
		}
	}
	if _, conns := end.got(); conns != 0 {
		t.Errorf("the endpoint got %d connections", conns)
	}
}

// Trust roots come from SSL_CERT_FILE, which Go reads once per process, so the test runs
// itself in a separate process to send.
func TestSendTrustsSSLCertFile(t *testing.T) {
	t.Parallel()
	if url := os.Getenv("DRAWBRIDGE_TEST_HOOK"); url != "" {
		sender := newTestSender(t, nil)
		if attempt := sender.Send(t.Context(), hook(url)); !attempt.Delivered() {
			t.Fatalf("%s: %s", attempt.Class, attempt.Error)
		}
		return
	}
	ca := newAuthority(t)
	end := serve(t, ca.issue(t, hookName, -time.Hour, time.Hour), respond(ok200))
	roots := t.TempDir() + "/roots.pem"
	if err := os.WriteFile(roots, pemOf(ca.cert), 0o600); err != nil {
		t.Fatal(err)
	}
	again := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestSendTrustsSSLCertFile$")
	again.Env = append(os.Environ(), "DRAWBRIDGE_TEST_HOOK="+end.secure(), "SSL_CERT_FILE="+roots)
	if output, err := again.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	if requests, _ := end.got(); len(requests) != 1 {
		t.Errorf("%d requests", len(requests))
	}
}
