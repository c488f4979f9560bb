package emailtest

import (
	"bufio"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/textproto"
	"strings"
	"sync"
	"testing"
)

// Script is a server that does what its scene does, connection by connection.
type Script struct {
	listener net.Listener
	scene    func(*Talk)

	mu    sync.Mutex
	count int
	open  map[net.Conn]bool
	wait  sync.WaitGroup
}

// NewScript starts a server that runs scene on every connection until the test ends. When a scene
// returns, its connection is closed.
func NewScript(t testing.TB, scene func(*Talk)) *Script {
	t.Helper()
	return play(t, listen(t, "127.0.0.1:0"), scene)
}

// NewTLSScript is NewScript over TLS from the first byte.
func NewTLSScript(t testing.TB, scene func(*Talk)) *Script {
	t.Helper()
	return play(t, tls.NewListener(listen(t, "127.0.0.1:0"), &tls.Config{
		Certificates: []tls.Certificate{Certificate(true)}, MinVersion: tls.VersionTLS12,
	}), scene)
}

func play(t testing.TB, listener net.Listener, scene func(*Talk)) *Script {
	t.Helper()
	s := &Script{listener: listener, scene: scene, open: make(map[net.Conn]bool)}
	s.wait.Go(s.serve)
	t.Cleanup(s.stop)
	return s
}

// Address is the host:port of the server.
func (s *Script) Address() string { return s.listener.Addr().String() }

func (s *Script) serve() {
	for {
		conn, err := s.listener.Accept()
		if err != nil {
			return
		}
		s.mu.Lock()
		s.count++
		s.open[conn] = true
		talk := &Talk{Number: s.count, conn: conn, text: textproto.NewReader(bufio.NewReader(conn))}
		s.mu.Unlock()
		s.wait.Go(func() {
			defer s.forget(conn)
			defer func() {
				// A scene ends when the other side hangs up.
				if cause := recover(); cause != nil && cause != any(errHangUp) {
					panic(cause)
				}
			}()
			s.scene(talk)
		})
	}
}

func (s *Script) forget(conn net.Conn) {
	s.mu.Lock()
	delete(s.open, conn)
	s.mu.Unlock()
	_ = conn.Close() // it does not matter if the other side closed it first
}

func (s *Script) stop() {
	_ = s.listener.Close() // ends serve
	s.mu.Lock()
	for conn := range s.open {
		_ = conn.Close() // ends a scene that hangs
	}
	s.mu.Unlock()
	s.wait.Wait()
}

// Talk is one connection of a Script. Its methods end the scene when the other
// side has hung up.
type Talk struct {
	// Number counts connections from 1.
	Number int
	conn   net.Conn
	text   *textproto.Reader
}

// errHangUp ends a scene.
var errHangUp = errors.New("the client hung up")

// Say sends lines.
func (t *Talk) Say(lines ...string) {
	for _, line := range lines {
		if _, err := io.WriteString(t.conn, line+"\r\n"); err != nil {
			panic(errHangUp)
		}
	}
}

// Hear returns the next line from the client.
func (t *Talk) Hear() string {
	line, err := t.text.ReadLine()
	if err != nil {
		panic(errHangUp)
	}
	return line
}

// Message returns everything up to the dot.
func (t *Talk) Message() string {
	lines, err := t.text.ReadDotLines()
	if err != nil {
		panic(errHangUp)
	}
	return strings.Join(lines, "\r\n")
}

// Silence sends nothing and discards all input until the other side hangs up.
func (t *Talk) Silence() { _, _ = io.Copy(io.Discard, t.text.R) }

// Greet plays the beginning of a session up to the answer to EHLO.
func (t *Talk) Greet(extensions ...string) {
	t.Say("220 localhost ESMTP")
	t.Hear()
	all := append([]string{"localhost"}, extensions...)
	for i, extension := range all {
		separator := "-"
		if i == len(all)-1 {
			separator = " "
		}
		t.Say("250" + separator + extension)
	}
}

// Envelope plays MAIL, RCPT and DATA, and returns when the message is due.
func (t *Talk) Envelope() {
	for _, answer := range []string{"250 ok", "250 ok", "354 go on"} {
		t.Hear()
		t.Say(answer)
	}
}
