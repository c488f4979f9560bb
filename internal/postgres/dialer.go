package postgres

import (
	"context"
	"net"
	"time"
)

// dialer opens the sockets of lib/pq, which waits for ever for a response unless they have
// deadlines.
type dialer struct {
	net.Dialer

	// grace bounds a socket that is opened only to cancel a statement: the driver waits for it before
	// it returns the statement's error.
	grace time.Duration
}

// opening is a connection in the making, which the dialer finds in its context.
type opening struct {
	ctx    context.Context //nolint:containedctx // that of the one connection
	socket net.Conn
	// settled ends the watch on ctx.
	settled func() bool
}

type openingKey struct{}

// DialContext opens a socket. If it is to become a connection, it fails as soon as the context of
// the connection attempt ends.
func (d *dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	making, ok := ctx.Value(openingKey{}).(*opening)
	if !ok { // only to cancel a statement
		until := time.Now().Add(d.grace)
		ctx, cancel := context.WithDeadline(ctx, until)
		defer cancel()
		socket, err := d.Dialer.DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		_ = socket.SetDeadline(until) // it is closed already if this fails
		return fixedDeadlineConn{socket}, nil
	}
	socket, err := d.Dialer.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	// The driver forgets the socket of a failed attempt, and the server would keep waiting for input
	// on it.
	if making.socket != nil {
		making.settle()
		_ = making.socket.Close() // the driver may have done so
	}
	making.socket = socket
	making.settled = context.AfterFunc(making.ctx, func() {
		_ = socket.SetDeadline(time.Now()) // as above
	})
	return socket, nil
}

// DialTimeout opens a socket without a context.
func (d *dialer) DialTimeout(network, address string, timeout time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	return d.DialContext(ctx, network, address)
}

// fixedDeadlineConn is a socket whose deadline cannot be changed.
type fixedDeadlineConn struct{ net.Conn }

// SetDeadline does nothing: the driver would set connect_timeout, which is longer.
func (fixedDeadlineConn) SetDeadline(time.Time) error { return nil }

// settle ends the watch once the connection is made.
func (o *opening) settle() {
	if o.settled != nil {
		o.settled()
	}
}
