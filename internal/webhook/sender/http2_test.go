package sender

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"drawbridge/internal/secret"
	"drawbridge/internal/waittest"
)

// http2Endpoint is a partner's endpoint that speaks HTTP/2, and HTTP/1.1 to clients that
// ask for it.
type http2Endpoint struct {
	*httptest.Server
	requests, conns atomic.Int32
}

func serveHTTP2(t testing.TB, ca *authority, handler http.HandlerFunc) *http2Endpoint {
	t.Helper()
	e := &http2Endpoint{}
	e.Server = httptest.NewUnstartedServer(http.HandlerFunc(
		func(w http.ResponseWriter, r *http.Request) {
			e.requests.Add(1)
			handler(w, r)
		}))
	e.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			e.conns.Add(1)
		}
	}
	e.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	e.EnableHTTP2 = true
	e.TLS = ca.issue(t, hookName, -time.Hour, time.Hour)
	e.StartTLS()
	t.Cleanup(e.Close)
	return e
}

func (e *http2Endpoint) hook() Request {
	return hook(strings.Replace(e.URL, "127.0.0.1", hookName, 1) + "/hook?tenant=7")
}

func TestSendHTTP2(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	var got *http.Request
	var body []byte
	end := serveHTTP2(t, ca, func(w http.ResponseWriter, r *http.Request) {
		got = r
		body, _ = io.ReadAll(r.Body)
		w.Header().Set("X-Answer", "yes")
		w.WriteHeader(http.StatusAccepted)
		_, _ = io.WriteString(w, "thanks")
	})
	sender := newTestSender(t, func(c *Config) { c.RootCAs = ca.pool })
	r := end.hook()
	r.Headers = pairs{{"user-agent", "Solar/1"}, {"x-api-key", "abc"}, {"te", "trailers"}}.headers()
	attempt := sender.Send(t.Context(), r)
	if !attempt.Delivered() || attempt.Status != 202 || attempt.Protocol != "HTTP/2" ||
		string(attempt.ResponseBody) != "thanks" ||
		FieldOf(attempt.ResponseHeaders, "x-answer") != "yes" {
		t.Fatalf("attempt %+v", attempt)
	}
	if got.ProtoMajor != 2 || got.Method != http.MethodPost || got.RequestURI != "/hook?tenant=7" ||
		got.Host != strings.TrimPrefix(strings.Replace(end.URL, "127.0.0.1", hookName, 1), "https://") ||
		got.ContentLength != int64(len(testBody)) || !bytes.Equal(body, testBody) {
		t.Errorf("%s %s %s, host %s, %d bytes", got.Proto, got.Method, got.RequestURI, got.Host,
			got.ContentLength)
	}
	for name, want := range map[string]string{
		"User-Agent": "Solar/1", "Content-Type": "application/json", "Accept-Encoding": "gzip",
		"X-Api-Key": "abc", "Te": "trailers", "X-Drawbridge-Attempt": "1",
		"X-Hmac-Signature": Sign(secret.New(testSecret), testBody),
	} {
		if values := got.Header[name]; len(values) != 1 || values[0] != want {
			t.Errorf("%s is %q, want %q", name, values, want)
		}
	}
	if timings := attempt.Timings; timings.TLS <= 0 || timings.FirstByte <= 0 || !attempt.Sent ||
		attempt.CertificateExpires.IsZero() || !attempt.Address.IsValid() {
		t.Errorf("timings %+v, sent %v, address %s", timings, attempt.Sent, attempt.Address)
	}
}

func TestSendHTTP2SharesOneConnection(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	const many = 20
	var waiting sync.WaitGroup
	waiting.Add(many)
	end := serveHTTP2(t, ca, func(_ http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Drawbridge-Attempt") == "2" {
			waiting.Done()
			waiting.Wait() // all at the same time
		}
	})
	sender := newTestSender(t, func(c *Config) { c.RootCAs = ca.pool })
	if first := sender.Send(t.Context(), end.hook()); !first.Delivered() || first.Reused {
		t.Fatalf("first: error %q, reused %v", first.Error, first.Reused)
	}
	var sending sync.WaitGroup
	for range many {
		sending.Go(func() {
			r := end.hook()
			r.Number = 2
			if attempt := sender.Send(t.Context(), r); !attempt.Delivered() || !attempt.Reused {
				t.Errorf("error %q, reused %v", attempt.Error, attempt.Reused)
			}
		})
	}
	sending.Wait()
	if end.requests.Load() != many+1 || end.conns.Load() != 1 {
		t.Errorf("%d requests over %d connections", end.requests.Load(), end.conns.Load())
	}
}

