package sender

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/textproto"
	"net/url"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	// drainBytes and drainTime bound how much of a body beyond the part that is kept is read
	// in order to reuse the connection.
	drainBytes = 64 << 10
	drainTime  = 250 * time.Millisecond
	// lateAnswer is how long an endpoint that stopped reading may take to answer why.
	lateAnswer = time.Second
)

type outgoing struct {
	// method is POST, or HEAD for a probe.
	method string
	url    *url.URL
	// host is the host header; headers are the others except content-length.
	host    string
	headers []Header
	body    []byte
	// secrets are masked in the answer.
	secrets secretTexts
}

func newOutgoing(u *url.URL, headers []Header, body []byte) outgoing {
	host := u.Host
	if u.Scheme == "https" {
		host = strings.TrimSuffix(host, ":443")
	}
	return outgoing{method: http.MethodPost, url: u, host: host, headers: headers, body: body}
}

// fields returns every header field in the order in which it is sent.
func (o outgoing) fields() []Header {
	all := make([]Header, 0, len(o.headers)+2)
	all = append(all, Header{Name: "host", Value: o.host, Plain: true})
	all = append(all, o.headers...)
	if o.method == http.MethodHead {
		return all
	}
	length := strconv.Itoa(len(o.body))
	return append(all, Header{Name: "content-length", Value: length, Plain: true})
}

// bytes renders the request in HTTP/1.1, head and body together: one write, and usually
// one packet.
func (o outgoing) bytes() []byte {
	const typicalHead = 1 << 10
	text := make([]byte, 0, len(o.body)+typicalHead)
	text = append(text, o.method+" "+o.url.RequestURI()+" HTTP/1.1\r\n"...)
	for _, field := range o.fields() {
		text = append(text, field.Name+": "+field.Value+"\r\n"...)
	}
	text = append(text, "\r\n"...)
	return append(text, o.body...)
}

// http1Conn is a connection that speaks HTTP/1.1, written and read here rather than by
// net/http for two reasons. Header names must be in lower case on the wire, and net/http
// writes Host, User-Agent and Content-Length in its own form; and one attempt must be one
// request, while net/http may repeat one whose connection died.
type http1Conn struct {
	pool *pool
	end  endpoint
	// conn is the TLS connection, or the TCP connection itself.
	conn net.Conn
	tcp  net.Conn
	peer peer

	meter  *meter
	reader *bufio.Reader
	// stop stops watching the context of the current exchange.
	stop func() bool
	// idle closes the connection when it has not been used for a while.
	idle *time.Timer
	// served means that it carried an answer before; released is when it last did.
	served   bool
	released time.Time
}

func newHTTP1(p *pool, end endpoint, conn, tcp net.Conn, from peer) *http1Conn {
	m := &meter{source: conn}
	return &http1Conn{
		pool: p, end: end, conn: conn, tcp: tcp, peer: from,
		meter: m, reader: bufio.NewReader(m),
	}
}

func (c *http1Conn) remote() peer { return c.peer }

func (c *http1Conn) exchange(ctx context.Context, out outgoing) (answer, error) {
	deadline, _ := ctx.Deadline()
	if err := c.conn.SetDeadline(deadline); err != nil {
		return answer{}, fmt.Errorf("setting the deadline: %w", err)
	}
	c.stop = context.AfterFunc(ctx, func() {
		// A time long past makes reads and writes under way return.
		_ = c.conn.SetDeadline(time.Unix(1, 0))
	})
	got := answer{sent: true}
	if _, err := c.conn.Write(out.bytes()); err != nil {
		if ctx.Err() != nil || errors.Is(err, os.ErrDeadlineExceeded) {
			return got, err
		}
		// An endpoint that stops reading may have answered already.
		if late := time.Now().Add(lateAnswer); late.Before(deadline) {
			deadline = late
		}
		_ = c.conn.SetReadDeadline(deadline)
	}
	written := time.Now()
	c.meter.left = maxHead
	if _, err := c.reader.Peek(1); err != nil {
		if c.served && isLoss(ctx, err) {
			c.pool.lose(c.end)
		}
		return got, err
	}
	got.firstByte = time.Since(written)
	var err error
	//nolint:bodyclose // release closes the connection or reads the body to its end
	if got.response, err = readFinal(c.reader); err != nil {
		return got, c.meter.explain(err)
	}
	c.meter.left = maxWire
	return got, nil
}

