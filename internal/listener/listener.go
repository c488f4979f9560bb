// Package listener opens the port that a process serves on: it closes without
// resetting a connection, and encrypts where the settings say so.
package listener

import (
	"context"
	"errors"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// lastHandshakes is how long pending handshakes may take to complete once new connections are
	// turned away.
	lastHandshakes = 100 * time.Millisecond
	// quiet is for how long no connection may arrive before the listener is closed.
	quiet = 10 * time.Millisecond
	// unread is how much of its responses a client may leave unread in the kernel, in bytes; Linux
	// doubles it. The default grows to 4 MB for a client that pipelines requests and reads nothing,
	// and all connections of the machine share a bounded amount of kernel memory.
	unread = 128 << 10
)

// Listener is a TCP listener that can be closed without resetting connections: Close alone resets
// those that are established but not accepted yet.
type Listener struct {
	*net.TCPListener

	closing   atomic.Bool
	closed    chan struct{}
	closeOnce sync.Once
}

// New listens at an address, as host:port.
func New(ctx context.Context, address string) (*Listener, error) {
	var plain net.ListenConfig
	plain.SetMultipathTCP(false) // it takes no filter: see turnAway
	listener, err := plain.Listen(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	tcp, ok := listener.(*net.TCPListener)
	if !ok {
		return nil, errors.Join(errors.New("not a TCP address"), listener.Close())
	}
	return &Listener{TCPListener: tcp, closed: make(chan struct{})}, nil
}

// Shut turns new connections away, waits until the established ones are accepted, and closes the
// listener. Accept must still be called meanwhile.
func (l *Listener) Shut(ctx context.Context) {
	turnAway(l.TCPListener)
	l.closing.Store(true)
	_ = l.SetDeadline(time.Now().Add(lastHandshakes)) // a closed one needs none
	select {
	case <-l.closed:
	case <-ctx.Done():
	}
}

// Accept returns the next connection, or one of the last ones while closing.
func (l *Listener) Accept() (net.Conn, error) {
	conn, err := l.AcceptTCP()
	closing := l.closing.Load() && errors.Is(err, os.ErrDeadlineExceeded)
	if closing {
		_ = l.SetDeadline(time.Now().Add(quiet))
		conn, err = l.AcceptTCP()
	}
	switch {
	case err == nil:
		_ = conn.SetWriteBuffer(unread) // one that is closed already needs none
		return conn, nil
	case closing:
		return nil, errors.Join(net.ErrClosed, l.Close())
	}
	return nil, err
}

// Close closes the listener, at most once.
func (l *Listener) Close() (err error) {
	l.closeOnce.Do(func() {
		err = l.TCPListener.Close()
		close(l.closed)
	})
	return err
}
