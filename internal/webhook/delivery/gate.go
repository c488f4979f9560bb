package delivery

import (
	"context"
	"sync"
	"time"
)

const (
	// maxYield is the longest that the engine yields at a time. It bounds the delay
	// caused by callers who never pause, or by one who sends a file drop by drop.
	maxYield = 25 * time.Millisecond
	// requestMemory is how long after an API request the next one is expected. During that time
	// shared statements are small and run one at a time, so that it finds the processors free.
	requestMemory = 250 * time.Millisecond
	// smallStatement is how many attempts share a statement then. A statement that yielded
	// for longer than an API request takes, usualRequest, was delayed by several requests,
	// and may have growth more for each further millisecond: with an occasional request
	// statements are short; between callers who hardly pause they are few and large.
	smallStatement = 8
	usualRequest   = 5 * time.Millisecond
	growth         = 5
	// quickSends is how many requests to quick endpoints a process makes at a time, and how
	// many to unknown ones: enough to keep the processors busy, and few enough that other
	// work, above all the API, does not queue behind hundreds.
	quickSends = 4
	// maxSendWait is the longest that a request waits for one of those slots, and so the
	// most that a busy process delays it.
	maxSendWait = 20 * time.Millisecond
	// sendLength is the longest that such a slot is kept: a request without an answer by
	// then is waiting for its endpoint and uses no processor.
	sendLength = 10 * time.Millisecond
)

// Gate counts the API requests that this process is answering, and lets them go before
// deliveries (see the package doc). Somebody waits for each API request, while nobody
// waits for the next of a thousand webhooks: under load the engine begins nothing new
// until the requests are answered. What it has begun goes on, and while it is not loaded,
// it does not check.
//
// The zero value is ready for use. With a nil Gate nothing yields.
type Gate struct {
	mu   sync.Mutex
	open int
	// answered is closed once the last open request is answered, at endedAt.
	answered chan struct{}
	endedAt  time.Time
	// small is held while a small statement runs.
	small sync.Mutex
	// quick and fresh bound the requests to quick endpoints, and to those that have not
	// answered yet: if the latter hang, they hold up none of the quick ones. making guards
	// their creation.
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

// InFlight returns how many API requests are open.
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

// beforeStatement yields and returns how many attempts may share the statement that
// follows. The caller must call done after the statement, before anyone uses its results.
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

// Lately reports whether an API request is open or was within requestMemory.
func (c *Gate) Lately() bool {
	if c == nil {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.open > 0 || !c.endedAt.IsZero() && time.Since(c.endedAt) < requestMemory
}

// Yield waits until no API request is open, while ctx lasts and for maxYield at
// most, and returns how long it waited.
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
	case <-time.After(maxYield):
	case <-ctx.Done():
	}
	return time.Since(began)
}

// beforeSend waits until a request to an endpoint with that mean duration, 0 before its
// first answer, may use the processors. It returns a function that frees the send slot,
// which also happens by itself after sendLength. Requests to slow endpoints hardly use
// the processors and do not wait. A request that had to wait yields to API requests, too.
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
		case <-time.After(maxSendWait):
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
