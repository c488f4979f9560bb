package sender

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"net"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"drawbridge/internal/waittest"
)

// A connection is reused exactly when the endpoint left it in order.
func TestSendReusesConnections(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		answer string
		conns  int // after three attempts
	}{
		{"body read to its end", ok200, 1},
		{"no body", "HTTP/1.1 204 x\r\n\r\n", 1},
		{"a failure", "HTTP/1.1 500 x\r\ncontent-length: 2\r\n\r\nno", 1},
		{"chunks", "HTTP/1.1 200 x\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", 1},
		{"more than is kept", sized("", string(make([]byte, maxBody+5000))), 1},
		{"HTTP/1.0 that keeps alive", "HTTP/1.0 200 x\r\nconnection: keep-alive\r\n" +
			"content-length: 2\r\n\r\nok", 1},
		{"connection: close", "HTTP/1.1 200 x\r\nconnection: close\r\ncontent-length: 2\r\n\r\nok", 3},
		{"HTTP/1.0", "HTTP/1.0 200 x\r\ncontent-length: 2\r\n\r\nok", 3},
		{"more than was announced", ok200 + "surplus", 3},
		{"an answer to nothing", ok200 + ok200, 3},
		{"far more than is kept", sized("", string(make([]byte, 1<<20))), 3},
		{"no longer than a moment", "HTTP/1.1 200 x\r\nkeep-alive: timeout=1\r\n" +
			"content-length: 2\r\n\r\nok", 3},
		{"a wrong status", "HTTP/1.1 600 x\r\ncontent-length: 2\r\n\r\nok", 3},
	}
	sender := newTestSender(t, nil)
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			end := serve(t, nil, respond(test.answer))
			for i := range 3 {
				attempt := sender.Send(t.Context(), hook(end.plain()))
				if attempt.Status == 0 || attempt.Reused != (i > 0 && test.conns == 1) {
					t.Errorf("attempt %d: error %q, reused %v", i+1, attempt.Error, attempt.Reused)
				}
			}
			if requests, conns := end.got(); len(requests) != 3 || conns != test.conns {
				t.Errorf("%d requests over %d connections, want 3 over %d", len(requests), conns,
					test.conns)
			}
		})
	}
}

// One attempt is one request: when a reused connection dies, nothing is sent a second
// time, whatever a custom header may suggest to a client library.
func TestSendNeverRepeatsARequest(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"idempotency-key", "x-idempotency-key", "x-other"} {
		end := serve(t, nil, func(c *endpointConn) {
			if _, err := c.request(); err != nil {
				return
			}
			c.say(ok200)
			_, _ = c.request() // and close without an answer
		})
		sender := newTestSender(t, nil)
		r := hook(end.plain())
		r.Headers = []Header{{Name: name, Value: "abc"}}
		if first := sender.Send(t.Context(), r); !first.Delivered() {
			t.Fatalf("%s: %s", name, first.Error)
		}
		second := sender.Send(t.Context(), r)
		if !second.Reused || second.Class != ClassProtocol || !second.Sent {
			t.Errorf("%s: reused %v, class %q, error %q", name, second.Reused, second.Class, second.Error)
		}
		if requests, conns := end.got(); len(requests) != 2 || conns != 1 {
			t.Errorf("%s: two attempts made %d requests over %d connections", name, len(requests), conns)
		}
		// No connections are kept for it for a while; those to others are.
		for range 2 {
			if next := sender.Send(t.Context(), r); !next.Delivered() || next.Reused {
				t.Errorf("%s: after the loss: error %q, reused %v", name, next.Error, next.Reused)
			}
		}
		other := serve(t, nil, respond(ok200))
		for i := range 2 {
			if a := sender.Send(t.Context(), hook(other.plain())); a.Reused != (i > 0) {
				t.Errorf("%s: another endpoint: error %q, reused %v", name, a.Error, a.Reused)
			}
		}
		for lost := range sender.pool.trusts {
			if known := sender.pool.trusts[lost]; !known.lost.IsZero() {
				sender.pool.trusts[lost] = trust{lost: known.lost.Add(-distrustTime)}
			}
		}
		for i := range 2 {
			if a := sender.Send(t.Context(), r); a.Reused != (i > 0) {
				t.Errorf("%s: once it is over: error %q, reused %v", name, a.Error, a.Reused)
			}
		}
	}
}

