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
	// maxSlots is how many calls are worked at a time: more would share the same processors
	// and take no less together. It leaves connections of the pool to console and chores.
	maxSlots = 24
	// slotsPerClient is how many of them one client has at most, whose calls may all wait for one
	// locked application.
	slotsPerClient = 16
	// lineLength is how many calls wait for a slot at most: enough for a burst. When the line
	// has not been empty for burst, more come than can be answered, and it gets shorter, so
	// that who is answered at all is answered soon.
	lineLength, shortLine = 128, 64
	burst                 = 2 * time.Second
	// patientLine is how many calls wait that ask for a late answer: as many as may wait for an
	// event, which may all come at once.
	patientLine = 1000
	// maxUnread is how many bytes of its answers a client may leave unread and go on asking: they
	// are in memory until it has read them.
	maxUnread = 64 << 20
	// overloadPause is after how long who was refused may ask again.
	overloadPause = time.Second
	// lendAfter is how long a call may wait for its client, to send its body or to read its
	// answer, before its slot is lent to others.
	lendAfter = 5 * time.Millisecond
)

// Limiter lets calls in: so many at a time, a bounded line of others behind them, and
// beyond that nobody. Slots are given to the client that has the fewest. The zero value is ready
// for use; a nil one lets everybody in at once.
type Limiter struct {
	mu     sync.Mutex
	inside int
	// waiting is how many stand in each of the lines.
	waiting [lines]int
	// busySince is when the last call came that found the line empty.
	busySince time.Time
	clients   map[string]*visitor
	refused   uint64
	// admitted counts the calls that were let in.
	admitted uint64
}

// line is one of the two that a client's calls stand in.
type line int

const (
	urgent line = iota
	patient
	lines
)

// visitor is a client with calls inside or in the line, or with answers to read.
type visitor struct {
	inside int
	line   [lines][]*ticket
	// unread is how many bytes of answers it has yet to read.
	unread int
	// seated is the number of its call that was let in last, over all clients.
	seated uint64
}

// ticket is a call in the line.
type ticket struct {
	called  chan struct{} // closed when it is let in or refused
	refused bool
}

// Slot is that of a client's call inside; nil where nobody counts.
type Slot struct {
	of     *Limiter
	client string
	left   bool
}

// Waiting is how many calls wait for a slot.
func (l *Limiter) Waiting() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.waiting[urgent] + l.waiting[patient]
}

// Refused is how many calls were refused so far because too many waited.
func (l *Limiter) Refused() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.refused
}

// Enter waits for a slot of a call, which must be left. The client is as it says: a wrong
// one is found out inside. The wait uses up the call's patience with the database, which is what
// holds the others up. Error: UNAVAILABLE when too many wait, or too much of what the client
// got is unread.
func (l *Limiter) Enter(ctx context.Context, client string) (*Slot, error) {
	return l.enter(ctx, client, urgent)
}

// EnterPatient is Enter for a call that asks for a late answer. A thousand of them wait, each
// behind all others of its client.
func (l *Limiter) EnterPatient(ctx context.Context, client string) (*Slot, error) {
	return l.enter(ctx, client, patient)
}

func (l *Limiter) enter(ctx context.Context, client string, in line) (*Slot, error) {
	if l == nil {
		return nil, nil //nolint:nilnil // who does not count has no slot
	}
	waiting, err := l.queue(client, in)
	if err != nil {
		return nil, err
	}
	defer postgres.Waiting(ctx)()
	select {
	case <-waiting.called:
	case <-ctx.Done():
		if !l.giveUp(client, in, waiting) {
			return nil, context.Cause(ctx)
		}
	}
	if waiting.refused {
		return nil, errOverload(tooMany)
	}
	return &Slot{of: l, client: client}, nil
}

func errOverload(why string) error {
	refusal := lending.NewError(lending.CodeUnavailable,
		why+"; repeat this one in %d s, with its Idempotency-Key if it had one",
		int(overloadPause.Seconds()))
	refusal.RetryAfter = overloadPause
	return refusal
}

// Why a call is refused.
const (
	tooMany   = "too many requests wait for the service"
	tooUnread = "earlier requests have answers that were not read yet, and no more can be kept"
)

// queue puts a call in the line, and lets it in where there is a slot for it. When there is
// none and the line is full, the last call of the client that has the most there makes room.
func (l *Limiter) queue(client string, in line) (*ticket, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	v := l.visitor(client)
	defer l.forget(client) // of whom nothing is left when it was refused
	if v.unread >= maxUnread {
		l.refused++
		return nil, errOverload(tooUnread)
	}
	free := l.inside < maxSlots && v.inside < slotsPerClient
	if l.waiting[in] >= l.longest(in) && !free {
		longest := v
		for _, other := range l.clients {
			if len(other.line[in]) > len(longest.line[in]) {
				longest = other
			}
		}
		l.refused++
		last := len(longest.line[in]) - 1
		if last <= len(v.line[in]) {
			return nil, errOverload(tooMany)
		}
		longest.line[in][last].refused = true
		l.call(longest, in, last)
	}
	waiting := &ticket{called: make(chan struct{})}
	v.line[in] = append(v.line[in], waiting)
	l.waiting[in]++
	l.letIn()
	return waiting, nil
}