func TestSendHTTP2Outcomes(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	bomb := zipped(strings.Repeat("\x00", 1<<20))
	tests := []struct {
		name    string
		handler http.HandlerFunc
		status  int
		class   ErrorClass
		text    string // part of the error, or of the note when delivered
	}{
		{"redirect", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
		}, 307, ClassHTTP3xx, "307"},
		{
			"failure", func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(http.StatusServiceUnavailable)
			}, 503,
			ClassHTTP5xx, "503",
		},
		{
			"a wrong status", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(600) }, 600,
			ClassProtocol, "not a final one: 600",
		},
		{"early hints", func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusEarlyHints)
			w.WriteHeader(http.StatusNoContent)
		}, 204, "", ""},
		{"the stream is reset", func(http.ResponseWriter, *http.Request) {
			panic(http.ErrAbortHandler)
		}, 0, ClassProtocol, "the connection was reset before an answer came"},
		{"the body is reset", func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "thanks")
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}, 200, "", "broke off; 6 bytes"},
		{
			"silence", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, 0,
			ClassTimeout, "waiting for the answer",
		},
		{"the body hangs", func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, "thanks")
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}, 200, "", "still coming when the time ran out; 6 bytes"},
		{"endless", func(w http.ResponseWriter, _ *http.Request) {
			for {
				if _, err := w.Write(make([]byte, 8192)); err != nil {
					return
				}
			}
		}, 200, "", "longer than the 16 KiB"},
		{"gzip bomb", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = io.WriteString(w, bomb)
		}, 200, "", "longer than the 16 KiB"},
		{"huge headers", func(w http.ResponseWriter, _ *http.Request) {
			for i := range 14 {
				w.Header().Set(fmt.Sprintf("X-%d", i), strings.Repeat("y", 5000))
			}
		}, 0, ClassProtocol, "headers of the answer are too large"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			right := func(a Attempt) bool {
				return a.Status == test.status && a.Class == test.class &&
					strings.Contains(a.Error+a.Note, test.text) && a.Sent
			}
			var end *http2Endpoint
			attempt, _ := sendUntil(t, func(c *Config) { c.RootCAs = ca.pool }, func() Request {
				end = serveHTTP2(t, ca, test.handler)
				return end.hook()
			}, right)
			if !right(attempt) {
				t.Errorf("status %d, class %q, error %q, note %q, sent %v", attempt.Status, attempt.Class,
					attempt.Error, attempt.Note, attempt.Sent)
			}
			if len(attempt.ResponseBody) > maxBody || end.requests.Load() != 1 {
				t.Errorf("body of %d bytes, %d requests", len(attempt.ResponseBody), end.requests.Load())
			}
		})
	}
}

// The next attempt after one without an answer does not reuse the connection.
func TestSendHTTP2LeavesADeadConnection(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	end := serveHTTP2(t, ca, func(_ http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Drawbridge-Attempt") == "1" {
			<-r.Context().Done()
		}
	})
	sender := newTestSender(t, func(c *Config) { c.RootCAs = ca.pool })
	patient := sender.timeout
	sender.timeout = 150 * time.Millisecond
	var first Attempt
	for !first.Sent && sender.timeout < patient {
		sender.timeout *= 2
		first = sender.Send(t.Context(), end.hook())
	}
	if first.Class != ClassTimeout {
		t.Fatalf("first: class %q", first.Class)
	}
	sender.timeout = patient
	second := end.hook()
	second.Number = 2
	if attempt := sender.Send(t.Context(), second); !attempt.Delivered() || attempt.Reused {
		t.Errorf("second: error %q, reused %v", attempt.Error, attempt.Reused)
	}
}

