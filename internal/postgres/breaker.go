package postgres

import (
	"context"
	"sync"
	"time"
)

const (
	// shortestRest and longestRest bound for how long nobody tries to connect after a try
	// that failed; in between it is restShare times as long as the try took.
	shortestRest = 100 * time.Millisecond
	longestRest  = time.Second
	restShare    = 4
)

// breaker is a circuit breaker for connecting: from a try that failed until one that
// succeeds, they are made one at a time, with a rest between them, and all who wait for a
// connection share what becomes of it. A server that starts, or hands over to another, would
// else be kept from it by everybody's tries: each costs it a process.
type breaker struct {
	mu sync.Mutex
	// failure is why the last try failed, at failedAt; nil while connecting succeeds.
	failure  error
	failedAt time.Time
	// next is when another may begin. One that hangs keeps others back for longestRest.
	next time.Time
	// changed is closed when one of these changes.
	changed chan struct{}
}

// connect runs a try once it may be made, or returns why one failed that ended meanwhile.
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

// closed tells that connecting succeeded last, in the terms of the circuit that a breaker is in.
func (b *breaker) closed() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.failure == nil
}

// begin returns when and after which change to ask again, zero where a try may begin now, and
// the failure of one that ended after the caller came.
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

// end notes what became of a try. One whose caller gave up says nothing of the server.
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
