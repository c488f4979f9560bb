package email

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/wneessen/go-mail/smtp"
)

// session is one connection to the mail server, after greeting and sign-in.
type session struct {
	conn   net.Conn // below TLS: deadlines are set here
	client *smtp.Client
	limits Limits
	// carried counts the mails that were tried on it.
	carried int
	// expiry closes the session while it is idle.
	expiry *time.Timer
}

// maxRead bounds how much is read from a connection, in bytes: a mail takes some hundred, and an
// endless reply would fill the memory before its time is over.
const maxRead = 4 << 20

var errReadLimit = errors.New("the mail server says more than is read")

// limitedConn is a connection from which at most left bytes are read.
type limitedConn struct {
	net.Conn

	left int
}

// Read reads at most the bytes that are left.
func (h *limitedConn) Read(data []byte) (int, error) {
	if h.left <= 0 {
		return 0, errReadLimit
	}
	n, err := h.Conn.Read(data[:min(len(data), h.left)])
	h.left -= n
	return n, err
}

// stageError says at which stage opening a session failed.
type stageError struct {
	stage Stage
	cause error
}

func (e *stageError) Error() string { return fmt.Sprintf("%s: %v", e.stage, e.cause) }
func (e *stageError) Unwrap() error { return e.cause }

// pastDeadline is a deadline that has passed: setting it ends every wait.
var pastDeadline = time.Unix(1, 0)

// within runs use and ends it when ctx ends or limit has passed; the connection is unusable after
// that.
func within(ctx context.Context, conn net.Conn, limit time.Duration, use func() error) error {
	timed, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	stop := context.AfterFunc(timed, func() { _ = conn.SetDeadline(pastDeadline) })
	defer stop()
	err := use()
	switch {
	case err == nil || timed.Err() == nil:
		return err
	case errors.Is(ctx.Err(), context.Canceled):
		return fmt.Errorf("%w: %w", context.Canceled, err)
	}
	return fmt.Errorf("%w: %w", errSilent, err)
}

// dial opens a session. The error is a stageError.
func dial(ctx context.Context, server Server, hello string, limits Limits) (*session, error) {
	dialer := net.Dialer{Timeout: limits.Connect}
	conn, err := dialer.DialContext(ctx, "tcp", server.Address())
	if err != nil {
		return nil, &stageError{StageConnect, err}
	}
	conn = &limitedConn{Conn: conn, left: maxRead}
	s := &session{conn: conn, limits: limits}
	err = within(ctx, conn, limits.Connect, func() error {
		return s.open(ctx, server, hello)
	})
	if err != nil {
		_ = conn.Close() // the first error says more
		return nil, err
	}
	return s, nil
}

// open greets, encrypts and signs in.
func (s *session) open(ctx context.Context, server Server, hello string) error {
	config := &tls.Config{ServerName: server.Host, MinVersion: tls.VersionTLS12}
	wire := s.conn
	if server.ImplicitTLS {
		encrypted := tls.Client(wire, config)
		if err := encrypted.HandshakeContext(ctx); err != nil {
			return &stageError{StageTLS, err}
		}
		wire = encrypted
	}
	var err error
	if s.client, err = smtp.NewClient(wire, server.Host); err != nil {
		return &stageError{StageGreeting, err}
	}
	if err := s.client.Hello(hello); err != nil {
		return &stageError{StageGreeting, err}
	}
	if !server.ImplicitTLS {
		// A password never crosses the network in the clear: with credentials, STARTTLS is required.
		if offered, _ := s.client.Extension("STARTTLS"); offered {
			if err := s.client.StartTLS(config); err != nil {
				return &stageError{StageTLS, err}
			}
		} else if server.User != "" {
			return &stageError{StageTLS, errNoStartTLS}
		}
	}
	if server.User == "" {
		return nil
	}
	if err := s.signIn(server); err != nil {
		return &stageError{StageAuth, err}
	}
	return nil
}

// signIn picks the strongest mechanism that both sides support. Over TLS, which is certain here,
// PLAIN is as good as the older challenge schemes.
func (s *session) signIn(server Server) error {
	_, offer := s.client.Extension("AUTH")
	mechanisms := strings.Fields(strings.ToUpper(offer))
	for _, one := range []struct {
		name string
		auth smtp.Auth
	}{
		{"SCRAM-SHA-256", smtp.ScramSHA256Auth(server.User, server.Password)},
		{"PLAIN", smtp.PlainAuth("", server.User, server.Password, server.Host, false)},
		{"LOGIN", smtp.LoginAuth(server.User, server.Password, server.Host, false)},
		{"CRAM-MD5", smtp.CRAMMD5Auth(server.User, server.Password)},
	} {
		if slices.Contains(mechanisms, one.name) {
			return s.client.Auth(one.auth)
		}
	}
	return fmt.Errorf("%w: %q", errNoMechanism, clip(offer))
}