// An endpoint that closed a connection on a request gets a new one for each request for a while.
func TestSendHTTP2AfterALoss(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	var end *http2Endpoint
	end = serveHTTP2(t, ca, func(_ http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Drawbridge-Attempt") == "2" {
			go end.CloseClientConnections()
			<-r.Context().Done()
		}
	})
	sender := newTestSender(t, func(c *Config) { c.RootCAs = ca.pool })
	for i, want := range []struct {
		class  ErrorClass
		reused bool
	}{{}, {ClassProtocol, true}, {}, {}} {
		r := end.hook()
		r.Number = i + 1
		if got := sender.Send(t.Context(), r); got.Class != want.class || got.Reused != want.reused {
			t.Errorf("attempt %d: class %q, error %q, reused %v", i+1, got.Class, got.Error, got.Reused)
		}
	}
	if got := end.requests.Load(); got != 4 {
		t.Errorf("%d requests", got)
	}
}

// A connection that the endpoint shuts down gracefully costs no attempt.
func TestSendHTTP2AfterGoingAway(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	end := serveHTTP2(t, ca, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Connection", "close") // HTTP/2: a GOAWAY after this answer
	})
	sender := newTestSender(t, func(c *Config) { c.RootCAs = ca.pool })
	for i := range 5 {
		if attempt := sender.Send(t.Context(), end.hook()); !attempt.Delivered() {
			t.Errorf("attempt %d: error %q", i+1, attempt.Error)
		}
	}
	if end.requests.Load() != 5 {
		t.Errorf("%d requests", end.requests.Load())
	}
}

