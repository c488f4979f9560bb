package sender

import (
	"context"
	"errors"
	"net/url"
)

// SendCut makes an attempt whose connection is cut before the end of the body, for a
// sandbox. It always fails.
func (s *Sender) SendCut(ctx context.Context, r Request) Attempt { return s.make(ctx, r, s.cut) }

// errCut says that the failure was not caused by the network.
var errCut = errors.New("cut before the end of the body on purpose, by a sandbox fault")

// cut is like attempt, over a separate connection.
func (s *Sender) cut(ctx context.Context, u *url.URL, out outgoing, a *Attempt) error {
	end := endpoint{scheme: u.Scheme, host: u.Host, http1: true}
	opened, err := s.open(ctx, u, end, a)
	if err != nil {
		return err
	}
	c, ok := opened.(*http1Conn)
	if !ok {
		opened.release(nil, false)
		return newSendError(ClassProtocol, CauseNotHTTP, errCut)
	}
	defer c.close()
	from := c.remote()
	a.TLSVersion, a.CertificateExpires = from.tls, from.expires
	deadline, _ := ctx.Deadline()
	_ = c.conn.SetDeadline(deadline) // if this fails, so does the write
	text := out.bytes()
	a.Sent = true
	_, err = c.conn.Write(text[:len(text)-(len(out.body)+1)/2])
	return newSendError(ClassProtocol, CauseClosed, errors.Join(errCut, err))
}
