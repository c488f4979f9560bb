package delivery

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
)

// Workers is how many deliveries a process works at a time. One mostly waits for
// its endpoint, so there are many.
const Workers = 400

const (
	// perEndpoint is how many requests to one subscription a process has in
	// flight at most, a tenth of what it works at once. The bound is each
	// process's own: over several it is their number times this. Each attempt
	// that times out halves it for the endpoint, down to five, and each that is
	// answered takes one such step back.
	perEndpoint = 40
	maxHalvings = 3
	// freeShare is which part of the workers that are free one endpoint may have:
	// the fewer are free, the fewer more an endpoint gets, so that many that begin
	// to hang at the same moment leave some to the others.
	freeShare = 8
	// reserve is how many free workers are for endpoints that answered within
	// slowAfter.
	reserve = Workers / 8
	// unknownSlots is how many workers endpoints have together that are slow, hang or
	// have not answered yet, slowSlots how many of those when one that is slow
	// wants another, and hangingSlots when one that hangs does.
	unknownSlots = Workers * 3 / 4
	slowSlots    = Workers / 2
	hangingSlots = Workers * 3 / 8
	// slowAfter is when a request counts among the slow while it is under way.
	slowAfter = time.Second
	// unknownWaiters is how many attempts may wait for slots at endpoints that
	// have not answered yet; the rest of a burst is held.
	unknownWaiters = 80
	// slotPatience is how long an attempt waits for a slot while it keeps a worker.
	slotPatience = 200 * time.Millisecond
	// quickMean is the mean duration up to which waiting for a slot is short.
	quickMean = 100 * time.Millisecond
)

// endpoint is what a process knows of one subscription while it sends to it.
type endpoint struct {
	all *limiter
	// inFlight counts its requests and halvings the bound on them; all.mu guards both.
	inFlight, halvings int
	// answered is when its endpoint last answered; all.mu guards it, too.
	answered time.Time
	// freed wakes one attempt that waits for a slot.
	freed chan struct{}
	// mean is a moving average of the durations of attempts, 0 before the first.
	mean atomic.Int64
	// backpressured counts the deliveries that were held back, each once its row says so,
	// and cleared how many of them are known to have come back. A count, since a
	// flag would be taken down for what is held at that very moment.
	backpressured, cleared atomic.Int64
	// refilling lets one attempt's end at a time bring deliveries back.
	refilling atomic.Bool
}

// limiter keep slow and hanging endpoints from taking every worker: attempts beyond
// the bounds are held back in their rows, without a job, and come back as earlier
// ones end. Nothing polls for them.
type limiter struct {
	mu    sync.Mutex
	byUID map[uuid.UUID]*endpoint
	// inFlight counts all requests, slow those that count among the slow.
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

// idle tells for each subscription under backpressure and with nothing in flight here
// how many of them may come back now.
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

// isQuick tells that the endpoint answers fast. One that has not answered yet
// does not.
func (l *endpoint) isQuick() bool {
	mean := time.Duration(l.mean.Load())
	return mean > 0 && mean <= quickMean
}

// bound is how many requests of the endpoint may be in flight while slow of all endpoints
// are among the slow. The caller holds the lock.
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
		// Until it has answered once, an endpoint is sent one request at a time, or
		// two while many slots are free.
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
	// slow tells that it counts among the slow; all.mu guards it.
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
		p.late = time.AfterFunc(slowAfter, p.turnSlow)
	} else {
		p.slow = true
		l.all.slow++
	}
	l.wakeNext()
	return p
}

// wakeNext lets another waiting attempt look if there may be a slot for it too.
func (l *endpoint) wakeNext() {
	if l.inFlight < l.bound(l.all.slow) {
		select {
		case l.freed <- struct{}{}:
		default:
		}
	}
}

// turnSlow counts a request to a quick endpoint among the slow once it has had no
// answer for a while, and its endpoint too.
func (p *slot) turnSlow() {
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

// leave gives the slot back after an attempt that took a while.
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

// cede gives a slot back from which nothing was sent.
func (p *slot) cede() {
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

// enter takes a slot and returns nil if it got none. It waits for one only where
// that is short: for an endpoint that answers fast, or, for a few, one that is not
// known yet.
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
	late := time.After(slotPatience)
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

// isBackpressured tells that deliveries of the subscription may be held back.
func (l *endpoint) isBackpressured() bool { return l.backpressured.Load() != l.cleared.Load() }

// free is how many deliveries should come back from backpressure now: none while the endpoint is
// more than three quarters full, so that they come back in batches.
func (l *endpoint) free() int {
	l.all.mu.Lock()
	defer l.all.mu.Unlock()
	bound := l.bound(l.all.slow)
	if l.isBackpressured() && l.inFlight <= bound*3/4 {
		return bound - l.inFlight
	}
	return 0
}
