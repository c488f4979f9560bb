package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/emersion/go-smtp"
	"github.com/lib/pq"

	"drawbridge/internal/postgres"
)

// soakCmd loads the real program for a long time and judges whether memory, goroutines,
// connections, queue, bloat and latency stay level.
type soakCmd struct {
	Minutes float64       `help:"How many minutes the load lasts." default:"30"`
	Share   float64       `help:"Share of the sustainable load to apply." default:"0.5"`
	Peak    time.Duration `help:"How long to measure the peak." default:"30s"`
	Every   time.Duration `help:"Time between two samples." default:"5s"`
	Out     string        `help:"Write the verdicts and samples to a file, one JSON document per line." default:"soak.jsonl" placeholder:"FILE"`
	Dir     string        `help:"Keep the data in this folder." default:"${tmp}"`
}

// Validate refuses options that cannot be measured.
func (c *soakCmd) Validate() error {
	if c.Minutes <= 0 || c.Share <= 0 || c.Share > 1 || c.Every <= 0 || c.Peak <= 0 {
		return errors.New("times must be positive, and -share at most 1")
	}
	return nil
}

// Run measures how much of the mixed load the machine can carry, and then applies a share of
// that at a steady pace. It fails unless every series is flat and every request succeeded.
func (c *soakCmd) Run(w *world) error {
	result, err := c.soak(w)
	if err != nil {
		return err
	}
	if err := result.print(w.out); err != nil {
		return err
	}
	lines := []any{result}
	for _, one := range result.series {
		lines = append(lines, one)
	}
	if err := writeLines(c.Out, lines...); err != nil {
		return err
	}
	w.say("samples: %s", c.Out)
	if !result.flat() {
		return errFailed
	}
	return nil
}

// result has the settings and the results of a run.
type result struct {
	Minutes  float64        `json:"minutes"`
	Machine  machine        `json:"machine"`
	Carried  float64        `json:"carried_calls_per_second"`
	Offered  float64        `json:"offered_calls_per_second"`
	Calls    int64          `json:"calls"`
	Failures map[string]int `json:"failures"`
	series   []*series
}

// flat reports whether every series is flat and no request failed.
func (r *result) flat() bool {
	for _, one := range r.series {
		if !one.Verdict.Flat {
			return false
		}
	}
	return len(r.Failures) == 0
}

// print writes the verdicts as a table.
func (r *result) print(out io.Writer) error {
	fmt.Fprintf(out, "%s\n%.0f calls/s are carried, %.0f were offered for %g min: %d calls\n\n",
		r.Machine, r.Carried, r.Offered, r.Minutes, r.Calls)
	t := newTable(out, "series", "median", "change over the last two thirds", "bound", "verdict")
	for _, one := range r.series {
		t.line(one.cells()...)
	}
	for what, count := range r.Failures {
		t.line("failed: "+strings.Join(strings.Fields(what), " "), fmt.Sprint(count), "", "", "not flat")
	}
	return t.Flush()
}

// soak does the whole run.
func (c *soakCmd) soak(w *world) (r *result, err error) {
	var open cleanup
	defer open.run(&err)
	s, err := startSampled(w, &open, c.Dir)
	if err != nil {
		return nil, err
	}
	r = &result{Minutes: c.Minutes, Machine: s.machine}
	if r.Carried, err = s.sustainableRate(w, c.Peak); err != nil {
		return nil, err
	}
	r.Offered = r.Carried * c.Share
	length := time.Duration(c.Minutes * float64(time.Minute))
	w.say("offering %.0f calls/s for %s", r.Offered, length)
	err = s.traffic.offer(w.ctx, r.Offered, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, length)
		defer cancel()
		return s.run(ctx, c.Every, w.say)
	})
	if err != nil {
		return nil, err
	}
	r.Calls, r.Failures, r.series = s.traffic.made.Load(), s.traffic.failed(), s.series
	for _, one := range r.series {
		one.judge()
	}
	return r, nil
}