// Headers that HTTP/2 forbids are still sent, over HTTP/1.1.
func TestSendFallsBackToHTTP1ForItsHeaders(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	protocols := make(chan string, 10)
	end := serveHTTP2(t, ca, func(_ http.ResponseWriter, r *http.Request) {
		protocols <- fmt.Sprint(r.Proto, " ", r.Header.Get("Upgrade"), r.Header.Get("Keep-Alive"))
	})
	sender := newTestSender(t, func(c *Config) { c.RootCAs = ca.pool })
	for _, test := range []struct{ name, value, want string }{
		{"x-any", "y", "HTTP/2.0 "},
		{"upgrade", "y", "HTTP/1.1 y"},
		{"Keep-Alive", "z", "HTTP/1.1 z"},
		{"te", "gzip", "HTTP/1.1 "},
		{"te", "trailers", "HTTP/2.0 "},
	} {
		r := end.hook()
		r.Headers = []Header{{Name: test.name, Value: test.value}}
		if attempt := sender.Send(t.Context(), r); !attempt.Delivered() {
			t.Fatalf("%s: %s", test.name, attempt.Error)
		}
		if got := <-protocols; got != test.want {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
}

// A connection beyond the bound serves its request and is closed.
func TestPoolBoundsHTTP2Connections(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	var waiting sync.WaitGroup
	waiting.Add(2)
	end := serveHTTP2(t, ca, func(http.ResponseWriter, *http.Request) {
		waiting.Done()
		waiting.Wait()
	})
	sender := newTestSender(t, func(c *Config) { c.RootCAs = ca.pool })
	sender.pool.perEndpoint = 1
	u, err := sender.policy.CheckURL(end.hook().URL)
	if err != nil {
		t.Fatal(err)
	}
	key := endpoint{scheme: u.Scheme, host: u.Host}
	var kept [2]connection
	for i := range kept {
		var attempt Attempt
		if kept[i], err = sender.open(t.Context(), u, key, &attempt); err != nil {
			t.Fatal(err)
		}
	}
	var sending sync.WaitGroup
	for _, c := range kept {
		sending.Go(func() {
			var attempt Attempt
			out := newOutgoing(u, buildHeaders(end.hook(), "x", ""), testBody)
			if err := sender.exchange(t.Context(), c, out, &attempt); err != nil || !attempt.Delivered() {
				t.Errorf("error %v, attempt %+v", err, attempt)
			}
		})
	}
	sending.Wait()
	first, second := kept[0].(*http2Conn), kept[1].(*http2Conn)
	if first.private || !second.private || first.client.Err() != nil || second.client.Err() == nil {
		t.Errorf("private %v, %v; closed %v, %v", first.private, second.private, first.client.Err(),
			second.client.Err())
	}
}

// Connections that end leave nothing in the pool.
func TestPoolForgetsHTTP2Connections(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	end := serveHTTP2(t, ca, func(http.ResponseWriter, *http.Request) {})
	sender := newTestSender(t, func(c *Config) { c.RootCAs = ca.pool })
	if attempt := sender.Send(t.Context(), end.hook()); !attempt.Delivered() {
		t.Fatal(attempt.Error)
	}
	end.CloseClientConnections()
	waittest.Until(t, "a closed connection has left the pool", func() bool {
		sender.pool.mu.Lock()
		defer sender.pool.mu.Unlock()
		return len(sender.pool.shared) == 0
	})
	if attempt := sender.Send(t.Context(), end.hook()); !attempt.Delivered() || attempt.Reused {
		t.Errorf("afterwards: error %q, reused %v", attempt.Error, attempt.Reused)
	}
}

// A stream that the endpoint refused, before any of its code saw the request, is the one
// case in which the request is sent again.
func TestSendHTTP2RefusedStream(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	config := ca.issue(t, hookName, -time.Hour, time.Hour)
	config.NextProtos = []string{"h2"}
	for _, test := range []struct {
		name     string
		refuseAt uint32 // the stream of each connection that is refused
		reused   bool
		class    ErrorClass
	}{
		{"on a reused connection", 3, false, ""},
		{"on a new connection", 1, false, ClassProtocol},
	} {
		end := serve(t, config, func(c *endpointConn) { speakHTTP2(c, "204", test.refuseAt) })
		sender := newTestSender(t, func(c *Config) { c.RootCAs = ca.pool })
		if test.refuseAt > 1 {
			if first := sender.Send(t.Context(), hook(end.secure())); !first.Delivered() {
				t.Fatalf("%s: first: %s", test.name, first.Error)
			}
		}
		attempt := sender.Send(t.Context(), hook(end.secure()))
		if attempt.Class != test.class || attempt.Reused != test.reused {
			t.Errorf("%s: class %q, error %q, reused %v", test.name, attempt.Class, attempt.Error,
				attempt.Reused)
		}
	}
}

// A status has three digits: anything else that the transport accepts is no answer.
func TestSendHTTP2RefusesOddStatus(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	config := ca.issue(t, hookName, -time.Hour, time.Hour)
	config.NextProtos = []string{"h2"}
	for _, status := range []string{"99999999999", "-7", "+204", "0204"} {
		end := serve(t, config, func(c *endpointConn) { speakHTTP2(c, status, 0) })
		sender := newTestSender(t, func(c *Config) { c.RootCAs = ca.pool })
		attempt := sender.Send(t.Context(), hook(end.secure()))
		if attempt.Class != ClassProtocol || attempt.Cause != CauseNotHTTP || attempt.Status != 0 ||
			!attempt.Sent || !strings.Contains(attempt.Error, status) {
			t.Errorf("%s: status %d, class %q, cause %q, error %q, sent %v", status, attempt.Status,
				attempt.Class, attempt.Cause, attempt.Error, attempt.Sent)
		}
	}
}

// speakHTTP2 answers each stream of a connection with a status, except one that it refuses.
func speakHTTP2(c *endpointConn, status string, refuse uint32) {
	if _, err := io.CopyN(io.Discard, c.reader, int64(len(http2.ClientPreface))); err != nil {
		return
	}
	framer := http2.NewFramer(c, c.reader)
	_ = framer.WriteSettings()
	var block bytes.Buffer
	encoder := hpack.NewEncoder(&block)
	for {
		frame, err := framer.ReadFrame()
		if err != nil {
			return
		}
		data, ok := frame.(*http2.DataFrame)
		if !ok || !data.StreamEnded() {
			continue
		}
		if data.StreamID == refuse {
			_ = framer.WriteRSTStream(data.StreamID, http2.ErrCodeRefusedStream)
			continue
		}
		block.Reset()
		_ = encoder.WriteField(hpack.HeaderField{Name: ":status", Value: status})
		_ = framer.WriteHeaders(http2.HeadersFrameParam{
			StreamID: data.StreamID, BlockFragment: block.Bytes(), EndStream: true, EndHeaders: true,
		})
	}
}
