package emailtest

import (
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/url"
	"slices"
	"sync"
	"testing"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"

	"drawbridge/internal/waittest"
)

// Options configure a server. The zero value accepts every mail, without TLS.
type Options struct {
	// TLS offers STARTTLS, or begins with TLS if Implicit is set.
	TLS      *tls.Certificate
	Implicit bool
	// User and Password are required before any mail.
	User, Password string
	// Mail accepts or refuses each sender, as Rcpt does each recipient; nil accepts all.
	Mail func(from string) error
	// Rcpt accepts or refuses each recipient; nil accepts all. An *smtp.SMTPError chooses the reply.
	Rcpt func(to string) error
	// Data accepts or refuses each message after it was read; nil accepts all.
	Data func(message Message) error
}

// Message is a mail as it arrived.
type Message struct {
	From, To string
	// Source is the message with its headers.
	Source string
	// Encrypted reports whether it arrived over TLS.
	Encrypted bool
}

// Server is an SMTP server on its own port.
type Server struct {
	options Options
	address string

	mu       sync.Mutex
	stop     func() // nil while it is stopped
	sessions int
	messages []Message
	changed  chan struct{} // closed and replaced at each arrival
}

// NewServer starts a server that ends with the test.
func NewServer(t testing.TB, options Options) *Server {
	t.Helper()
	s := NewStopped(t, options)
	s.Start(t)
	return s
}

// NewStopped reserves a port for a server that is not started yet: connections to it are refused.
func NewStopped(t testing.TB, options Options) *Server {
	t.Helper()
	listener := listen(t, "127.0.0.1:0")
	address := listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	s := &Server{options: options, address: address, changed: make(chan struct{})}
	t.Cleanup(func() { s.Stop(t) })
	return s
}

// Start begins to listen on the server's port.
func (s *Server) Start(t testing.TB) {
	t.Helper()
	listener := listen(t, s.address)
	server := smtp.NewServer(smtp.BackendFunc(s.session))
	server.Domain = "localhost"
	// Its log lines are about hang-ups, which tests cause on purpose.
	server.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	if s.options.TLS != nil {
		server.TLSConfig = &tls.Config{
			Certificates: []tls.Certificate{*s.options.TLS}, MinVersion: tls.VersionTLS12,
		}
		if s.options.Implicit {
			listener = tls.NewListener(listener, server.TLSConfig)
			server.TLSConfig = nil
		}
	}
	served := make(chan struct{})
	s.mu.Lock()
	s.stop = func() {
		// The server closes only listeners that it has begun to serve.
		_ = listener.Close()
		_ = server.Close() // which finds the listener closed
		<-served
	}
	s.mu.Unlock()
	go func() {
		defer close(served)
		_ = server.Serve(listener) // ends with an error when it is stopped
	}()
}

// Stop ends the server and closes its connections. It may be started again.
func (s *Server) Stop(t testing.TB) {
	t.Helper()
	s.mu.Lock()
	stop := s.stop
	s.stop = nil
	s.mu.Unlock()
	if stop != nil {
		stop()
	}
}

// URL is the URL of the server, with the credentials that it requires.
func (s *Server) URL() string {
	address := url.URL{Scheme: "smtp", Host: s.address}
	if s.options.Implicit {
		address.Scheme = "smtps"
	}
	if s.options.User != "" {
		address.User = url.UserPassword(s.options.User, s.options.Password)
	}
	return address.String()
}

// Messages returns the accepted messages.
func (s *Server) Messages() []Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.messages)
}

// Sessions counts the connections that greeted the server.
func (s *Server) Sessions() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sessions
}

// Wait returns the messages once there are at least count.
func (s *Server) Wait(t testing.TB, count int) []Message {
	t.Helper()
	for {
		s.mu.Lock()
		changed := s.changed
		s.mu.Unlock()
		messages := s.Messages()
		if len(messages) >= count {
			return messages
		}
		waittest.Receive(t, fmt.Sprintf("a mail after %d of %d", len(messages), count), changed)
	}
}

func (s *Server) accept(message Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.messages = append(s.messages, message)
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *Server) session(conn *smtp.Conn) (smtp.Session, error) {
	s.mu.Lock()
	s.sessions++
	s.mu.Unlock()
	return &session{server: s, conn: conn, trusted: s.options.User == ""}, nil
}

// session is one connection.
type session struct {
	server   *Server
	conn     *smtp.Conn
	trusted  bool
	from, to string
}

// AuthMechanisms offers PLAIN where credentials are required.
func (s *session) AuthMechanisms() []string {
	if s.server.options.User == "" {
		return nil
	}
	return []string{sasl.Plain}
}

// Auth checks the credentials.
func (s *session) Auth(string) (sasl.Server, error) {
	return sasl.NewPlainServer(func(_, user, password string) error {
		if user != s.server.options.User || password != s.server.options.Password {
			return smtp.ErrAuthFailed
		}
		s.trusted = true
		return nil
	}), nil
}

// Mail begins a message.
func (s *session) Mail(from string, _ *smtp.MailOptions) error {
	if !s.trusted {
		return smtp.ErrAuthRequired
	}
	s.from = from
	if s.server.options.Mail == nil {
		return nil
	}
	return s.server.options.Mail(from)
}

// Rcpt names the recipient.
func (s *session) Rcpt(to string, _ *smtp.RcptOptions) error {
	s.to = to
	if s.server.options.Rcpt == nil {
		return nil
	}
	return s.server.options.Rcpt(to)
}

// Data reads the message and accepts it.
func (s *session) Data(r io.Reader) error {
	source, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	_, encrypted := s.conn.TLSConnectionState()
	message := Message{From: s.from, To: s.to, Source: string(source), Encrypted: encrypted}
	if s.server.options.Data != nil {
		if err := s.server.options.Data(message); err != nil {
			return err
		}
	}
	s.server.accept(message)
	return nil
}

// Reset forgets a message that was not finished.
func (s *session) Reset() { s.from, s.to = "", "" }

// Logout ends the session.
func (s *session) Logout() error { return nil }

// listen opens a listening socket.
func listen(t testing.TB, address string) net.Listener {
	t.Helper()
	var config net.ListenConfig
	listener, err := config.Listen(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	return listener
}
