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
	// Connect covers dialling, and once more greeting, encryption and sign-in.
	Connect time.Duration
	// Command covers one command and its answer.
	Command time.Duration
	// Body covers the transmission of the message.
	Body time.Duration
	// Answer covers the server's answer to the whole message. It is long: giving up too early leaves a
	// mail with an unknown outcome.
	Answer time.Duration
	// Settle is how long to wait for a hang-up in the middle of a message.
	Settle time.Duration
	// Idle is how long an unused connection is kept.
	Idle time.Duration
	// PerConnection is how many mails one connection carries.
	PerConnection int
}

// DefaultLimits suit the lender's own mail server or that of a provider.
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

// Longest is the longest that an attempt can take: dialling and opening a connection, RSET, MAIL,
// RCPT, DATA, early replies, the message, its answer.
func (l Limits) Longest() time.Duration {
	return 2*l.Connect + 6*l.Command + l.Body + 2*l.Settle + l.Answer
}

// Envelope is a message with its addresses. From and To are in angle brackets.
type Envelope struct {
	From    string
	To      string
	Message string
}

// SMTPClient sends mail to one server and keeps connections for the next mail. It may be used by
// several goroutines at once; each has its own connection.
type SMTPClient struct {
	server Server
	limits Limits
	hello  string

	mu     sync.Mutex
	idle   []*session
	closed bool
}

// NewSMTPClient returns a client that connects when it is first used. Certificates are checked
// against the system's roots, or those of SSL_CERT_FILE.
func NewSMTPClient(server Server, limits Limits) *SMTPClient {
	hello := "localhost"
	if name, err := os.Hostname(); err == nil {
		// Only a name that may stand in EHLO.
		if ascii, err := domains.ToASCII(name); err == nil && ascii != "" {
			hello = strings.ToLower(ascii)
		}
	}
	return &SMTPClient{server: server, limits: limits, hello: hello}
}

// Send makes one attempt. It calls handOver when the message was transmitted without its closing
// dot, and sends the dot only if that returns nil.
func (c *SMTPClient) Send(
	ctx context.Context, envelope Envelope, handOver func(context.Context) error,
) Receipt {
	connection, err := c.acquire(ctx)
	if err != nil {
		stage, _ := FailedStage(err) // dial sets the stage
		return Receipt{Server: c.server.Address()}.ended(stage, err)
	}
	receipt := connection.transact(ctx, envelope, handOver)
	receipt.Server = c.server.Address()
	if receipt.reusable {
		c.release(connection)
	} else {
		_ = connection.conn.Close() // it is of no further use
	}
	return receipt
}

// Seen is what a probe found out about the mail server.
type Seen struct {
	// TLS is the protocol version; empty without encryption.
	TLS string
	// SignedIn reports whether there was a sign-in; without credentials there is none.
	SignedIn bool
}

// Probe opens a session as for a mail, names the sender, resets the transaction and ends the
// session. FailedStage returns the stage of its error.
func (c *SMTPClient) Probe(ctx context.Context, from *mail.Address) (Seen, error) {
	opened, err := dial(ctx, c.server, c.hello, c.limits)
	if err != nil {
		return Seen{}, err
	}
	defer opened.quit()
	seen := Seen{TLS: opened.encryption(), SignedIn: c.server.User != ""}
	for _, line := range []string{"MAIL FROM:" + wirePath(from), "RSET"} {
		err := within(ctx, opened.conn, c.limits.Command, func() error {
			return opened.command(2, line)
		})
		if err != nil {
			return seen, &stageError{StageSender, err}
		}
	}
	return seen, nil
}

// FailedStage returns the stage at which a probe failed, empty for another error, and the server's
// reply or the failure there.
func FailedStage(err error) (Stage, error) {
	failed, ok := errors.AsType[*stageError](err)
	if !ok {
		return "", err
	}
	return failed.stage, failed.cause
}

// acquire returns an idle session that still works, or a new one.
func (c *SMTPClient) acquire(ctx context.Context) (*session, error) {
	for {
		kept := c.take()
		if kept == nil {
			return dial(ctx, c.server, c.hello, c.limits)
		}
		// Reset also ends a transaction that was left unfinished.
		if within(ctx, kept.conn, kept.limits.Command, kept.client.Reset) == nil {
			return kept, nil
		}
		_ = kept.conn.Close() // it is broken already
	}
}

// take removes the most recently used session from the idle ones.
func (c *SMTPClient) take() *session {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.idle) == 0 {
		return nil
	}
	last := c.idle[len(c.idle)-1]
	c.idle = c.idle[:len(c.idle)-1]
	last.expiry.Stop()
	return last
}

// release keeps a session for the next mail, or ends it.
func (c *SMTPClient) release(used *session) {
	c.mu.Lock()
	keep := !c.closed && used.carried < c.limits.PerConnection
	if keep {
		used.expiry = time.AfterFunc(c.limits.Idle, func() { c.expire(used) })
		c.idle = append(c.idle, used)
	}
	c.mu.Unlock()
	if !keep {
		used.quit()
	}
}

// expire ends a session that was not used again.
func (c *SMTPClient) expire(old *session) {
	c.mu.Lock()
	i := slices.Index(c.idle, old)
	if i >= 0 {
		c.idle = slices.Delete(c.idle, i, i+1)
	}
	c.mu.Unlock()
	if i >= 0 {
		old.quit()
	}
}

// Close ends the idle connections; those in use end with their mail.
func (c *SMTPClient) Close() {
	c.mu.Lock()
	idle := c.idle
	c.idle, c.closed = nil, true
	c.mu.Unlock()
	for _, one := range idle {
		one.expiry.Stop()
		one.quit()
	}
}
