package sender

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// DefaultTimeout is how long an endpoint has, from the name lookup to the last
// byte of its answer (specification section 6.1).
const DefaultTimeout = 30 * time.Second

// Config configures a Sender. The zero value sends to public addresses
// with the system's resolver and trust roots.
type Config struct {
	Policy Policy
	// Resolver defaults to the system's.
	Resolver Resolver
	// RootCAs default to the system's, or those of SSL_CERT_FILE.
	RootCAs *x509.CertPool
	// Timeout bounds a whole attempt; 0 means DefaultTimeout.
	Timeout time.Duration
	// Now is the clock for checking certificates and the dates in answers; it defaults to
	// the machine's.
	Now func() time.Time
	// Version is sent in the user agent; empty means "dev".
	Version string
	// Environment is named on every request; empty in production.
	Environment string
}

// Sender makes attempts. It is safe for use by several goroutines; how many
// attempts run at a time is up to the callers.
type Sender struct {
	policy      Policy
	dialer      dialer
	timeout     time.Duration
	now         func() time.Time
	userAgent   string
	environment string
	tls         *tls.Config
	http2       *http.Transport
	pool        *pool
}

// New returns a sender. Close it when its last attempt has ended.
func New(config Config) *Sender {
	const sessions = 1024
	now := config.Now
	if now == nil {
		now = time.Now
	}
	return &Sender{
		policy:      config.Policy,
		dialer:      dialer{policy: config.Policy, resolver: config.Resolver},
		timeout:     cmp.Or(config.Timeout, DefaultTimeout),
		now:         now,
		userAgent:   "Drawbridge-Webhooks/" + cmp.Or(config.Version, "dev"),
		environment: config.Environment,
		tls: &tls.Config{
			RootCAs:            config.RootCAs,
			Time:               now,
			MinVersion:         tls.VersionTLS12,
			ClientSessionCache: tls.NewLRUClientSessionCache(sessions),
		},
		http2: newHTTP2Transport(),
		pool: &pool{
			max: maxIdle, perEndpoint: maxIdlePerEndpoint, trial: trialTime,
			idle: map[endpoint][]*http1Conn{}, shared: map[endpoint][]*http2Conn{},
			trusts: map[endpoint]trust{},
		},
	}
}

// Timeout returns the bound on a whole attempt.
func (s *Sender) Timeout() time.Duration { return s.timeout }

// Close closes the pooled connections.
func (s *Sender) Close() { s.pool.close() }

// Send makes one attempt: at most one HTTP request, no redirect followed,
// nothing repeated. The endpoint's failure is an outcome, not an error.
//
// Cancelling ctx abandons the attempt. Its class is then unknown unless a status had
// come; Sent reports whether the endpoint may have got the request.
func (s *Sender) Send(ctx context.Context, r Request) Attempt { return s.make(ctx, r, s.attempt) }

// make makes an attempt with the given way of sending. The errors of send are send
// errors: attempts without a final answer.
func (s *Sender) make(
	ctx context.Context, r Request,
	send func(ctx context.Context, u *url.URL, out outgoing, a *Attempt) error,
) Attempt {
	start := time.Now()
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	var a Attempt
	headers, secrets := buildHeaders(r, s.userAgent, s.environment), secretsOf(r)
	u, err := s.policy.CheckURL(r.URL)
	if err != nil {
		a.RequestHeaders = Mask(headers)
		err = newSendError(ClassBlocked, CauseURL, err)
	} else {
		out := newOutgoing(u, headers, r.Body)
		out.secrets = secrets
		a.RequestHeaders = Mask(out.fields())
		err = send(ctx, u, out, &a)
	}
	if err != nil {
		f := asSendError(err)
		a.Class, a.Cause, a.Status, a.Local = f.class, f.cause, f.status, f.isLocal()
		a.Error = cut(secrets.hide(f.Error()), maxErrorText)
	}
	a.Timings.Total = time.Since(start)
	return a
}

func (s *Sender) attempt(ctx context.Context, u *url.URL, out outgoing, a *Attempt) error {
	end := endpoint{scheme: u.Scheme, host: u.Host}
	end.http1 = slices.ContainsFunc(out.headers, func(h Header) bool {
		return slices.Contains(http1Headers, strings.ToLower(h.Name)) &&
			!(strings.EqualFold(h.Name, "te") && strings.EqualFold(h.Value, "trailers"))
	})
	if kept := s.pool.take(end); kept != nil {
		a.Reused = true
		err := s.exchange(ctx, kept, out, a)
		if !errors.Is(err, errNotSent) {
			return err
		}
		a.Reused = false
	}
	fresh, err := s.open(ctx, u, end, a)
	if err != nil {
		return err
	}
	return s.exchange(ctx, fresh, out, a)
}

func (s *Sender) exchange(ctx context.Context, c connection, out outgoing, a *Attempt) error {
	from := c.remote()
	a.Address, a.TLSVersion, a.CertificateExpires = from.addr, from.tls, from.expires
	got, err := c.exchange(ctx, out)
	a.Sent, a.Timings.FirstByte = got.sent, got.firstByte
	if err != nil {
		c.release(nil, false)
		if errors.Is(err, errNotSent) && a.Reused {
			return err
		}
		return answerError(ctx, err)
	}
	c.release(got.response, a.take(ctx, got.response, out.secrets, s.now()))
	return nil
}

func (s *Sender) open(
	ctx context.Context, u *url.URL, end endpoint, a *Attempt,
) (connection, error) {
	made, err := s.dialer.dial(ctx, u)
	a.Address, a.Timings.DNS, a.Timings.Connect = made.addr, made.dns, made.connect
	if err != nil {
		return nil, err
	}
	var secured *tls.Conn
	if u.Scheme == "https" {
		secured, a.Timings.TLS, err = s.handshake(ctx, made.conn, u.Hostname(), end.http1)
		if err != nil {
			_ = made.conn.Close()
			return nil, tlsError(ctx, err, s.now())
		}
	}
	c, err := s.speak(ctx, end, made, secured)
	if shared, ok := c.(*http2Conn); ok && !s.pool.share(shared) {
		shared.private = true // not in the pool, so no other attempt uses it
	}
	return c, err
}

func (s *Sender) handshake(
	ctx context.Context, conn net.Conn, host string, http1 bool,
) (*tls.Conn, time.Duration, error) {
	config := s.tls.Clone()
	config.ServerName = host
	config.NextProtos = []string{"h2", "http/1.1"}
	if http1 {
		config.NextProtos = []string{"http/1.1"}
	}
	start := time.Now()
	secured := tls.Client(conn, config)
	err := secured.HandshakeContext(ctx)
	return secured, time.Since(start), err
}

// speak starts HTTP over a new connection, over TLS unless secured is nil.
func (s *Sender) speak(
	ctx context.Context, end endpoint, made link, secured *tls.Conn,
) (connection, error) {
	from := peer{addr: made.addr}
	if secured == nil {
		return newHTTP1(s.pool, end, made.conn, made.conn, from), nil
	}
	state := secured.ConnectionState()
	from.tls, from.expires = tls.VersionName(state.Version), state.PeerCertificates[0].NotAfter
	if state.NegotiatedProtocol != "h2" {
		return newHTTP1(s.pool, end, secured, made.conn, from), nil
	}
	c, err := s.newHTTP2(ctx, end, secured, from)
	if err != nil {
		_ = made.conn.Close()
		return nil, answerError(ctx, err)
	}
	return c, nil
}
