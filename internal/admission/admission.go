// Package admission bounds the calls of the API that a process works at a time, and how many wait.
package admission

import (
	"context"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
)

// The bounds on the calls of one process.
const (
	// placesOfAll is how many calls are worked at a time: more would share the same processors
	// and take no less together. It leaves connections of the pool to console and chores.
	placesOfAll = 24
	// placesOfOne is how many of them one client has at most, whose calls may all wait for one
	// locked application.
	placesOfOne = 16
	// lineLength is how many calls wait for a place at most: enough for a burst. When the line
	// has not been empty for burst, more come than can be answered, and it gets shorter, so
	// that who is answered at all is answered soon.
	lineLength, shortLine = 128, 64
	burst                 = 2 * time.Second
	// overloadPause is after how long who was refused may ask again.
	overloadPause = time.Second
	// lendAfter is how long a call may wait for its client, to send its body or to read its
	// answer, before its place is lent to others.
	lendAfter = 5 * time.Millisecond
)

// Door lets calls in: so many at a time, a bounded line of others behind them, and
// beyond that nobody. Places are given to the client that has the fewest. The zero value is ready
// for use; a nil one lets everybody in at once.
type Door struct {
	mu      sync.Mutex
	inside  int
	waiting int
	// busySince is when the last call came that found the line empty.
	busySince time.Time
	clients   map[string]*visitor
	refused   uint64
	turn      uint64
}

// visitor is a client with calls inside or in the line.
type visitor struct {
	inside int
	line   []*ticket
	// seated is what turn it was when one of its calls was let in last.
	seated uint64
}

// ticket is a call in the line.
type ticket struct {
	called  chan struct{} // closed when it is let in or refused
	refused bool
}

// Place is that of a client's call inside; nil where nobody counts.
type Place struct {
	of     *Door
	client string
}

// Waiting is how many calls wait for a place.
func (d *Door) Waiting() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.waiting
}

// Refused is how many calls were refused so far because too many waited.
func (d *Door) Refused() uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.refused
}

// Enter waits for a place of a call, which must be left. The client is as it says: a wrong
// one is found out inside. The wait uses up the call's patience with the database, which is what
// holds the others up. Error: UNAVAILABLE when too many wait.
func (d *Door) Enter(ctx context.Context, client string) (*Place, error) {
	if d == nil {
		return nil, nil //nolint:nilnil // who does not count has no place
	}
	waiting, err := d.queue(client)
	if err != nil {
		return nil, err
	}
	defer postgres.Waiting(ctx)()
	select {
	case <-waiting.called:
	case <-ctx.Done():
		if !d.giveUp(client, waiting) {
			return nil, context.Cause(ctx)
		}
	}
	if waiting.refused {
		return nil, errOverload()
	}
	return &Place{d, client}, nil
}

func errOverload() error {
	refusal := lending.NewError(lending.CodeUnavailable, "too many requests wait for the service; "+
		"repeat this one in %d s, with its Idempotency-Key if it had one", int(overloadPause.Seconds()))
	refusal.RetryAfter = overloadPause
	return refusal
}

// queue puts a call in the line, and lets it in where there is a place for it. When there is
// none and the line is full, the last call of the client that has the most there makes room.
func (d *Door) queue(client string) (*ticket, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	v := d.visitor(client)
	defer d.forget(client) // of whom nothing is left when it was refused
	free := d.inside < placesOfAll && v.inside < placesOfOne
	if d.waiting == 0 {
		d.busySince = time.Now()
	}
	most := lineLength
	if time.Since(d.busySince) > burst {
		most = shortLine
	}
	if d.waiting >= most && !free {
		longest := v
		for _, other := range d.clients {
			if len(other.line) > len(longest.line) {
				longest = other
			}
		}
		d.refused++
		if len(longest.line) <= len(v.line)+1 {
			return nil, errOverload()
		}
		last := len(longest.line) - 1
		longest.line[last].refused = true
		d.call(longest, last)
	}
	waiting := &ticket{called: make(chan struct{})}
	v.line = append(v.line, waiting)
	d.waiting++
	d.letIn()
	return waiting, nil
}

// giveUp takes a call out of the line, and reports whether it was called before.
func (d *Door) giveUp(client string, waiting *ticket) (called bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	v := d.visitor(client)
	defer d.forget(client)
	at := slices.Index(v.line, waiting)
	if at >= 0 {
		d.call(v, at)
	}
	return at < 0
}

// call takes a call out of its client's line.
func (d *Door) call(v *visitor, at int) {
	close(v.line[at].called)
	v.line = slices.Delete(v.line, at, at+1)
	d.waiting--
}

// letIn gives the free places away, each to the client that has the fewest, and of several
// to that which got none for the longest.
func (d *Door) letIn() {
	for d.inside < placesOfAll {
		var next *visitor
		for _, v := range d.clients {
			if len(v.line) > 0 && v.inside < placesOfOne && (next == nil || v.inside < next.inside ||
				v.inside == next.inside && v.seated < next.seated) {
				next = v
			}
		}
		if next == nil {
			return
		}
		d.turn++
		next.seated = d.turn
		next.inside++
		d.inside++
		d.call(next, 0)
	}
}

func (d *Door) visitor(client string) *visitor {
	v := d.clients[client]
	if v == nil {
		if d.clients == nil {
			d.clients = map[string]*visitor{}
		}
		v = &visitor{}
		d.clients[client] = v
	}
	return v
}

// forget drops a client that has no calls here.
func (d *Door) forget(client string) {
	if v := d.clients[client]; v.inside == 0 && len(v.line) == 0 {
		delete(d.clients, client)
	}
}

// count takes a place more or less for a call that has been let in.
func (p *Place) count(change int) {
	p.of.inside += change
	p.of.visitor(p.client).inside += change
	p.of.letIn()
	p.of.forget(p.client)
}

// Leave gives the place back.
func (p *Place) Leave() {
	if p == nil {
		return
	}
	p.of.mu.Lock()
	defer p.of.mu.Unlock()
	p.count(-1)
}

// lend lets others have the place while the call waits for its client, if that takes long,
// until back is called. A call that was let in goes on at once.
func (p *Place) lend() (back func()) {
	lent, over := false, false
	timer := time.AfterFunc(lendAfter, func() {
		p.of.mu.Lock()
		defer p.of.mu.Unlock()
		if !over {
			lent = true
			p.count(-1)
		}
	})
	return func() {
		timer.Stop()
		p.of.mu.Lock()
		defer p.of.mu.Unlock()
		if over = true; lent {
			p.count(1)
		}
	}
}

// Body lends the place while the client sends nothing of its body.
func (p *Place) Body(body io.ReadCloser) io.ReadCloser {
	if p == nil || body == nil || body == http.NoBody {
		return body
	}
	return lendingBody{body, p}
}

type lendingBody struct {
	io.ReadCloser

	place *Place
}

// Read reads what the client sends.
func (b lendingBody) Read(data []byte) (int, error) {
	defer b.place.lend()()
	return b.ReadCloser.Read(data)
}

// Answer lends the place while the client reads nothing of its answer.
func (p *Place) Answer(answer http.ResponseWriter) http.ResponseWriter {
	if p == nil {
		return answer
	}
	return lendingWriter{answer, p}
}

type lendingWriter struct {
	http.ResponseWriter

	place *Place
}

// Write writes what the client reads.
func (w lendingWriter) Write(data []byte) (int, error) {
	defer w.place.lend()()
	return w.ResponseWriter.Write(data)
}

// Unwrap is for http.ResponseController.
func (w lendingWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
