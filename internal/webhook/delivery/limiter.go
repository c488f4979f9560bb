package delivery

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
)

// Workers is how many deliveries a process works at a time. A worker mostly waits for its
// endpoint, so there are many.
const Workers = 400

const (
	// perEndpoint is the most requests to one subscription that a process has in flight, a
	// tenth of what it works at once. The bound is per process: over several it is their
	// number times this. Each attempt that times out halves it for the endpoint, down to
	// five, and each that is answered undoes one halving.
	perEndpoint = 40
	maxHalvings = 3
	// freeShare is the divisor of the free workers that bounds one endpoint's requests:
	// the fewer are free, the fewer an endpoint gets, so that many endpoints that begin to
	// hang at the same moment leave some workers to the others.
	freeShare = 8
	// reserve is how many free workers are kept for endpoints that answered within
	// slowAfter.
	reserve = Workers / 8
	// unknownSlots is how many workers the endpoints that are slow, hang or have not
	// answered yet may have together; slowSlots is the limit when a slow one wants another
	// worker, and hangingSlots when a hanging one does.
	unknownSlots = Workers * 3 / 4
	slowSlots    = Workers / 2
	hangingSlots = Workers * 3 / 8
	// slowAfter is how long a request is under way before it counts as slow.
	slowAfter = time.Second
	// unknownWaiters is how many attempts may wait for slots at endpoints that have not
	// answered yet; the rest of a burst is held back.
	unknownWaiters = 80
	// maxSlotWait is how long an attempt waits for a slot while it keeps a worker.
	maxSlotWait = 200 * time.Millisecond
	// quickMean is the longest mean duration for which waiting for a slot is short.
	quickMean = 100 * time.Millisecond
)

// endpoint is the state that a process keeps for one subscription while it sends to it.
type endpoint struct {
	all *limiter
	// inFlight counts its requests and halvings how often their bound was halved; all.mu guards both.
	inFlight, halvings int
	// answered is when the endpoint last answered; all.mu guards it, too.
	answered time.Time
	// freed wakes one attempt that waits for a slot.
	freed chan struct{}
	// mean is a moving average of the durations of attempts, 0 before the first.
	mean atomic.Int64
	// backpressured counts the deliveries that were held back, each once its row says so,
	// and cleared how many of them are known to be released. They are counts because a flag
	// could be cleared just as another delivery is being held back.
	backpressured, cleared atomic.Int64
	// refilling makes sure that only one attempt's end at a time releases deliveries.
	refilling atomic.Bool
}

// limiter keeps slow and hanging endpoints from taking every worker: attempts beyond the
// bounds are held back in their rows, without a job, and are released as earlier ones
// end. Nothing polls for them.
type limiter struct {
	mu    sync.Mutex
	byUID map[uuid.UUID]*endpoint
	// inFlight counts all requests, slow those that count as slow.
	inFlight, slow int
	// unknownWaiting counts attempts that wait for an endpoint without an answer yet.
	unknownWaiting atomic.Int32
}

func (l *limiter) of(uid uuid.UUID) *endpoint {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.byUID == nil {
		l.byUID = make(map[uuid.UUID]*endpoint)
	}
	found, ok := l.byUID[uid]
	if !ok {
		found = &endpoint{all: l, freed: make(chan struct{}, 1)}
		l.byUID[uid] = found
	}
	return found
}

// idle returns, for each subscription under backpressure that has nothing in flight here,
// how many of its deliveries may be released now.
func (l *limiter) idle() map[uuid.UUID]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	counts, slow := make(map[uuid.UUID]int), l.slow
	for uid, target := range l.byUID {
		if !target.isBackpressured() || target.inFlight > 0 {
			continue
		}
		if count := target.bound(slow); count > 0 {
			counts[uid] = count
			if !target.isQuick() {
				slow += count
			}
		}
	}
	return counts
}

// isQuick reports whether the endpoint answers fast; false until it has answered once.
func (l *endpoint) isQuick() bool {
	mean := time.Duration(l.mean.Load())
	return mean > 0 && mean <= quickMean
}

