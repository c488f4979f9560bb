// Package admission limits how many API requests a process works at a time, and how many wait.
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

// The limits on the requests of one process.
const (
	// maxSlots is how many requests are worked at a time: more would share the same processors and
	// finish no sooner. It leaves connections of the pool to console and chores.
	maxSlots = 24
	// slotsPerClient is how many of them one client may have, since its requests may all be waiting
	// for one locked application.
	slotsPerClient = 16
	// lineLength is how many requests may wait for a slot: enough for a burst. When requests have been
	// waiting for longer than burst, more arrive than can be answered, and the line gets shorter, so
	// that the requests it accepts are answered soon.
	lineLength, shortLine = 128, 64
	burst                 = 2 * time.Second
	// patientLine is how many requests of EnterPatient may wait: as many as may wait for an event,
	// which may all come at once.
	patientLine = 1000
	// maxUnread is how many bytes of responses a client may leave unread and still be admitted: they
	// stay in memory until it has read them.
	maxUnread = 64 << 20
	// overloadPause is after how long a refused client may try again.
	overloadPause = time.Second
	// lendAfter is how long a request may wait for its client, to send the body or to read the
	// response, before its slot is lent to others.
	lendAfter = 5 * time.Millisecond
)

// Limiter admits a limited number of requests at a time, keeps a bounded line of others, and
// refuses the rest. Slots are given to the client that has the fewest. The zero value is ready for
// use; a nil Limiter admits every request at once.
type Limiter struct {
	mu     sync.Mutex
	inside int
	// waiting is how many requests are in each of the lines.
	waiting [lines]int
	// busySince is when a request last found the line empty.
	busySince time.Time
	clients   map[string]*visitor
	refused   uint64
	// admitted counts the admitted requests.
	admitted uint64
}

// line is one of a client's two lines of waiting requests.
type line int

const (
	urgent line = iota
	patient
	lines
)

// visitor is a client with admitted or waiting requests, or with responses to read.
type visitor struct {
	inside int
	line   [lines][]*ticket
	// unread is how many bytes of responses the client has yet to read.
	unread int
	// lastAdmission is the admitted count at the client's last admission.
	lastAdmission uint64
}

// ticket is a waiting request.
type ticket struct {
	called  chan struct{} // closed when it is admitted or refused
	refused bool
}

// Slot is the slot of an admitted request; nil where nothing is limited.
type Slot struct {
	of     *Limiter
	client string
	left   bool
}

// Waiting returns how many requests wait for a slot.
func (l *Limiter) Waiting() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.waiting[urgent] + l.waiting[patient]
}

// Refused returns how many requests were refused so far.
func (l *Limiter) Refused() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.refused
}

// Enter waits for a slot for a request, which must leave it. The client is not verified yet: that
// happens once the request is admitted. The wait counts as one for the database, which is what
// delays the requests ahead of it. Error: UNAVAILABLE when too many wait, or when the client has
// left too much of its responses unread.
func (l *Limiter) Enter(ctx context.Context, client string) (*Slot, error) {
	return l.enter(ctx, client, urgent)
}

// EnterPatient is Enter for a request that is content with a late answer. A thousand of them may
// wait, each behind all other requests of its client.
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
		why+"; try again in %d s, with the same Idempotency-Key if you sent one",
		int(overloadPause.Seconds()))
	refusal.RetryAfter = overloadPause
	return refusal
}

// Why a request is refused.
const (
	tooMany   = "too many requests are waiting"
	tooUnread = "too many responses to your earlier requests have not been read; read them first"
)

// queue puts a request in the line, and admits it if there is a slot for it. If there is none and
// the line is full, the last request of the client that has the most there makes room.
func (l *Limiter) queue(client string, in line) (*ticket, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	v := l.visitor(client)
	defer l.forget(client) // nothing of the client is left if it was refused
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
	l.admit()
	return waiting, nil
}

// longest returns the current limit of a line.
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

// giveUp takes a request out of the line, and reports whether it had been called before.
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

// call takes a request out of its client's line.
func (l *Limiter) call(v *visitor, in line, at int) {
	close(v.line[in][at].called)
	v.line[in] = slices.Delete(v.line[in], at, at+1)
	l.waiting[in]--
}

// admit gives the free slots away, each to the client that has the fewest, and among equals to the
// one that has waited longest since its last admission.
func (l *Limiter) admit() {
	for l.inside < maxSlots {
		var next *visitor
		for _, v := range l.clients {
			if v.waits() && v.inside < slotsPerClient && (next == nil || v.inside < next.inside ||
				v.inside == next.inside && v.lastAdmission < next.lastAdmission) {
				next = v
			}
		}
		if next == nil {
			return
		}
		l.admitted++
		next.lastAdmission = l.admitted
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

// forget drops a client that has no requests here, and nothing to read.
func (l *Limiter) forget(client string) {
	if v := l.clients[client]; v.inside == 0 && v.unread == 0 && !v.waits() {
		delete(l.clients, client)
	}
}

// count adds change to the slots in use by an admitted request.
func (p *Slot) count(change int) {
	p.of.inside += change
	p.of.visitor(p.client).inside += change
	p.of.admit()
	p.of.forget(p.client)
}

// Leave gives the slot back; further calls do nothing.
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

// lend gives the slot to others while the request waits for its client, if that takes long, until
// back is called. The request goes on at once then; one that has left has no slot to lend.
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

// addUnread adds change to the bytes that the client has yet to read.
func (p *Slot) addUnread(change int) {
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

// Read reads from the client.
func (b lendingBody) Read(data []byte) (int, error) {
	defer b.slot.lend()()
	return b.ReadCloser.Read(data)
}

// Answer lends the slot while the client reads nothing of the response.
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

// Write writes to the client.
func (w lendingWriter) Write(data []byte) (int, error) {
	w.slot.addUnread(len(data))
	defer w.slot.addUnread(-len(data))
	defer w.slot.lend()()
	return w.ResponseWriter.Write(data)
}

// Unwrap is for http.ResponseController.
func (w lendingWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
