package listener

import (
	"container/list"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

const (
	// firstRequestTimeout is how long a new connection may take to send the head of its request once
	// the process stops.
	firstRequestTimeout = 2 * time.Second
	// maxWaiting bounds the connections without a whole request: new ones, idle ones, and those
	// of which only a part of the request has arrived. Each costs about 22 KB without TLS, and a
	// file descriptor.
	maxWaiting = 4096
)

// Connections tracks the connections of a server. The number of those that wait for a request is
// bounded: beyond it the one that has waited longest, or has been silent longest within a
// request's body, is closed, since anyone can open connections.
//
// It also tracks the unserved connections, on which no request has been read yet: a server that
// shuts down drops a request that it is just reading.
type Connections struct {
	most int

	mu       sync.Mutex
	waiting  list.List // of net.Conn, the longest wait first, until the request is complete
	elements map[net.Conn]*list.Element
	unserved map[net.Conn]bool
	served   chan struct{}
}

// NewConnections returns a tracker that lets waiting connections use at most half of the process's
// file descriptors: the others are for its database, webhooks, e-mails and files.
func NewConnections() *Connections { return newConnections(mostWaiting(descriptors())) }

func mostWaiting(descriptors uint64) int { return int(min(descriptors/2, maxWaiting)) }

func newConnections(most int) *Connections {
	return &Connections{
		most: most, elements: make(map[net.Conn]*list.Element),
		unserved: make(map[net.Conn]bool), served: make(chan struct{}, 1),
	}
}

// Follow makes a server report its connections and the progress of its requests' bodies.
func (c *Connections) Follow(server *http.Server) {
	server.ConnState = c.note
	server.ConnContext = func(ctx context.Context, conn net.Conn) context.Context {
		return context.WithValue(ctx, connKey{}, conn)
	}
	handler := server.Handler
	server.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, _ := r.Context().Value(connKey{}).(net.Conn)
		switch {
		case r.ProtoMajor > 1: // the connection may carry other requests meanwhile
		case r.ContentLength == 0:
			c.arrived(conn)
		default:
			// A copy, since the server inspects the body of its own request.
			r = r.WithContext(r.Context())
			r.Body = &arriving{r.Body, c, conn}
		}
		handler.ServeHTTP(w, r)
	})
}

// connKey is the context key of a request's connection.
type connKey struct{}

// arriving is a request's body that may not have arrived completely.
type arriving struct {
	io.ReadCloser

	of   *Connections
	conn net.Conn
}

// Read implements io.Reader.
func (a *arriving) Read(data []byte) (int, error) {
	n, err := a.ReadCloser.Read(data)
	if err != nil {
		a.of.arrived(a.conn)
	} else {
		a.of.progressed(a.conn)
	}
	return n, err
}

func (c *Connections) arrived(conn net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if element := c.elements[conn]; element != nil {
		c.remove(element)
	}
}

func (c *Connections) progressed(conn net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if element := c.elements[conn]; element != nil {
		c.waiting.MoveToBack(element)
	}
}

// note is the ConnState of the server.
func (c *Connections) note(conn net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	element := c.elements[conn]
	if element != nil && (state != http.StateActive || speaksHTTP2(conn)) {
		c.remove(element)
	}
	if state == http.StateNew || state == http.StateIdle {
		c.elements[conn] = c.waiting.PushBack(conn)
	}
	if c.waiting.Len() > c.most {
		_ = underlying(c.remove(c.waiting.Front())).Close()
	}
	if state == http.StateNew {
		c.unserved[conn] = true
		return
	}
	delete(c.unserved, conn)
	if len(c.unserved) == 0 {
		select {
		case c.served <- struct{}{}:
		default:
		}
	}
}

func (c *Connections) remove(element *list.Element) net.Conn {
	conn, _ := c.waiting.Remove(element).(net.Conn)
	delete(c.elements, conn)
	return conn
}

func speaksHTTP2(conn net.Conn) bool {
	encrypted, ok := conn.(*tls.Conn)
	return ok && encrypted.ConnectionState().NegotiatedProtocol == "h2"
}

// underlying returns the TCP connection: a TLS connection sends an alert when it is closed, and
// waits until that is written.
func underlying(conn net.Conn) net.Conn {
	if encrypted, ok := conn.(*tls.Conn); ok {
		return encrypted.NetConn()
	}
	return conn
}

// allServed reports whether a request was read from every open connection.
func (c *Connections) allServed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.unserved) == 0
}

// WaitServed gives the unserved connections some time to send their requests.
func (c *Connections) WaitServed(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, firstRequestTimeout)
	defer cancel()
	for !c.allServed() {
		select {
		case <-c.served:
		case <-ctx.Done():
			return
		}
	}
	<-time.After(quiet) // the server checks once more before it serves the last one
}
