package postgres

import (
	"context"
	"errors"
	"sync"
	"time"
)

// DefaultTimeout is how long a request may spend waiting for the database.
const DefaultTimeout = 10 * time.Second

// graceShare is the part of a timeout in which the server may still end a statement when asked to,
// before the connection is given up.
const graceShare = 20

// ErrOutOfTime is the cause of a request's end (see context.Cause) when its database work exceeded
// the limit.
var ErrOutOfTime = errors.New("the database did not answer in time")

// waitBudget is how long a request may still wait for the database. Only waiting counts: a slow
// upload, or a browser that reads slowly, uses none of it.
type waitBudget struct {
	limit  time.Duration
	expire *time.Timer

	mu    sync.Mutex
	left  time.Duration
	waits int
	since time.Time
}

type waitBudgetKey struct{}

// WithWaitBudget returns a context that ends, with the cause ErrOutOfTime, once the database work
// done in it, by however many statements, has taken nearly timeout: early enough for an answer
// within it. The returned function frees the context.
func WithWaitBudget(
	ctx context.Context, timeout time.Duration,
) (context.Context, context.CancelFunc) {
	ctx, end := context.WithCancelCause(ctx)
	limit := timeout - 2*timeout/graceShare
	p := &waitBudget{limit: limit, left: limit}
	p.expire = time.AfterFunc(limit, func() { end(ErrOutOfTime) })
	p.expire.Stop()
	return context.WithValue(ctx, waitBudgetKey{}, p), func() {
		p.expire.Stop()
		end(nil)
	}
}

// Waiting counts the time until the returned function is called as waiting for the database: for a
// statement, a connection, or another caller that waits for one. Without WithWaitBudget nothing is
// counted.
func Waiting(ctx context.Context) func() {
	p, bounded := ctx.Value(waitBudgetKey{}).(*waitBudget)
	if !bounded {
		return func() {}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.waits++; p.waits == 1 {
		p.since = time.Now()
		p.expire.Reset(p.left)
	}
	return p.end
}

// Renew gives ctx its whole limit again and lets it choose anew between replica and primary: for an
// endless response, each part of which is a separate piece of work.
func Renew(ctx context.Context) {
	if from, _ := ctx.Value(sourceKey{}).(*source); from != nil {
		from.chosen.Store(undecided)
	}
	p, bounded := ctx.Value(waitBudgetKey{}).(*waitBudget)
	if !bounded {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.left, p.since = p.limit, time.Now()
	if p.waits > 0 {
		p.expire.Reset(p.left)
	}
}

func (p *waitBudget) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.waits--; p.waits == 0 {
		p.expire.Stop()
		p.left -= time.Since(p.since)
	}
}

// Pause waits for length and reports whether it did; false if ctx ended first.
func Pause(ctx context.Context, length time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(length):
		return true
	}
}
