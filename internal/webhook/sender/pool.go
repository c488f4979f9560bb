package sender

import (
	"context"
	"errors"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"time"
)

const (
	// idleTime is how long an unused connection is kept. It is short on purpose: reuse pays
	// off in bursts, while an endpoint that closes a connection just as a request is written
	// to it costs an attempt.
	idleTime = 10 * time.Second
	// trialTime is how long a connection must have stayed open after an answer before it is reused,
	// until one to the endpoint has been reused successfully. Some endpoints close every connection
	// without announcing it, and the close takes a moment to arrive. An endpoint that keeps
	// connections costs this wait once.
	trialTime = 50 * time.Millisecond
	// distrustTime is how long no connection is kept for an endpoint that closed one on a request.
	distrustTime = 5 * time.Minute
	// maxTrusts bounds how many endpoints' treatment of connections is remembered.
	maxTrusts = 4096
	// maxIdle and maxIdlePerEndpoint bound unused connections.
	maxIdle            = 1024
	maxIdlePerEndpoint = 32
)

// errNotSent means that the endpoint did not get a request and will not, so that it may
// go over another connection and still be only one request.
var errNotSent = errors.New("the request was not sent")

// endpoint is the key of pooled connections: requests to one endpoint may share them.
type endpoint struct {
	scheme, host string
	// http1 separates requests that cannot be sent over HTTP/2.
	http1 bool
}

type peer struct {
	addr netip.AddrPort
	// tls is the TLS version, empty without TLS.
	tls string
	// expires is when its certificate expires, zero without TLS.
	expires time.Time
}

// answer is the head of an answer and what getting it took.
type answer struct {
	response  *http.Response
	firstByte time.Duration
	// sent means that the endpoint may have received the request.
	sent bool
}

// trust is what an endpoint's treatment of earlier connections says about later ones.
type trust struct {
	// lives means that the endpoint answered over a reused connection.
	lives bool
	// lost is when it last closed a reused connection instead of answering.
	lost time.Time
}

// connection carries a request. After one exchange it must be released, with
// the response if there was one.
type connection interface {
	remote() peer
	exchange(ctx context.Context, out outgoing) (answer, error)
	release(resp *http.Response, intact bool)
}

// pool keeps connections for reuse: HTTP/1.1 ones while they are idle, HTTP/2 ones as
// long as they live. The callers of Send bound how many are in use at a time.
type pool struct {
	// max is maxIdle, perEndpoint maxIdlePerEndpoint, trial trialTime.
	max, perEndpoint int
	trial            time.Duration

	mu     sync.Mutex
	closed bool
	total  int // idle HTTP/1.1 connections
	idle   map[endpoint][]*http1Conn
	shared map[endpoint][]*http2Conn
	trusts map[endpoint]trust
}

func (p *pool) take(end endpoint) connection {
	for {
		shared, idle, trial := p.pick(end)
		switch {
		case shared != nil:
			return shared
		case idle == nil:
			return nil
		case idle.isQuiet(trial):
			return idle
		}
		idle.close()
	}
}

// pick returns a connection for the next request, if there is one, and how long it must stay
// quiet first. The one used last comes first: it is the least likely to have been closed.
func (p *pool) pick(end endpoint) (shared *http2Conn, idle *http1Conn, trial time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.shared[end] {
		if c.client.Reserve() == nil {
			return c, nil, 0
		}
	}
	kept := p.idle[end]
	if len(kept) == 0 {
		return nil, nil, 0
	}
	idle = kept[len(kept)-1]
	p.remove(idle)
	if !p.trusts[end].lives {
		trial = p.trial - time.Since(idle.released)
	}
	return nil, idle, trial
}

// lose records that an endpoint closed a connection on a request instead of answering. Whether it
// saw the request is unknown, so that is not sent again; and no connection is kept for a time.
func (p *pool) lose(end endpoint) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.learn(end, trust{lost: time.Now()})
	for _, c := range slices.Clone(p.idle[end]) {
		p.remove(c)
		c.close()
	}
	delete(p.shared, end) // requests under way on them go on
}

// learn records how an endpoint treats connections; if the map is full, it drops an
// arbitrary other endpoint. The caller holds the lock.
func (p *pool) learn(end endpoint, known trust) {
	if _, found := p.trusts[end]; !found && len(p.trusts) >= maxTrusts {
		for other := range p.trusts {
			delete(p.trusts, other)
			break
		}
	}
	p.trusts[end] = known
}

// distrusts reports whether no connections are kept for an endpoint. The caller holds the lock.
func (p *pool) distrusts(end endpoint) bool {
	lost := p.trusts[end].lost
	return !lost.IsZero() && time.Since(lost) < distrustTime
}

// put keeps an idle connection for a time, or closes it if there is no room.
func (p *pool) put(c *http1Conn, keep time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || keep <= 0 || p.total >= p.max || len(p.idle[c.end]) >= p.perEndpoint ||
		p.distrusts(c.end) {
		c.close()
		return
	}
	if c.served && !p.trusts[c.end].lives {
		p.learn(c.end, trust{lives: true})
	}
	c.served, c.released = true, time.Now()
	p.idle[c.end] = append(p.idle[c.end], c)
	p.total++
	c.idle = time.AfterFunc(keep, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.remove(c) {
			c.close()
		}
	})
}

// remove takes an idle connection out and reports whether it was there. The
// caller holds the lock.
func (p *pool) remove(c *http1Conn) bool {
	if !removeFrom(p.idle, c.end, c) {
		return false
	}
	c.idle.Stop()
	p.total--
	return true
}

// share offers an HTTP/2 connection to later requests and reports whether
// there was room for it. It leaves the pool when it closes.
func (p *pool) share(c *http2Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || len(p.shared[c.end]) >= p.perEndpoint || p.distrusts(c.end) {
		return false
	}
	p.shared[c.end] = append(p.shared[c.end], c)
	c.client.SetStateHook(func(client *http.ClientConn) {
		if client.Err() != nil {
			go p.drop(c) // the hook may run inside Reserve, under the lock
		}
	})
	return true
}

// drop stops offering an HTTP/2 connection. Requests under way on it go on,
// and it closes when it has been idle for long enough.
func (p *pool) drop(c *http2Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	removeFrom(p.shared, c.end, c)
}

func removeFrom[C comparable](from map[endpoint][]C, end endpoint, c C) bool {
	at := slices.Index(from[end], c)
	if at < 0 {
		return false
	}
	from[end] = slices.Delete(from[end], at, at+1)
	if len(from[end]) == 0 {
		delete(from, end)
	}
	return true
}

// close closes every connection of the pool and keeps none from then on.
func (p *pool) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for _, conns := range p.shared {
		for _, c := range conns {
			_ = c.client.Close()
		}
	}
	for _, conns := range p.idle {
		for _, c := range slices.Clone(conns) {
			p.remove(c)
			c.close()
		}
	}
}
