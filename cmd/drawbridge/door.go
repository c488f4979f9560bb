package main

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
	// quiet is how long nobody may come before the door is closed.
	quiet = 10 * time.Millisecond
)

// door is a listener that can be closed without resetting anybody: a listener's
// Close resets the connections that were made and not accepted yet.
type door struct {
	*net.TCPListener

	closing   atomic.Bool
	closed    chan struct{}
	closeOnce sync.Once
}

// newDoor listens at an address, as host:port.
func newDoor(ctx context.Context, address string) (*door, error) {
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
	return &door{TCPListener: tcp, closed: make(chan struct{})}, nil
}

// shut turns new connections away, waits until those that were made are accepted,
// and closes the listener. It needs somebody who goes on accepting.
func (d *door) shut(ctx context.Context) {
	turnAway(d.TCPListener)
	d.closing.Store(true)
	_ = d.SetDeadline(time.Now().Add(lastHandshakes)) // a closed one needs none
	select {
	case <-d.closed:
	case <-ctx.Done():
	}
}

// Accept returns the next connection; the last ones, when the door is closing.
func (d *door) Accept() (net.Conn, error) {
	conn, err := d.TCPListener.Accept()
	if !d.closing.Load() || !errors.Is(err, os.ErrDeadlineExceeded) {
		return conn, err
	}
	_ = d.SetDeadline(time.Now().Add(quiet))
	if conn, err = d.TCPListener.Accept(); err == nil {
		return conn, nil
	}
	return nil, errors.Join(net.ErrClosed, d.Close())
}

// Close closes the listener, at most once.
func (d *door) Close() (err error) {
	d.closeOnce.Do(func() {
		err = d.TCPListener.Close()
		close(d.closed)
	})
	return err
}

// askTime is what a connection that was just made has for the head of its request once
// the process stops.
const askTime = 2 * time.Second

// comers are the connections on which no request has been read yet: a server that
// shuts down drops the one that it reads then.
type comers struct {
	mu    sync.Mutex
	conns map[net.Conn]bool
	gone  chan struct{}
}

func newComers() *comers {
	return &comers{conns: make(map[net.Conn]bool), gone: make(chan struct{}, 1)}
}

// note is told of each connection's state.
func (c *comers) note(conn net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if state == http.StateNew {
		c.conns[conn] = true
		return
	}
	delete(c.conns, conn)
	if len(c.conns) == 0 {
		select {
		case c.gone <- struct{}{}:
		default:
		}
	}
}

// none tells that every connection has asked or gone.
func (c *comers) none() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.conns) == 0
}

// wait gives those that have come some time to ask.
func (c *comers) wait(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	for !c.none() {
		select {
		case <-c.gone:
		case <-ctx.Done():
			return
		}
	}
	<-time.After(quiet) // the server looks once more before it serves the last one
}