// startSampled starts the program on a new server, its endpoints and its mail server, and prepares
// its partner with a rate limit that is never reached and a subscription for each endpoint.
func startSampled(w *world, open *cleanup, dir string) (*sampler, error) {
	s := &sampler{outside: new(outside)}
	if err := s.outside.listen(w.ctx, open); err != nil {
		return nil, err
	}
	cluster, err := startCluster(w, open, serverOptions{dir: dir})
	if err != nil {
		return nil, err
	}
	if s.machine, err = describeMachine(w.ctx, cluster); err != nil {
		return nil, err
	}
	w.say("building the program")
	p, err := newProgram(w.ctx, cluster, "DRAWBRIDGE_SMTP_URL="+s.outside.smtp,
		"DRAWBRIDGE_WEBHOOK_RETRY=2s,5s")
	if err != nil {
		return nil, err
	}
	if s.db, err = postgres.Open(w.ctx, p.url); err != nil {
		return nil, err
	}
	open.add(s.db.Close)
	partner := p.demo.Partners[0]
	commands := [][]string{
		{"client", "rate", partner.Clients[0].ID, "--rate", "50000", "--burst", "100000"},
	}
	for path, event := range map[string]string{
		"/good": "all", "/slow": "task.created", "/flaky": "all",
		"/dead": "disbursement.funding.settled",
	} {
		commands = append(commands, []string{
			"subscription", "create", "--partner", partner.UID.String(), "--auth", "hmac",
			"--url", s.outside.url + path, "--event", event,
		})
	}
	for _, command := range commands {
		if _, err := p.run(w.ctx, command...); err != nil {
			return nil, err
		}
	}
	s.program = p
	if err := p.serve(w.ctx); err != nil {
		return nil, err
	}
	open.add(p.stop)
	return s, nil
}

// drainTime is how long the deliveries left by the peak may take.
const drainTime = 10 * time.Minute

// sustainableRate measures the rate of calls per second that can be sustained: the program takes as
// many as it can for a while, and the time counts until their webhooks and e-mails have been sent,
// too. Work that comes faster piles up. Afterwards nothing is open.
func (s *sampler) sustainableRate(w *world, length time.Duration) (rate float64, err error) {
	if s.traffic, err = newTraffic(w.ctx, s.program); err != nil {
		return 0, err
	}
	w.say("measuring for %s and longer what is carried", length)
	began := time.Now()
	calls, err := s.traffic.peak(w.ctx, length)
	if err != nil {
		return 0, err
	}
	taken := time.Since(began)
	if err := drain(w.ctx, s.db, "pending"); err != nil {
		return 0, err
	}
	rate = float64(calls) / time.Since(began).Seconds()
	w.say("%.0f calls/s are taken, %.0f calls/s are carried", float64(calls)/taken.Seconds(), rate)
	return rate, drain(w.ctx, s.db, "pending", "retrying")
}

// drain waits until no event, delivery in a state, or e-mail is open.
func drain(ctx context.Context, db *postgres.DB, states ...string) error {
	ctx, cancel := context.WithTimeout(ctx, drainTime)
	defer cancel()
	var open int
	err := poll(ctx, time.Second, func() (bool, error) {
		err := db.GetContext(ctx, &open, `
			SELECT (SELECT count(*) FROM outbox)
			     + (SELECT count(*) FROM deliveries WHERE state = ANY ($1))
			     + (SELECT count(*) FROM emails WHERE state = 'queued')`, pq.Array(states))
		return open == 0, err
	})
	if err != nil {
		return fmt.Errorf("waiting for the deliveries of the peak, %d of which are open: %w", open, err)
	}
	return nil
}

// outside has the servers that the program connects to: endpoints and a mail server.
type outside struct {
	url, smtp string
	// arrived counts webhooks, mails counts accepted messages.
	arrived, mails atomic.Int64
}

// listen starts both.
func (o *outside) listen(ctx context.Context, open *cleanup) error {
	hooks := listen(1, false, o)
	open.add(hooks.close)
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listening for mail: %w", err)
	}
	server := smtp.NewServer(smtp.BackendFunc(func(*smtp.Conn) (smtp.Session, error) {
		return mailbox{o}, nil
	}))
	server.Domain = "mail.example"
	go func() { _ = server.Serve(listener) }() // close ends it
	open.add(server.Close)
	o.url, o.smtp = hooks.urls[0], "smtp://"+listener.Addr().String()
	return nil
}

// ServeHTTP serves a good endpoint, a slow one, one that refuses about every tenth request,
// and one that refuses all.
func (o *outside) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body) // nothing depends on its end
	count, status := o.arrived.Add(1), http.StatusNoContent
	switch _, name, _ := strings.Cut(r.URL.Path, "/hook"); {
	case name == "/slow":
		<-time.After(slowAnswer)
	case name == "/flaky" && count%10 == 0:
		status = http.StatusServiceUnavailable
	case name == "/dead":
		status = http.StatusInternalServerError
	}
	w.WriteHeader(status)
}

// mailbox accepts every mail and keeps none.
type mailbox struct{ *outside }

// Mail accepts every sender.
func (mailbox) Mail(string, *smtp.MailOptions) error { return nil }

// Rcpt accepts every recipient.
func (mailbox) Rcpt(string, *smtp.RcptOptions) error { return nil }

// Reset does nothing, since there is no state.
func (mailbox) Reset() {}

// Logout does nothing, since there is nothing to close.
func (mailbox) Logout() error { return nil }

// Data counts a message.
func (m mailbox) Data(r io.Reader) error {
	_, err := io.Copy(io.Discard, r)
	m.mails.Add(1)
	return err
}
