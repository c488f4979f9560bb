package postgres

import (
	"context"
	"errors"
	"sync"
	"time"
)

// DefaultTimeout is how long a request may take because of the database.
const DefaultTimeout = 10 * time.Second

// graceShare is the part of a timeout in which the server may obey when it is asked
// to end a statement, before the connection is given up.
const graceShare = 20

// ErrOutOfTime is the cause of a request's end (see context.Cause) when its work in
// the database took longer than it may.
var ErrOutOfTime = errors.New("the database did not answer in time")

// patience is the time for which a request may still wait for the database. Only
// waiting counts: a slow upload, or a browser that reads slowly, uses none of it.
type patience struct {
	limit  time.Duration
	expire *time.Timer

	mu    sync.Mutex
	left  time.Duration
	waits int
	since time.Time
}

type patienceKey struct{}

// WithPatience returns a context that ends, for the cause ErrOutOfTime, in time for
// an answer within timeout when the database work that is done in it, by however many
// statements, takes that long. The function that it returns frees the context.
func WithPatience(
	ctx context.Context, timeout time.Duration,
) (context.Context, context.CancelFunc) {
	ctx, end := context.WithCancelCause(ctx)
	limit := timeout - 2*timeout/graceShare
	p := &patience{limit: limit, left: limit}
	p.expire = time.AfterFunc(limit, func() { end(ErrOutOfTime) })
	p.expire.Stop()
	return context.WithValue(ctx, patienceKey{}, p), func() {
		p.expire.Stop()
		end(nil)
	}
}

// Waiting tells that the work of ctx waits for the database until the function that
// it returns is called: for a statement, a connection, or somebody who waits for one
// himself. Without WithPatience nobody counts.
func Waiting(ctx context.Context) func() {
	p, bounded := ctx.Value(patienceKey{}).(*patience)
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

// Renew gives ctx its whole patience again, and the choice of where it reads what may lag:
// for an answer without an end, each part of which is a piece of work of its own.
func Renew(ctx context.Context) {
	if from, _ := ctx.Value(sourceKey{}).(*source); from != nil {
		from.chosen.Store(undecided)
	}
	p, bounded := ctx.Value(patienceKey{}).(*patience)
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

func (p *patience) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.waits--; p.waits == 0 {
		p.expire.Stop()
		p.left -= time.Since(p.since)
	}
}

// Pause waits, and tells whether it did so to the end: not if ctx ends first.
func Pause(ctx context.Context, length time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(length):
		return true
	}
}
