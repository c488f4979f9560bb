package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"drawbridge/internal/lists"
)

// kind is a kind of work and its weight in the mix.
type kind struct {
	name   string
	weight int
	do     func(t *traffic, ctx context.Context) error
}

// mix is the mix of work in the load.
var mix = []kind{
	{"task", 35, (*traffic).task},
	{"read loan", 29, (*traffic).read},
	{"draw and funding", 15, (*traffic).draw},
	{"open a loan", 10, (*traffic).open},
	{"console page", 10, (*traffic).look},
	{"upload of 256 KiB", 1, (*traffic).upload}, // more would exceed the daily limit
}

// most is how many pieces of work may be under way at the steady pace.
const most = 128

// traffic makes requests as a partner and reads pages as an operator.
type traffic struct {
	//nolint:containedctx // of the run, which ends all calls
	ctx     context.Context
	program *program
	console *lists.Visitor
	// certificate is the body of every upload.
	certificate     []byte
	certificateType string
	next, made      atomic.Int64

	mu sync.Mutex
	// loans are all loans, undrawn those without a draw.
	loans, undrawn []string
	// took are the durations since the last call of times, by kind.
	took     map[string][]time.Duration
	failures map[string]int
}

// newTraffic signs in to the console and makes the first loans.
func newTraffic(ctx context.Context, p *program) (*traffic, error) {
	t := &traffic{ctx: ctx, program: p}
	t.begin()
	var err error
	t.certificate, t.certificateType, err = certificates(1, 256<<10)
	if err != nil {
		return nil, fmt.Errorf("writing a certificate: %w", err)
	}
	if t.console, err = p.signIn(ctx); err != nil {
		return nil, err
	}
	for range clients {
		if err := t.open(ctx); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// begin resets the counts.
func (t *traffic) begin() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.took, t.failures = map[string][]time.Duration{}, map[string]int{}
	t.made.Store(0)
}

// pick chooses a kind at random, by weight.
func pick() kind {
	total := 0
	for _, one := range mix {
		total += one.weight
	}
	at := rand.IntN(total)
	for _, one := range mix {
		if at -= one.weight; at < 0 {
			return one
		}
	}
	return mix[0]
}

// do does a piece of work that was due at a time, and counts failures.
func (t *traffic) do(_ int, due time.Time) error {
	one := pick()
	err := one.do(t, t.ctx)
	if t.ctx.Err() != nil {
		return t.ctx.Err()
	}
	t.made.Add(1)
	t.mu.Lock()
	defer t.mu.Unlock()
	if err != nil {
		t.failures[one.name+": "+err.Error()]++
		return nil
	}
	t.took[one.name] = append(t.took[one.name], time.Since(due))
	return nil
}

// peak makes each caller begin the next piece of work as soon as one has ended, and returns how
// many were done.
func (t *traffic) peak(ctx context.Context, length time.Duration) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, length)
	defer cancel()
	err := pace{most: clients}.run(ctx, 0, t.do)
	for what := range t.failed() {
		err = errors.Join(err, errors.New("measuring the peak: "+what))
	}
	return t.made.Load(), err
}

// offer begins work at random moments, at an average rate per second, while do runs.
func (t *traffic) offer(
	ctx context.Context, rate float64, do func(ctx context.Context) error,
) error {
	offering, cancel := context.WithCancel(ctx)
	defer cancel()
	t.begin()
	pacing := make(chan error, 1)
	go func() { pacing <- pace{rate: rate, random: true, most: most}.run(offering, 0, t.do) }()
	err := do(offering)
	cancel()
	return errors.Join(err, <-pacing, ctx.Err())
}

// times returns the durations of the work since the last call of times, by kind.
func (t *traffic) times() map[string][]time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	took := t.took
	t.took = map[string][]time.Duration{}
	return took
}

// failed returns the failures and how often each occurred.
func (t *traffic) failed() map[string]int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return maps.Clone(t.failures)
}

