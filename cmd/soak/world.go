package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/emersion/go-smtp"
)

// slowAnswer is how long the slow endpoint takes.
const slowAnswer = 200 * time.Millisecond

// outside is what the program talks to: endpoints and a mail server.
type outside struct {
	url, smtp string
	hooks     *http.Server
	mail      *smtp.Server
	// arrived counts webhooks, mails the messages that were accepted.
	arrived, mails atomic.Int64
}

// newOutside starts both.
func newOutside(ctx context.Context) (*outside, error) {
	hooks, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listening for webhooks: %w", err)
	}
	mail, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, errors.Join(fmt.Errorf("listening for mail: %w", err), hooks.Close())
	}
	o := &outside{
		url: "http://" + hooks.Addr().String(), smtp: "smtp://" + mail.Addr().String(),
	}
	o.hooks = &http.Server{Handler: o.endpoints(), ReadHeaderTimeout: time.Minute}
	o.mail = smtp.NewServer(smtp.BackendFunc(func(*smtp.Conn) (smtp.Session, error) {
		return letterBox{o}, nil
	}))
	o.mail.Domain = "mail.example"
	go func() { _ = o.hooks.Serve(hooks) }() // they end by close
	go func() { _ = o.mail.Serve(mail) }()
	return o, nil
}

// endpoints are a good one, a slow one, one that refuses every tenth request, and
// one that refuses all.
func (o *outside) endpoints() http.Handler {
	mux := http.NewServeMux()
	for path, answer := range map[string]func(count int64) int{
		"/good": func(int64) int { return http.StatusNoContent },
		"/slow": func(int64) int {
			<-time.After(slowAnswer)
			return http.StatusNoContent
		},
		"/flaky": func(count int64) int {
			if count%10 == 0 {
				return http.StatusServiceUnavailable
			}
			return http.StatusOK
		},
		"/dead": func(int64) int { return http.StatusInternalServerError },
	} {
		var count atomic.Int64
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body) // whose end nobody waits for
			o.arrived.Add(1)
			w.WriteHeader(answer(count.Add(1)))
		})
	}
	return mux
}

func (o *outside) close() error { return errors.Join(o.hooks.Close(), o.mail.Close()) }

// letterBox accepts every mail and keeps none.
type letterBox struct{ *outside }

// Mail accepts every sender.
func (letterBox) Mail(string, *smtp.MailOptions) error { return nil }

// Rcpt accepts every recipient.
func (letterBox) Rcpt(string, *smtp.RcptOptions) error { return nil }

// Reset has nothing to forget.
func (letterBox) Reset() {}

// Logout has nothing to close.
func (letterBox) Logout() error { return nil }

// Data counts a message.
func (b letterBox) Data(r io.Reader) error {
	_, err := io.Copy(io.Discard, r)
	b.mails.Add(1)
	return err
}
