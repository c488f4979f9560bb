package delivery

import (
	"context"
	"sync"
	"time"
)

const (
	// yieldPatience is the longest that the engine yields at a time. It bounds what
	// callers who never pause, or one who sends a file drop by drop, can cost.
	yieldPatience = 25 * time.Millisecond
	// requestMemory is how long after an API request the next one is expected, and
	// shared statements are small, one at a time, so that it finds the processors free.
	requestMemory = 250 * time.Millisecond
	// smallStatement is how many attempts share a statement then. One that yielded
	// for longer than an API request takes, usualRequest, was kept waiting by several,
	// and has growth more for each further millisecond: beside a request now and then
	// statements are short, and callers who hardly pause leave room for few and large.
	smallStatement = 8
	usualRequest   = 5 * time.Millisecond
	growth         = 5
	// quickSends is how many requests to quick endpoints a process makes at a time,
	// and how many to unknown ones: enough to keep the processors busy, and few
	// enough that who else needs them, the API first of all, does not queue behind
	// hundreds.
	quickSends = 4
	// quickPatience is how long a request waits for a slot among those: a busy
	// process may delay it by no more.
	quickPatience = 20 * time.Millisecond
	// sendLength is how long such a slot is kept at most: a request without an answer by
	// then waits for its endpoint and uses no processor.
	sendLength = 10 * time.Millisecond
)

// Gate counts the API requests that this process is answering, and lets them go before
// deliveries (see the package doc). Somebody waits for each of them, while nobody waits
// for the next of a thousand webhooks: under load the engine begins nothing new until
// they are answered. What it has begun goes on, and where it is not loaded, it does not
// look.
//
// The zero value is ready for use, and a nil one lets nothing wait.
type Gate struct {
	mu   sync.Mutex
	open int
	// answered is closed when the last open request is, at endedAt.
	answered chan struct{}
	endedAt  time.Time
	// small is held by who runs a small statement.
	small sync.Mutex
	// quick and fresh bound the requests to endpoints that are quick, and to those that
	// have not shown yet how fast they are: should they hang, they hold up none of the
	// quick. making makes them.
	quick, fresh chan struct{}
	making       sync.Once
}

// Begin counts an API request until end, which must be called once.
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

// InFlight is how many API requests are open.
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

// beforeStatement yields, returns how many attempts may share the statement that
// follows, and wants done to be called after it, before anybody goes on with what it
// brought.
func (c *Gate) beforeStatement() (limit int, done func()) {
	if !c.Lately() {
		return batchLimit, func() {}
	}
	c.small.Lock()
	waited := c.Yield(context.Background())
	grown := growth * max(waited-usualRequest, 0) / time.Millisecond
	return min(smallStatement+int(grown), batchLimit), func() {
		c.small.Unlock()
		c.Yield(context.Background())
	}
}

// Lately tells whether an API request is open or was a moment ago.
func (c *Gate) Lately() bool {
	if c == nil {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.open > 0 || !c.endedAt.IsZero() && time.Since(c.endedAt) < requestMemory
}

// Yield waits until no API request is open, as long as ctx lasts and yieldPatience at
// most, and tells how long that was.
func (c *Gate) Yield(ctx context.Context) (waited time.Duration) {
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
	select {
	case <-answered:
	case <-time.After(yieldPatience):
	case <-ctx.Done():
	}
	return time.Since(began)
}

// beforeSend waits until a request to an endpoint with that mean duration, 0 before its
// first answer, may use the processors, and returns what ends that, which happens by
// itself after sendLength. Slow endpoints hardly need them and do not wait. A request
// that had to wait yields to API requests, too.
func (c *Gate) beforeSend(ctx context.Context, mean time.Duration) (end func()) {
	if c == nil || mean > quickMean {
		return func() {}
	}
	c.making.Do(func() {
		c.quick, c.fresh = make(chan struct{}, quickSends), make(chan struct{}, quickSends)
	})
	slots := c.quick
	if mean == 0 {
		slots = c.fresh
	}
	select {
	case slots <- struct{}{}:
	default:
		defer c.Yield(ctx)
		select {
		case slots <- struct{}{}:
		case <-time.After(quickPatience):
			return func() {}
		case <-ctx.Done():
			return func() {}
		}
	}
	free := sync.OnceFunc(func() { <-slots })
	over := time.AfterFunc(sendLength, free)
	return func() {
		over.Stop()
		free()
	}
}