// An endpoint that closes each connection a moment after its answer loses no request, and
// one that keeps them costs one wait.
func TestSendTriesTheFirstKeptConnection(t *testing.T) {
	t.Parallel()
	closing := make(chan struct{}, 1)
	bad := serve(t, nil, func(c *endpointConn) {
		if _, err := c.request(); err == nil {
			c.say("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
			<-closing
		}
	})
	sender := newTestSender(t, nil)
	sender.pool.trial = time.Hour
	if first := sender.Send(t.Context(), hook(bad.plain())); !first.Delivered() {
		t.Fatal(first.Error)
	}
	second := make(chan Attempt)
	go func() { second <- sender.Send(t.Context(), hook(bad.plain())) }()
	waittest.Until(t, "the second attempt has taken the connection", func() bool {
		sender.pool.mu.Lock()
		defer sender.pool.mu.Unlock()
		return sender.pool.total == 0
	})
	closing <- struct{}{}
	if got := <-second; !got.Delivered() || got.Reused {
		t.Errorf("error %q, reused %v", got.Error, got.Reused)
	}
	close(closing)

	good := serve(t, nil, respond(ok200))
	for i, trial := range []time.Duration{time.Hour, trialTime, time.Hour} {
		sender.pool.trial = trial
		if got := sender.Send(t.Context(), hook(good.plain())); !got.Delivered() ||
			got.Reused != (i > 0) {
			t.Errorf("attempt %d: error %q, reused %v", i+1, got.Error, got.Reused)
		}
	}
}

// The number of remembered endpoints stays within its bound.
func TestPoolForgetsEndpoints(t *testing.T) {
	t.Parallel()
	sender := newTestSender(t, nil)
	var last endpoint
	for i := range maxTrusts + 10 {
		last = endpoint{scheme: "https", host: strconv.Itoa(i)}
		sender.pool.lose(last)
	}
	if got := len(sender.pool.trusts); got != maxTrusts || !sender.pool.distrusts(last) {
		t.Errorf("%d endpoints known, the last one distrusted: %v", got, sender.pool.distrusts(last))
	}
}

// A connection that the endpoint closed while it was idle costs no attempt.
func TestSendNoticesClosedConnections(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	for name, secured := range map[string]bool{"plain": false, "TLS": true} {
		closed := make(chan struct{}, 10)
		script := func(c *endpointConn) {
			once(ok200)(c)
			_ = c.Close()
			closed <- struct{}{}
		}
		end := serve(t, nil, script)
		url := end.plain()
		if secured {
			end = serve(t, ca.issue(t, hookName, -time.Hour, time.Hour), script)
			url = end.secure()
		}
		sender := newTestSender(t, func(c *Config) { c.RootCAs = ca.pool })
		for i := range 3 {
			attempt := sender.Send(t.Context(), hook(url))
			if !attempt.Delivered() || attempt.Reused {
				t.Errorf("%s, attempt %d: error %q, reused %v", name, i+1, attempt.Error, attempt.Reused)
			}
			<-closed
		}
	}
}

// together is a connection that holds its writes and sends them as one.
type together struct {
	net.Conn

	holds bool
	held  bytes.Buffer
}

func (c *together) Write(p []byte) (int, error) {
	if c.holds {
		return c.held.Write(p)
	}
	return c.Conn.Write(p)
}

// Data that an endpoint sends after its answer, in a separate TLS record that arrives
// with it, is not taken for the answer to the next request.
func TestSendTakesNothingForTheNextAnswer(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	config := ca.issue(t, hookName, -time.Hour, time.Hour)
	for _, more := range []string{"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n", "0\r\n\r\n"} {
		end := serve(t, nil, func(c *endpointConn) {
			held := &together{Conn: c.Conn}
			secured := tls.Server(held, config)
			if secured.Handshake() != nil {
				return
			}
			inner := &endpointConn{
				Conn: secured, number: c.number, reader: bufio.NewReader(secured), server: c.server,
			}
			if _, err := inner.request(); err != nil {
				return
			}
			held.holds = true
			inner.say("HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\n\r\n")
			inner.say(more)
			_, _ = held.held.WriteTo(c.Conn)
			inner.untilClosed()
		})
		sender := newTestSender(t, func(c *Config) { c.RootCAs = ca.pool })
		for i := range 2 {
			attempt := sender.Send(t.Context(), hook(end.secure()))
			if attempt.Status != http.StatusServiceUnavailable || attempt.Reused {
				t.Errorf("attempt %d before %q: status %d, error %q, reused %v",
					i+1, more, attempt.Status, attempt.Error, attempt.Reused)
			}
		}
	}
}

func TestPoolBoundsIdleConnections(t *testing.T) {
	t.Parallel()
	var together sync.WaitGroup
	const many = 10
	together.Add(many)
	end := serve(t, nil, func(c *endpointConn) {
		if _, err := c.request(); err == nil {
			together.Done()
			together.Wait() // so that each attempt needs a separate connection
			c.say(ok200)
			c.untilClosed()
		}
	})
	sender := newTestSender(t, nil)
	sender.pool.perEndpoint = 3
	var sending sync.WaitGroup
	var delivered atomic.Int32
	for range many {
		sending.Go(func() {
			if sender.Send(t.Context(), hook(end.plain())).Delivered() {
				delivered.Add(1)
			}
		})
	}
	sending.Wait()
	if delivered.Load() != many || sender.pool.total != 3 {
		t.Errorf("%d delivered, %d idle connections kept", delivered.Load(), sender.pool.total)
	}
	sender.Close()
	if sender.pool.total != 0 || len(sender.pool.idle) != 0 {
		t.Errorf("%d idle connections after Close", sender.pool.total)
	}
	// A connection released after Close is not kept.
	end2 := serve(t, nil, respond(ok200))
	if attempt := sender.Send(t.Context(), hook(end2.plain())); !attempt.Delivered() ||
		sender.pool.total != 0 {
		t.Errorf("after Close: error %q, %d kept", attempt.Error, sender.pool.total)
	}
}

func TestPoolTotalBound(t *testing.T) {
	t.Parallel()
	sender := newTestSender(t, nil)
	sender.pool.max = 2
	for range 4 {
		end := serve(t, nil, respond(ok200))
		if attempt := sender.Send(t.Context(), hook(end.plain())); !attempt.Delivered() {
			t.Fatal(attempt.Error)
		}
	}
	if sender.pool.total != 2 || len(sender.pool.idle) != 2 {
		t.Errorf("%d idle connections kept, want 2", sender.pool.total)
	}
}

// An idle connection is closed in time even if it is never requested again.
func TestPoolClosesIdleConnections(t *testing.T) {
	t.Parallel()
	gone := make(chan struct{})
	end := serve(t, nil, func(c *endpointConn) {
		if _, err := c.request(); err == nil {
			c.say("HTTP/1.1 200 x\r\nkeep-alive: timeout=2, max=100\r\ncontent-length: 2\r\n\r\nok")
			c.untilClosed()
			close(gone)
		}
	})
	sender := newTestSender(t, nil)
	start := time.Now()
	if attempt := sender.Send(t.Context(), hook(end.plain())); !attempt.Delivered() {
		t.Fatal(attempt.Error)
	}
	<-gone
	if kept := time.Since(start); kept < 900*time.Millisecond || kept > 5*time.Second {
		t.Errorf("kept for %s, want about a second", kept)
	}
}

func TestKeepAlive(t *testing.T) {
	t.Parallel()
	tests := []struct {
		value string
		want  time.Duration
	}{
		{"", idleTime},
		{"timeout=5", 4 * time.Second},
		{"timeout=5, max=1000", 4 * time.Second},
		{"max=1000, Timeout=5", 4 * time.Second},
		{"timeout=3600", idleTime},
		{"timeout=1", 0},
		{"timeout=0", 0},
		{"timeout=-5", idleTime},
		{"timeout=x", idleTime},
		{"timeout", idleTime},
		{"timeout=99999999999999999999", idleTime},
	}
	for _, test := range tests {
		header := http.Header{}
		if test.value != "" {
			header.Set("Keep-Alive", test.value)
		}
		if got := keepAlive(header); got != test.want {
			t.Errorf("keepAlive(%q) = %s, want %s", test.value, got, test.want)
		}
	}
}
