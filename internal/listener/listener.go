// Package listener opens the port that a process serves on: it closes without
// resetting a connection, and encrypts where the settings say so.
package listener

import (
	"context"
	"errors"
	"net"
	"net/http"
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

// askTime is what a connection that was just made has for the head of its request once
// the process stops.
const askTime = 2 * time.Second

// Unserved are the connections on which no request has been read yet: a server that
// shuts down drops the one that it reads then.
type Unserved struct {
	mu    sync.Mutex
	conns map[net.Conn]bool
	gone  chan struct{}
}

// NewUnserved has no connections yet.
func NewUnserved() *Unserved {
	return &Unserved{conns: make(map[net.Conn]bool), gone: make(chan struct{}, 1)}
}

// Note is told of each connection's state.
func (u *Unserved) Note(conn net.Conn, state http.ConnState) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if state == http.StateNew {
		u.conns[conn] = true
		return
	}
	delete(u.conns, conn)
	if len(u.conns) == 0 {
		select {
		case u.gone <- struct{}{}:
		default:
		}
	}
}

// none tells that every connection has asked or gone.
func (u *Unserved) none() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return len(u.conns) == 0
}

// Wait gives those that have come some time to ask.
func (u *Unserved) Wait(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	for !u.none() {
		select {
		case <-u.gone:
		case <-ctx.Done():
			return
		}
	}
	<-time.After(quiet) // the server looks once more before it serves the last one
}