// transact sends one mail. See the package documentation for handOver.
func (s *session) transact(
	ctx context.Context, envelope Envelope, handOver func(context.Context) error,
) Receipt {
	s.carried++
	receipt := Receipt{TLS: s.encryption()}
	size := ""
	if offered, _ := s.client.Extension("SIZE"); offered { // so that it refuses early (RFC 1870)
		size = fmt.Sprintf(" SIZE=%d", len(envelope.Message))
	}
	for _, step := range []struct {
		stage  Stage
		expect int
		line   string
	}{
		{StageSender, 2, "MAIL FROM:" + envelope.From + size},
		{StageRecipient, 2, "RCPT TO:" + envelope.To},
		{StageData, 354, "DATA"},
	} {
		err := within(ctx, s.conn, s.limits.Command, func() error {
			return s.command(step.expect, step.line)
		})
		if err != nil {
			return receipt.ended(step.stage, err)
		}
	}
	dot := s.client.Text.DotWriter()
	err := within(ctx, s.conn, s.limits.Body, func() error {
		if _, err := io.WriteString(dot, envelope.Message); err != nil {
			return err
		}
		return s.client.Text.W.Flush()
	})
	if err != nil {
		return receipt.ended(StageData, err)
	}
	if err := s.settle(ctx, s.limits.Settle); err != nil {
		return receipt.cut(err)
	}
	if err := handOver(ctx); err != nil {
		receipt.Stage, receipt.Outcome = StageData, OutcomeInterrupted
		receipt.Error = clip(err.Error()) // of the database, not of the mail server
		if ctx.Err() != nil {
			receipt.Error = explain(ctx.Err())
		}
		return receipt
	}
	// Committing the hand-over took a moment, in which the server may have gone.
	if err := s.settle(ctx, time.Millisecond); err != nil {
		return receipt.cut(err)
	}
	return s.finish(ctx, receipt, dot)
}

// settle gives a server that hangs up in the middle of a message the moment that it takes to
// notice: before the dot, that is a plain failure. After it, nobody could tell whether the mail was
// accepted.
func (s *session) settle(ctx context.Context, wait time.Duration) error {
	if err := s.conn.SetReadDeadline(time.Now().Add(wait)); err != nil {
		return err
	}
	_, err := s.client.Text.R.Peek(1)
	switch {
	case err == nil: // the server speaks out of turn
		return within(ctx, s.conn, s.limits.Command, func() error {
			_, reply, err := s.client.Text.ReadResponse(2)
			if err != nil {
				return err
			}
			return fmt.Errorf("the mail server answered before the message ended: %s", clip(reply))
		})
	case !errors.Is(err, os.ErrDeadlineExceeded):
		return err
	}
	if err := s.conn.SetReadDeadline(time.Time{}); err != nil {
		return err
	}
	// Clearing the deadline may have undone the one that was set when the context ended.
	return ctx.Err()
}

// finish sends the dot and waits for the answer. From here on stopping would only lose the answer,
// so the end of ctx does not end the wait; the limit does.
func (s *session) finish(ctx context.Context, receipt Receipt, dot io.Closer) Receipt {
	var closing, answer error
	var code int
	var reply string
	_ = within(context.WithoutCancel(ctx), s.conn, s.limits.Answer, func() error {
		if closing = dot.Close(); closing == nil {
			code, reply, answer = s.client.Text.ReadResponse(2)
		}
		return answer
	})
	if closing != nil { // the dot never left: the connection was known to be dead
		return receipt.ended(StageData, closing)
	}
	if answer == nil {
		receipt.Stage, receipt.Outcome, receipt.reusable = StageHandOver, OutcomeSent, true
		receipt.Code, receipt.Reply = code, clip(reply)
		return receipt
	}
	receipt = receipt.ended(StageHandOver, answer)
	if receipt.Code < 400 { // no answer, or a meaningless one
		receipt.Outcome = OutcomeUnknown
	}
	return receipt
}

// command sends one line and reads the reply, whose code must begin with expect.
func (s *session) command(expect int, line string) error {
	id, err := s.client.Text.Cmd("%s", line)
	if err != nil {
		return err
	}
	s.client.Text.StartResponse(id)
	defer s.client.Text.EndResponse(id)
	_, _, err = s.client.Text.ReadResponse(expect)
	return err
}

func (s *session) encryption() string {
	state, ok := s.client.TLSConnectionState()
	if !ok {
		return ""
	}
	return tls.VersionName(state.Version)
}

// quit sends QUIT, but does not wait long for a reply.
func (s *session) quit() {
	_ = within(context.Background(), s.conn, time.Second, s.client.Quit)
	_ = s.conn.Close() // Quit closes it only after a reply
}