// longest is how long a line may be.
func (l *Limiter) longest(in line) int {
	if in == patient {
		return patientLine
	}
	if l.waiting[urgent] == 0 {
		l.busySince = time.Now()
	}
	if time.Since(l.busySince) > burst {
		return shortLine
	}
	return lineLength
}

// giveUp takes a call out of the line, and reports whether it was called before.
func (l *Limiter) giveUp(client string, in line, waiting *ticket) (called bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	v := l.visitor(client)
	defer l.forget(client)
	at := slices.Index(v.line[in], waiting)
	if at >= 0 {
		l.call(v, in, at)
	}
	return at < 0
}

// call takes a call out of its client's line.
func (l *Limiter) call(v *visitor, in line, at int) {
	close(v.line[in][at].called)
	v.line[in] = slices.Delete(v.line[in], at, at+1)
	l.waiting[in]--
}

// letIn gives the free slots away, each to the client that has the fewest, and of several
// to that which got none for the longest.
func (l *Limiter) letIn() {
	for l.inside < maxSlots {
		var next *visitor
		for _, v := range l.clients {
			if v.waits() && v.inside < slotsPerClient && (next == nil || v.inside < next.inside ||
				v.inside == next.inside && v.seated < next.seated) {
				next = v
			}
		}
		if next == nil {
			return
		}
		l.admitted++
		next.seated = l.admitted
		next.inside++
		l.inside++
		in := urgent
		if len(next.line[urgent]) == 0 {
			in = patient
		}
		l.call(next, in, 0)
	}
}

func (v *visitor) waits() bool { return len(v.line[urgent])+len(v.line[patient]) > 0 }

func (l *Limiter) visitor(client string) *visitor {
	v := l.clients[client]
	if v == nil {
		if l.clients == nil {
			l.clients = map[string]*visitor{}
		}
		v = &visitor{}
		l.clients[client] = v
	}
	return v
}

// forget drops a client that has no calls here, and nothing to read.
func (l *Limiter) forget(client string) {
	if v := l.clients[client]; v.inside == 0 && v.unread == 0 && !v.waits() {
		delete(l.clients, client)
	}
}

// count takes a slot more or less for a call that has been let in.
func (p *Slot) count(change int) {
	p.of.inside += change
	p.of.visitor(p.client).inside += change
	p.of.letIn()
	p.of.forget(p.client)
}

// Leave gives the slot back, once, however often it is called.
func (p *Slot) Leave() {
	if p == nil {
		return
	}
	p.of.mu.Lock()
	defer p.of.mu.Unlock()
	if !p.left {
		p.left = true
		p.count(-1)
	}
}

// lend lets others have the slot while the call waits for its client, if that takes long,
// until back is called. A call that was let in goes on at once; one that has left has none to lend.
func (p *Slot) lend() (back func()) {
	lent, over := false, false
	timer := time.AfterFunc(lendAfter, func() {
		p.of.mu.Lock()
		defer p.of.mu.Unlock()
		if !over && !p.left {
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

// owe counts so many bytes more or less that the client has to read.
func (p *Slot) owe(change int) {
	p.of.mu.Lock()
	defer p.of.mu.Unlock()
	p.of.visitor(p.client).unread += change
	p.of.forget(p.client)
}

// Body lends the slot while the client sends nothing of its body.
func (p *Slot) Body(body io.ReadCloser) io.ReadCloser {
	if p == nil || body == nil || body == http.NoBody {
		return body
	}
	return lendingBody{body, p}
}

type lendingBody struct {
	io.ReadCloser

	slot *Slot
}

// Read reads what the client sends.
func (b lendingBody) Read(data []byte) (int, error) {
	defer b.slot.lend()()
	return b.ReadCloser.Read(data)
}

// Answer lends the slot while the client reads nothing of its answer.
func (p *Slot) Answer(answer http.ResponseWriter) http.ResponseWriter {
	if p == nil {
		return answer
	}
	return lendingWriter{answer, p}
}

type lendingWriter struct {
	http.ResponseWriter

	slot *Slot
}

// Write writes what the client reads.
func (w lendingWriter) Write(data []byte) (int, error) {
	w.slot.owe(len(data))
	defer w.slot.owe(-len(data))
	defer w.slot.lend()()
	return w.ResponseWriter.Write(data)
}

// Unwrap is for http.ResponseController.
func (w lendingWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