// readFinal reads answers up to the first that is not informational. The number of
// informational ones is bounded by the size of all heads together and by the deadline.
func readFinal(reader *bufio.Reader) (*http.Response, error) {
	status := 0
	for {
		resp, err := http.ReadResponse(reader, &http.Request{Method: http.MethodPost})
		switch {
		case err != nil && status != 0 && errors.Is(err, io.ErrUnexpectedEOF):
			f := newSendError(ClassProtocol, CauseBadStatus, fmt.Errorf("%d, and no other followed", status))
			f.status = status
			return nil, f
		case err != nil:
			return nil, err
		case resp.ProtoMajor != 1:
			return nil, newSendError(ClassProtocol, CauseNotHTTP, fmt.Errorf("version %s", resp.Proto))
		case resp.StatusCode/100 != 1, resp.StatusCode == http.StatusSwitchingProtocols:
			return resp, nil
		}
		status = resp.StatusCode
	}
}

func headTooLarge() error {
	return newSendError(ClassProtocol, CauseHeadTooBig, fmt.Errorf("more than %d KiB", maxHead>>10))
}

// release ends the exchange: it keeps the connection if the body could be read to its
// end, else closes it. resp is nil if there was no answer.
func (c *http1Conn) release(resp *http.Response, intact bool) {
	if resp != nil && intact && !resp.Close {
		_ = c.conn.SetReadDeadline(time.Now().Add(drainTime))
		_, err := io.CopyN(io.Discard, resp.Body, drainBytes)
		if errors.Is(err, io.EOF) && c.stop() && !c.hasMore() &&
			c.conn.SetDeadline(time.Time{}) == nil {
			c.pool.put(c, keepAlive(resp.Header))
			return
		}
	}
	c.close()
}

// hasMore reports whether more arrived than the answer. TLS reads ahead from the socket, so
// data behind the answer may be buffered already, and would be taken for the next answer.
func (c *http1Conn) hasMore() bool {
	if c.reader.Buffered() > 0 || c.conn.SetReadDeadline(time.Unix(1, 0)) != nil {
		return true
	}
	// The deadline stops reads from the socket: only buffered data can be returned.
	_, err := c.conn.Read(make([]byte, 1))
	return !errors.Is(err, os.ErrDeadlineExceeded)
}

// close may leave the answer unread: the body's own Close would first read it to its end,
// which may never come.
func (c *http1Conn) close() {
	if c.stop != nil {
		c.stop()
	}
	_ = c.tcp.Close()
}

// isQuiet reports whether an idle connection may be used: the endpoint has neither closed
// it nor sent anything unrequested, and does neither during the trial. It peeks at the
// socket and consumes nothing.
func (c *http1Conn) isQuiet(trial time.Duration) bool {
	socket, ok := c.tcp.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := socket.SyscallConn()
	if err != nil || trial > 0 && c.tcp.SetReadDeadline(time.Now().Add(trial)) != nil {
		return false
	}
	var first [1]byte
	var readErr error
	err = raw.Read(func(fd uintptr) bool {
		_, _, readErr = syscall.Recvfrom(int(fd), first[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		return trial <= 0 || !errors.Is(readErr, syscall.EAGAIN)
	})
	return (err == nil || errors.Is(err, os.ErrDeadlineExceeded)) &&
		errors.Is(readErr, syscall.EAGAIN)
}

// isLoss reports whether an exchange ended because the endpoint closed the connection.
func isLoss(ctx context.Context, err error) bool {
	f := asSendError(answerError(ctx, err))
	return f.cause == CauseClosed || f.cause == CauseReset
}

// keepAlive returns how long the endpoint says it keeps an idle connection, less a second
// for transmission, at most idleTime.
func keepAlive(header http.Header) time.Duration {
	for _, value := range header["Keep-Alive"] {
		for part := range strings.SplitSeq(value, ",") {
			name, number, _ := strings.Cut(textproto.TrimString(part), "=")
			seconds, err := strconv.ParseUint(number, 10, 31)
			if strings.EqualFold(name, "timeout") && err == nil {
				return min(idleTime, max(time.Duration(seconds)*time.Second-time.Second, 0))
			}
		}
	}
	return idleTime
}

// meter bounds what is read from a connection until its bound is set again.
type meter struct {
	source io.Reader
	left   int
	// ended is the error that the last read returned.
	ended error
}

func (m *meter) Read(p []byte) (int, error) {
	if m.left <= 0 {
		return 0, errTooMuch
	}
	var n int
	n, m.ended = m.source.Read(p[:min(len(p), m.left)])
	m.left -= n
	return n, m.ended
}

// explain returns the error of a parser, or the reason why its input ended early: to the
// parser, truncated input looks malformed.
func (m *meter) explain(err error) error {
	var ready *sendError
	switch {
	case errors.As(err, &ready):
		return ready
	case m.left <= 0:
		return headTooLarge()
	case m.ended != nil:
		return m.ended
	}
	return err
}
