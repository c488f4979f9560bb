package sender

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"time"
)

// maxLocation bounds the redirect target that is kept, in bytes.
const maxLocation = 300

// Probe is the result of probing an endpoint. Texts that the endpoint chose are bounded
// and printable.
type Probe struct {
	URL string
	// Class is empty if nothing would keep a delivery from arriving, else the class of the
	// failure, which Error explains.
	Class ErrorClass
	Cause Cause
	Error string
	// Address is the address dialled or refused, the zero value if none.
	Address netip.AddrPort
	// Status is that of the answer, 0 without one. Any status but a redirect is fine: an
	// endpoint for webhooks need not answer a HEAD request well.
	Status int
	// Location is where the endpoint redirects to, if it does.
	Location string
	// Protocol is "HTTP/1.1" or "HTTP/2.0", TLSVersion such as "TLS 1.3".
	Protocol, TLSVersion string
	// Issuer is the issuer of the certificate; Expires is when the first certificate of its
	// chain expires. Both are set for a refused one too.
	Issuer  string
	Expires time.Time
	Timings Timings
}

// Probe probes an endpoint the way a delivery would reach it: with the same destination
// rules, name lookup and dialler, over a separate connection. It never sends an event:
// with ask it makes one HEAD request without a body, custom headers or authentication,
// marked by "x-drawbridge-probe: true", which shows redirects and the time to answer;
// otherwise it ends after the TLS handshake.
func (s *Sender) Probe(ctx context.Context, rawURL string, limit time.Duration, ask bool) Probe {
	start := time.Now()
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	probe := Probe{URL: rawURL}
	if err := s.probe(ctx, &probe, ask); err != nil {
		f := asSendError(err)
		probe.Class, probe.Cause = f.class, f.cause
		probe.Error = cut(f.Error(), maxErrorText)
	}
	probe.Timings.Total = time.Since(start)
	return probe
}

// probe goes as far as a delivery would, and records the certificate, refused or not.
func (s *Sender) probe(ctx context.Context, p *Probe, ask bool) error {
	u, err := s.policy.CheckURL(p.URL)
	if err != nil {
		return newSendError(ClassBlocked, CauseURL, err)
	}
	made, err := s.dialer.dial(ctx, u)
	p.Address, p.Timings.DNS, p.Timings.Connect = made.addr, made.dns, made.connect
	if err != nil {
		return err
	}
	defer made.conn.Close()
	var secured *tls.Conn
	if u.Scheme == "https" {
		secured, p.Timings.TLS, err = s.handshake(ctx, made.conn, u.Hostname(), false)
		if refused, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
			p.noteChains([][]*x509.Certificate{refused.UnverifiedCertificates})
		}
		if err != nil {
			return tlsError(ctx, err, s.now())
		}
		state := secured.ConnectionState()
		p.TLSVersion = tls.VersionName(state.Version)
		p.noteChains(state.VerifiedChains)
	}
	if !ask {
		return nil
	}
	c, err := s.speak(ctx, endpoint{}, made, secured)
	if err != nil {
		return err
	}
	if own, ok := c.(*http2Conn); ok {
		own.private = true // deliveries do not share it
	}
	return s.ask(ctx, p, c, u)
}

// noteChains records when the longest-lasting chain expires, which is when the first of
// its certificates does.
func (p *Probe) noteChains(chains [][]*x509.Certificate) {
	for _, chain := range chains {
		if len(chain) == 0 {
			continue
		}
		first := slices.MinFunc(chain, func(a, b *x509.Certificate) int {
			return a.NotAfter.Compare(b.NotAfter)
		})
		if first.NotAfter.After(p.Expires) {
			p.Expires = first.NotAfter
		}
		p.Issuer = printable(chain[0].Issuer.String(), maxLocation)
	}
}

// ask makes the HEAD request. It fails only for a redirect or without an answer.
func (s *Sender) ask(ctx context.Context, p *Probe, c connection, u *url.URL) error {
	out := newOutgoing(u, []Header{
		{Name: "user-agent", Value: s.userAgent},
		{Name: "x-drawbridge-probe", Value: "true"},
		{Name: "connection", Value: "close"},
	}, nil)
	out.method = http.MethodHead
	if _, isHTTP2 := c.(*http2Conn); isHTTP2 {
		out.headers = out.headers[:2]
	}
	got, err := c.exchange(ctx, out)
	p.Timings.FirstByte = got.firstByte
	defer c.release(nil, false)
	if err != nil {
		return answerError(ctx, err)
	}
	p.Status, p.Protocol = got.response.StatusCode, got.response.Proto
	if statusClass(p.Status) != ClassHTTP3xx {
		return nil
	}
	p.Location = printable(got.response.Header.Get("Location"), maxLocation)
	return newSendError(ClassHTTP3xx, CauseStatus, nil).withDetail(
		"%d, a redirect to %s; deliveries do not follow redirects",
		p.Status, cmp.Or(p.Location, "nowhere"))
}

// CertificateWarning returns the number of days within which a certificate expires, if
// that is worth a warning: 21, 7 or 1; -1 once it has expired, and 0 if no warning is
// needed.
func CertificateWarning(expires, now time.Time) int {
	if !expires.After(now) {
		return -1
	}
	for _, days := range []int{1, 7, 21} {
		if expires.Sub(now) <= time.Duration(days)*24*time.Hour {
			return days
		}
	}
	return 0
}

// Finding summarises a probe in one line that stays the same while nothing changes.
func (p Probe) Finding() string {
	text := "reachable"
	if p.Class != "" {
		text = p.Error
	}
	if !p.Expires.IsZero() {
		text += "; certificate until " + p.Expires.UTC().Format(time.DateOnly)
	}
	return text
}