// bound is how many requests of the endpoint may be in flight while slow requests, over
// all endpoints, count as slow. The caller holds the lock.
func (l *endpoint) bound(slow int) int {
	free := Workers - l.all.inFlight
	if free <= reserve && time.Since(l.answered) > slowAfter {
		return 0
	}
	bound := max(min(perEndpoint>>l.halvings, free/freeShare), 1)
	if l.isQuick() {
		return bound
	}
	share := slowSlots - slow
	switch {
	case l.halvings > 0:
		share = hangingSlots - slow
	case l.mean.Load() == 0:
		// Until its first answer, an endpoint is sent one request at a time, or two while many
		// slots are free.
		bound, share = 1, unknownSlots-slow
		if share > slowSlots {
			bound = 2
		}
	}
	return min(bound, l.inFlight+max(share, 0))
}

// slot lets an attempt send to an endpoint.
type slot struct {
	target *endpoint
	// slow means that it counts as slow; all.mu guards it.
	slow bool
	late *time.Timer
}

func (l *endpoint) take() *slot {
	l.all.mu.Lock()
	defer l.all.mu.Unlock()
	if l.inFlight >= l.bound(l.all.slow) {
		return nil
	}
	l.inFlight++
	l.all.inFlight++
	p := &slot{target: l}
	if l.isQuick() {
		p.late = time.AfterFunc(slowAfter, p.markSlow)
	} else {
		p.slow = true
		l.all.slow++
	}
	l.wakeNext()
	return p
}

// wakeNext wakes another waiting attempt if there may be a slot for it too.
func (l *endpoint) wakeNext() {
	if l.inFlight < l.bound(l.all.slow) {
		select {
		case l.freed <- struct{}{}:
		default:
		}
	}
}

// markSlow counts a request to a quick endpoint as slow once it has had no answer for a
// while, and its endpoint too.
func (p *slot) markSlow() {
	p.target.all.mu.Lock()
	defer p.target.all.mu.Unlock()
	if p.slow || p.late == nil {
		return
	}
	p.slow = true
	p.target.all.slow++
	if p.target.isQuick() {
		p.target.mean.Store(int64(slowAfter))
	}
}

// leave gives the slot back after an attempt that took the given time.
func (p *slot) leave(took time.Duration, timedOut bool) {
	l := p.target
	l.all.mu.Lock()
	defer l.all.mu.Unlock()
	mean := time.Duration(l.mean.Load())
	if mean == 0 {
		mean = took
	}
	l.mean.Store(int64(max((7*mean+took)/8, 1)))
	if timedOut {
		l.halvings = min(l.halvings+1, maxHalvings)
	} else {
		l.halvings = max(l.halvings-1, 0)
		l.answered = time.Now()
	}
	p.free()
}

// freeUnused gives back a slot in which nothing was sent.
func (p *slot) freeUnused() {
	p.target.all.mu.Lock()
	defer p.target.all.mu.Unlock()
	p.free()
}

// free gives the slot back. The caller holds the lock.
func (p *slot) free() {
	if p.late != nil {
		p.late.Stop()
		p.late = nil
	}
	if p.slow {
		p.target.all.slow--
	}
	p.target.inFlight--
	p.target.all.inFlight--
	p.target.wakeNext()
}

// enter takes a slot and returns nil if it got none. It waits for a slot only where the
// wait is short: for an endpoint that answers fast, or, up to unknownWaiters attempts,
// for one that has not answered yet.
func (l *endpoint) enter(ctx context.Context) *slot {
	if p := l.take(); p != nil {
		return p
	}
	if mean := time.Duration(l.mean.Load()); mean > quickMean {
		return nil
	} else if mean == 0 {
		defer l.all.unknownWaiting.Add(-1)
		if l.all.unknownWaiting.Add(1) > unknownWaiters {
			return nil
		}
	}
	late := time.After(maxSlotWait)
	for {
		select {
		case <-l.freed:
			if p := l.take(); p != nil {
				return p
			}
		case <-late:
			return nil
		case <-ctx.Done():
			return nil
		}
	}
}

// isBackpressured reports whether deliveries of the subscription may be held back.
func (l *endpoint) isBackpressured() bool { return l.backpressured.Load() != l.cleared.Load() }

// free is how many deliveries should be released from backpressure now: none while the
// endpoint is more than three quarters full, so that they are released in batches.
func (l *endpoint) free() int {
	l.all.mu.Lock()
	defer l.all.mu.Unlock()
	bound := l.bound(l.all.slow)
	if l.isBackpressured() && l.inFlight <= bound*3/4 {
		return bound - l.inFlight
	}
	return 0
}
