package delivery

import (
	"context"
	"sync"
	"time"
)

const (
	// callPatience is the longest that a step of the engine stands back for calls at
	// a time, before it and, where it is a small one, once more after it. It bounds
	// what callers who never pause, or one who sends a file drop by drop, can cost.
	callPatience = 25 * time.Millisecond
	// callMemory is how long after a call the next one is expected, and the engine
	// takes small steps, one at a time, so that it finds the processors free.
	callMemory = time.Second
	// smallStep is how many deliveries share a statement then. A step that stood back
	// for longer than one call takes, usualCall, was kept waiting by several, and
	// has stepGrowth more for each further millisecond: beside a call now and then
	// steps are short, and callers who hardly pause leave room for few and large ones.
	smallStep  = 8
	usualCall  = 5 * time.Millisecond
	stepGrowth = 5
)

// Gate counts the calls that this process is answering. Somebody waits for each
// of them, while nobody waits for the next of a thousand webhooks: under load the
// engine begins nothing new until they are answered. What it has begun goes on,
// and where it is not loaded, it does not look.
//
// The zero value is ready for use, and a nil one counts nothing. A process that
// answers no calls has no reason to stand back.
type Gate struct {
	mu   sync.Mutex
	open int
	// answered is closed when the last open call is, at endedAt.
	answered chan struct{}
	endedAt  time.Time
	// step is held by who takes a small one.
	step sync.Mutex
}

// Begin counts a call until end, which must be called once.
func (c *Gate) Begin() (end func()) {
	if c == nil {
		return func() {}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open == 0 {
		c.answered = make(chan struct{})
	}
	c.open++
	return c.end
}

// InFlight is how many calls are open.
func (c *Gate) InFlight() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.open
}

func (c *Gate) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open--
	if c.open == 0 {
		c.endedAt = time.Now()
		close(c.answered)
	}
}

// takeStep stands back, returns how many deliveries may share the statement that
// follows, and wants done to be called after it, before anybody goes on with what
// it brought.
func (c *Gate) takeStep() (limit int, done func()) {
	if !c.Lately() {
		return groupLimit, func() {}
	}
	c.step.Lock()
	waited := c.StandBack(context.Background())
	return stepAfter(waited), func() {
		c.step.Unlock()
		c.StandBack(context.Background())
	}
}

// stepAfter is how many deliveries may share a statement that stood back so long.
func stepAfter(waited time.Duration) int {
	grown := stepGrowth * max(waited-usualCall, 0) / time.Millisecond
	return min(smallStep+int(grown), groupLimit)
}

// Lately tells whether a call is open or was a moment ago.
func (c *Gate) Lately() bool {
	if c == nil {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.open > 0 || !c.endedAt.IsZero() && time.Since(c.endedAt) < callMemory
}

// StandBack waits until no call is open, as long as ctx lasts and callPatience at
// most, and tells how long that was.
func (c *Gate) StandBack(ctx context.Context) (waited time.Duration) {
	if c == nil {
		return 0
	}
	c.mu.Lock()
	open, answered := c.open, c.answered
	c.mu.Unlock()
	if open == 0 {
		return 0
	}
	began := time.Now()
	timer := time.NewTimer(callPatience)
	defer timer.Stop()
	select {
	case <-answered:
	case <-timer.C:
	case <-ctx.Done():
	}
	return time.Since(began)
}
