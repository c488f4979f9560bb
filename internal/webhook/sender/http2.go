package sender

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync/atomic"
	"time"
)

// dialedKey is the context key under which a connection that is already made is passed to
// the HTTP/2 transport.
type dialedKey struct{}

// newHTTP2Transport returns the transport that turns connections into HTTP/2 ones. It is
// only used for that: it has no pool, dials nothing by itself and repeats nothing. Its
// receive windows are small, because whatever an endpoint sends beyond the part that is
// kept would be buffered there, for every stream.
func newHTTP2Transport() *http.Transport {
	const window = 64 << 10
	t := &http.Transport{
		Proxy:                  nil,
		DisableCompression:     true,
		MaxResponseHeaderBytes: maxHead,
		IdleConnTimeout:        idleTime,
		Protocols:              new(http.Protocols),
		HTTP2: &http.HTTP2Config{
			MaxReceiveBufferPerConnection: 16 * window,
			MaxReceiveBufferPerStream:     window,
			SendPingTimeout:               15 * time.Second,
			PingTimeout:                   5 * time.Second,
		},
		DialTLSContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			conn, ok := ctx.Value(dialedKey{}).(*tls.Conn)
			if !ok {
				return nil, errors.New("no connection was given")
			}
			return conn, nil
		},
	}
	t.Protocols.SetHTTP2(true)
	return t
}

// http2Conn is a connection that speaks HTTP/2 and carries several requests at
// a time.
type http2Conn struct {
	pool   *pool
	end    endpoint
	client *http.ClientConn
	peer   peer
	// private marks a connection that is not in the pool: it serves one request and is
	// closed.
	private bool
	// served means that it carried an answer before.
	served atomic.Bool
}

// newHTTP2 starts HTTP/2 on a connection and reserves its first stream.
func (s *Sender) newHTTP2(
	ctx context.Context, end endpoint, conn *tls.Conn, from peer,
) (*http2Conn, error) {
	ctx = context.WithValue(ctx, dialedKey{}, conn)
	client, err := s.http2.NewClientConn(ctx, "https", from.addr.String())
	if err != nil {
		return nil, fmt.Errorf("starting HTTP/2: %w", err)
	}
	c := &http2Conn{pool: s.pool, end: end, client: client, peer: from}
	if err := client.Reserve(); err != nil {
		_ = client.Close()
		return nil, fmt.Errorf("reserving a stream: %w", err)
	}
	return c, nil
}

func (c *http2Conn) remote() peer { return c.peer }

// exchange sends the request and reads the head of the answer. It returns errNotSent if
// the connection was closing before the request was written, or if the endpoint declared
// that it will not process it.
func (c *http2Conn) exchange(ctx context.Context, out outgoing) (answer, error) {
	var written, first atomic.Int64
	start := time.Now()
	since := func(at *atomic.Int64) { at.CompareAndSwap(0, int64(time.Since(start))) }
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		WroteHeaders:         func() { since(&written) },
		GotFirstResponseByte: func() { since(&first) },
	})
	request, err := http.NewRequestWithContext(ctx, out.method, out.url.String(), http.NoBody)
	if err != nil {
		return answer{}, fmt.Errorf("building the request: %w", err)
	}
	request.Host = out.host
	// The body is set by hand: NewRequest would set GetBody, with which the transport may
	// send it a second time.
	if out.method == http.MethodPost {
		request.Body = io.NopCloser(bytes.NewReader(out.body))
		request.ContentLength = int64(len(out.body))
	}
	for _, field := range out.headers {
		request.Header[field.Name] = []string{field.Value}
	}
	resp, err := c.client.RoundTrip(request)
	got := answer{response: resp, sent: true}
	if err != nil {
		// An endpoint can say in HTTP/2 itself that the request did not reach the application:
		// its stream came after the last one that a closing connection serves, or was refused
		// (RFC 9113 section 8.7). Busy endpoints close connections in this way after every
		// thousand requests or so; it must not cost an attempt.
		unprocessed := strings.Contains(err.Error(), "graceful shutdown GOAWAY") ||
			strings.Contains(err.Error(), "REFUSED_STREAM")
		// After a cancellation the transport may still be writing.
		if ctx.Err() == nil && (written.Load() == 0 || unprocessed) {
			got.sent = false
			return got, fmt.Errorf("%w: %w", errNotSent, err)
		}
		if err = http2Error(err); c.served.Load() && c.client.Err() != nil && isLoss(ctx, err) {
			c.pool.lose(c.end)
		}
		return got, err
	}
	c.served.Store(true)
	got.firstByte = max(time.Duration(first.Load()-written.Load()), 0)
	// The transport accepts any integer, HTTP requires three digits.
	status, _, _ := strings.Cut(resp.Status, " ")
	if len(status) != 3 || strings.Trim(status, "0123456789") != "" {
		_ = resp.Body.Close()
		return answer{sent: true, firstByte: got.firstByte},
			newSendError(ClassProtocol, CauseNotHTTP, fmt.Errorf("status %q", status))
	}
	resp.Body = &limitedBody{meter: meter{source: resp.Body, left: maxWire}, Closer: resp.Body}
	return got, nil
}

// http2Error recognises some errors by the transport's texts, because it does not export
// their values.
func http2Error(err error) error {
	text := err.Error()
	switch {
	case strings.Contains(text, "header list"):
		return headTooLarge()
	case strings.HasPrefix(text, "stream error"):
		return newSendError(ClassProtocol, CauseReset, err)
	case strings.Contains(text, "GOAWAY"):
		return newSendError(ClassProtocol, CauseClosed, err)
	}
	return err
}

// release ends the exchange. It cancels the rest of the body instead of reading it. After
// an exchange without an answer no further request is given to the connection, which may
// be dead undetected.
func (c *http2Conn) release(resp *http.Response, _ bool) {
	if resp != nil {
		_ = resp.Body.Close()
	} else {
		c.pool.drop(c)
	}
	if c.private {
		_ = c.client.Close()
	}
}

// limitedBody bounds what is read of a body on the wire and closes the whole body.
type limitedBody struct {
	meter
	io.Closer
}
