package postgres

import (
	"context"
	"sync"
	"time"
)

const (
	// shortestRest and longestRest bound the pause after a failed attempt to connect; in between it is
	// restShare times as long as the attempt took.
	shortestRest = 100 * time.Millisecond
	longestRest  = time.Second
	restShare    = 4
)

// breaker is a circuit breaker for connecting: from a failed attempt until the next successful one,
// attempts are made one at a time with a pause in between, and all callers that wait for a
// connection share the result. Otherwise their attempts, each of which costs the server a process,
// would hinder a server that is starting or handing over to another.
type breaker struct {
	mu sync.Mutex
	// failure is why the last attempt failed, at failedAt; nil while connecting succeeds.
	failure  error
	failedAt time.Time
	// next is when the next attempt may begin. One that hangs delays it by longestRest.
	next time.Time
	// changed is closed when one of these fields changes.
	changed chan struct{}
}

// connect runs try once it may, or returns the failure of an attempt that ended while it waited.
func (b *breaker) connect(ctx context.Context, try func() error) error {
	came := time.Now()
	for {
		until, changed, failure := b.begin(came)
		if failure != nil {
			return failure
		}
		if until.IsZero() {
			break
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-changed:
		case <-time.After(time.Until(until)):
		}
	}
	began := time.Now()
	err := try()
	b.end(began, err, ctx.Err() != nil)
	return err
}

// closed reports whether the circuit is closed: the last attempt to connect succeeded.
func (b *breaker) closed() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.failure == nil
}

// begin returns when, and after which change, to ask again; a zero time if an attempt may begin
// now; and the failure of an attempt that ended after the caller came.
func (b *breaker) begin(came time.Time) (time.Time, <-chan struct{}, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch now := time.Now(); {
	case b.failure == nil:
	case b.failedAt.After(came):
		return time.Time{}, nil, b.failure
	case now.Before(b.next):
		return b.next, b.changed, nil
	default:
		b.next = now.Add(longestRest)
	}
	return time.Time{}, nil, nil
}

// end records the result of an attempt. An attempt whose caller gave up says nothing of the server.
func (b *breaker) end(began time.Time, err error, gaveUp bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.failure == nil && (err == nil || gaveUp) {
		return
	}
	now := time.Now()
	switch {
	case err == nil:
		b.failure = nil
	case gaveUp:
		b.next = now
	default:
		rest := min(max(restShare*now.Sub(began), shortestRest), longestRest)
		b.failure, b.failedAt, b.next = err, now, now.Add(rest)
	}
	if b.changed != nil {
		close(b.changed)
	}
	b.changed = make(chan struct{})
}