// call makes an API request, with a new Idempotency-Key unless it only reads.
func (t *traffic) call(ctx context.Context, r request, into any) error {
	if r.method != http.MethodGet {
		r.key = "soak-" + strconv.FormatInt(t.next.Add(1), 10)
	}
	return t.program.call(ctx, r, into)
}

// send sends JSON.
func (t *traffic) send(ctx context.Context, method, path, body string, into any) error {
	return t.call(ctx, request{
		method: method, path: path, body: strings.NewReader(body), kind: "application/json",
	}, into)
}

// open takes an application to a loan, by four requests.
func (t *traffic) open(ctx context.Context) error {
	var made struct {
		UID string `json:"thrive_application_uid"`
	}
	err := t.send(ctx, http.MethodPost, "/application", `{
		"requested_amount": "20000.00",
		"borrower": {"first_name": "Ada", "last_name": "Moreno", "email": "ada@example.com",
		             "annual_income": "180000.00"},
		"project": {"name": "Roof"}}`, &made)
	named := `{"thrive_application_uid":"` + made.UID + `"`
	for _, step := range []struct{ method, path, body string }{
		{http.MethodPost, "/application/create-run-decision", named + `}`},
		{
			http.MethodPut, "/application/accept-offer",
			named + `,"selected_product_uid":"` + t.program.demo.Products[0].UID + `"}`,
		},
		{http.MethodPost, "/sandbox/application/" + made.UID + "/status", `{"status":"Approved"}`},
	} {
		if err == nil {
			err = t.send(ctx, step.method, step.path, step.body, nil)
		}
	}
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.loans, t.undrawn = append(t.loans, made.UID), append(t.undrawn, made.UID)
	return nil
}

// take removes the oldest undrawn loan and returns it, empty if there is none.
func (t *traffic) take() (uid string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.undrawn) > 0 {
		uid, t.undrawn = t.undrawn[0], t.undrawn[1:]
	}
	return uid
}

// any returns one of the loans.
func (t *traffic) any() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.loans[rand.IntN(len(t.loans))]
}

// draw draws the first stage of a loan and has it paid out, by three requests.
func (t *traffic) draw(ctx context.Context) error {
	uid := t.take()
	if uid == "" {
		return t.open(ctx)
	}
	var drawn struct {
		ID int64 `json:"merchantDisbursementId"`
	}
	err := t.call(ctx, request{
		method: http.MethodPost, path: "/loan/" + uid + "/request-draw",
	}, &drawn)
	for _, status := range []string{"FUNDING_PROCESSING", "FUNDING_SETTLED"} {
		if err == nil {
			err = t.send(ctx, http.MethodPost,
				fmt.Sprintf("/sandbox/disbursement/%d/status", drawn.ID), `{"status":"`+status+`"}`, nil)
		}
	}
	return err
}

// upload stores a certificate.
func (t *traffic) upload(ctx context.Context) error {
	return t.call(ctx, request{
		method: http.MethodPost, path: "/loan/" + t.any() + "/completion-cert-upload",
		body: bytes.NewReader(t.certificate), kind: t.certificateType,
	}, nil)
}

// task creates a task, which causes webhooks and an e-mail.
func (t *traffic) task(ctx context.Context) error {
	return t.send(ctx, http.MethodPost, "/sandbox/application/"+t.any()+"/task",
		`{"title":"Send the contract"}`, nil)
}

// read reads a loan.
func (t *traffic) read(ctx context.Context) error {
	return t.call(ctx, request{method: http.MethodGet, path: "/loan/" + t.any()}, nil)
}

// pages are the pages that an operator reads in turn.
var pages = []string{
	"/console", "/console/deliveries", "/console/deliveries?state=failed", "/console/applications",
	"/console/emails", "/console/subscriptions",
}

// look reads a page of the console.
func (t *traffic) look(ctx context.Context) error {
	_, err := t.console.Get(ctx, pages[rand.IntN(len(pages))])
	return err
}
