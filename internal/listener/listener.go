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
	// lastHandshakes is what connections that are being made have to get there
	// once new ones are turned away.
	lastHandshakes = 100 * time.Millisecond
	// quiet is how long nobody may come before the listener is closed.
	quiet = 10 * time.Millisecond
)

// Listener is a TCP listener that can be closed without resetting anybody: Close
// alone resets the connections that were made and not accepted yet.
type Listener struct {
	*net.TCPListener

	closing   atomic.Bool
	closed    chan struct{}
	closeOnce sync.Once
}

// New listens at an address, as host:port.
func New(ctx context.Context, address string) (*Listener, error) {
	var plain net.ListenConfig
	plain.SetMultipathTCP(false) // which takes no filter: see turnAway
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

// Shut turns new connections away, waits until those that were made are accepted,
// and closes the listener. It needs somebody who goes on accepting.
func (l *Listener) Shut(ctx context.Context) {
	turnAway(l.TCPListener)
	l.closing.Store(true)
	_ = l.SetDeadline(time.Now().Add(lastHandshakes)) // a closed one needs none
	select {
	case <-l.closed:
	case <-ctx.Done():
	}
}

// Accept returns the next connection; the last ones, when it is closing.
func (l *Listener) Accept() (net.Conn, error) {
	conn, err := l.TCPListener.Accept()
	if !l.closing.Load() || !errors.Is(err, os.ErrDeadlineExceeded) {
		return conn, err
	}
	_ = l.SetDeadline(time.Now().Add(quiet))
	if conn, err = l.TCPListener.Accept(); err == nil {
		return conn, nil
	}
	return nil, errors.Join(net.ErrClosed, l.Close())
}

// Close closes the listener, at most once.
func (l *Listener) Close() (err error) {
	l.closeOnce.Do(func() {
		err = l.TCPListener.Close()
		close(l.closed)
	})
	return err
}
