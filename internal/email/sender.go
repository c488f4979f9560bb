package email

import (
	"context"
	"errors"
	"net/mail"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
)

// Limits bound how long each part of an attempt may take.
type Limits struct {
	// Connect covers dialling, and again greeting, encryption and sign-in.
	Connect time.Duration
	// Command covers one command and its answer.
	Command time.Duration
	// Body covers the transmission of the message.
	Body time.Duration
	// Answer covers the server's answer to the whole message. It is long: giving
	// up too early leaves a mail whose outcome nobody knows.
	Answer time.Duration
	// Settle is how long a hang-up in the middle of a message is waited for.
	Settle time.Duration
	// Idle is how long an unused connection is kept.
	Idle time.Duration
	// PerConnection is how many mails one connection carries.
	PerConnection int
}

// DefaultLimits suit a mail server of one's own or of a provider.
func DefaultLimits() Limits {
	return Limits{
		Connect:       15 * time.Second,
		Command:       30 * time.Second,
		Body:          time.Minute,
		Answer:        3 * time.Minute,
		Settle:        20 * time.Millisecond,
		Idle:          30 * time.Second,
		PerConnection: 100,
	}
}

// Longest is the longest that an attempt can take: dialling and opening a
// connection, RSET, MAIL, RCPT, DATA, early answers, the message, its answer.
func (l Limits) Longest() time.Duration {
	return 2*l.Connect + 6*l.Command + l.Body + 2*l.Settle + l.Answer
}

// Envelope is a message on its way. From and To are in angle brackets.
type Envelope struct {
	From    string
	To      string
	Message string
}

// Sender hands mail to one server and keeps connections for the next mail. It
// may be used by several goroutines at once; each has a connection to itself.
type Sender struct {
	server Server
	limits Limits
	hello  string

	mu     sync.Mutex
	idle   []*session
	closed bool
}

// NewSender returns a sender that connects when it is first used. Certificates
// are checked against the system's roots, or those of SSL_CERT_FILE.
func NewSender(server Server, limits Limits) *Sender {
	hello := "localhost"
	if name, err := os.Hostname(); err == nil {
		// Only a name that may stand in EHLO.
		if ascii, err := domains.ToASCII(name); err == nil && ascii != "" {
			hello = strings.ToLower(ascii)
		}
	}
	return &Sender{server: server, limits: limits, hello: hello}
}

// Send makes one attempt. It calls handOver when the message was transmitted
// without its closing dot, and sends the dot only if that returns nil.
func (s *Sender) Send(
	ctx context.Context, envelope Envelope, handOver func(context.Context) error,
) Receipt {
	connection, err := s.acquire(ctx)
	if err != nil {
		receipt := Receipt{Server: s.server.Address()}
		if fault, ok := errors.AsType[*stageError](err); ok {
			return receipt.ended(fault.stage, err)
		}
		return receipt.ended(StageConnect, err)
	}
	receipt := connection.transact(ctx, envelope, handOver)
	receipt.Server = s.server.Address()
	if receipt.reusable {
		s.release(connection)
	} else {
		_ = connection.conn.Close() // nothing more is expected of it
	}
	return receipt
}

// Seen is what a probe has seen of the mail server.
type Seen struct {
	// TLS is the protocol version; empty without encryption.
	TLS string
	// SignedIn tells whether there was a sign-in, which is without credentials none.
	SignedIn bool
}

// Probe opens a session as for a mail, names the sender, takes that back and ends
// it. FailedStage tells of the error at which stage the server could not be used.
func (s *Sender) Probe(ctx context.Context, from *mail.Address) (Seen, error) {
	opened, err := dial(ctx, s.server, s.hello, s.limits)
	if err != nil {
		return Seen{}, err
	}
	defer opened.quit()
	seen := Seen{TLS: opened.encryption(), SignedIn: s.server.User != ""}
	for _, line := range []string{"MAIL FROM:" + wirePath(from), "RSET"} {
		err := within(ctx, opened.conn, s.limits.Command, func() error {
			return opened.command(2, line)
		})
		if err != nil {
			return seen, &stageError{StageSender, err}
		}
	}
	return seen, nil
}

// FailedStage is the stage at which a probe failed, empty for another error, and
// what the server answered or what went wrong there.
func FailedStage(err error) (Stage, error) {
	fault, ok := errors.AsType[*stageError](err)
	if !ok {
		return "", err
	}
	return fault.stage, fault.cause
}

// acquire returns an idle session that still works, or a new one.
func (s *Sender) acquire(ctx context.Context) (*session, error) {
	for {
		kept := s.take()
		if kept == nil {
			return dial(ctx, s.server, s.hello, s.limits)
		}
		// Reset also ends a transaction that was left half done.
		if within(ctx, kept.conn, kept.limits.Command, kept.client.Reset) == nil {
			return kept, nil
		}
		_ = kept.conn.Close() // it is broken already
	}
}

// take removes the session that was used last from the idle ones.
func (s *Sender) take() *session {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.idle) == 0 {
		return nil
	}
	last := s.idle[len(s.idle)-1]
	s.idle = s.idle[:len(s.idle)-1]
	last.expiry.Stop()
	return last
}

// release keeps a session for the next mail, or ends it.
func (s *Sender) release(used *session) {
	s.mu.Lock()
	keep := !s.closed && used.carried < s.limits.PerConnection
	if keep {
		used.expiry = time.AfterFunc(s.limits.Idle, func() { s.expire(used) })
		s.idle = append(s.idle, used)
	}
	s.mu.Unlock()
	if !keep {
		used.quit()
	}
}

// expire ends a session that nobody took.
func (s *Sender) expire(old *session) {
	s.mu.Lock()
	i := slices.Index(s.idle, old)
	if i >= 0 {
		s.idle = slices.Delete(s.idle, i, i+1)
	}
	s.mu.Unlock()
	if i >= 0 {
		old.quit()
	}
}

// Close ends the idle connections; those in use end with their mail.
func (s *Sender) Close() {
	s.mu.Lock()
	idle := s.idle
	s.idle, s.closed = nil, true
	s.mu.Unlock()
	for _, one := range idle {
		one.expiry.Stop()
		one.quit()
	}
}
