package webhook

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
)

const (
	// perEndpoint is how many requests to one subscription a process has in
	// flight at most, a tenth of what it works at once. The bound is each
	// process's own: over several it is their number times this.
	perEndpoint = 40
	// unknownWaiters is how many attempts may wait for a place at an endpoint
	// that has not shown yet how fast it is; the rest of a burst is held.
	unknownWaiters = 80
	// lanePatience is how long an attempt waits for a place while it keeps a worker.
	lanePatience = 200 * time.Millisecond
	// quickMean is the mean duration up to which waiting for a place is short.
	quickMean = 100 * time.Millisecond
	// quickSends is how many requests to quick endpoints a process makes at a time,
	// and how many to unknown ones: enough to keep the processors busy, and few
	// enough that who else needs them, the API first of all, does not queue behind
	// hundreds.
	quickSends = 4
	// quickPatience is how long a request waits for its turn among those: a busy
	// process may delay it by no more.
	quickPatience = 20 * time.Millisecond
	// turnLength is how long a turn lasts at most: a request without an answer by
	// then waits for its endpoint and uses no processor.
	turnLength = 10 * time.Millisecond
)

// lane is what a process knows of one subscription while it sends to it.
type lane struct {
	places  chan struct{}
	waiting atomic.Int32
	// mean is a moving average of the durations of attempts, 0 before the first.
	mean atomic.Int64
	// holds counts the deliveries that were held back, each once its row says so,
	// and cleared how many of them are known to have come back. A count, since a
	// flag would be taken down for what is held at that very moment.
	holds, cleared atomic.Int64
	// refilling lets one attempt's end at a time bring deliveries back.
	refilling atomic.Bool
}

// lanes keep a slow or hanging endpoint from taking every worker: its attempts
// beyond the bound are held back in their rows, without a job, and come back
// as earlier ones end. Nothing polls for them.
type lanes struct {
	mu    sync.Mutex
	byUID map[uuid.UUID]*lane
	// quick has room for the requests to quick endpoints, fresh for those to endpoints
	// that have not shown yet how fast they are: should they hang, they hold up none
	// of the quick.
	quick, fresh chan struct{}
}

// turn waits until a request of the lane may use the processors and returns what
// ends that. Slow endpoints hardly need them and have no turn to wait for. A
// request that had to wait lets calls go first, too.
func (l *lanes) turn(ctx context.Context, lane *lane, calls *Calls) (end func()) {
	mean := time.Duration(lane.mean.Load())
	if mean > quickMean {
		return func() {}
	}
	places := l.quick
	if mean == 0 {
		places = l.fresh
	}
	select {
	case places <- struct{}{}:
		return turnEnd(places)
	default:
	}
	defer calls.standBack(ctx)
	timer := time.NewTimer(quickPatience)
	defer timer.Stop()
	select {
	case places <- struct{}{}:
		return turnEnd(places)
	case <-timer.C:
	case <-ctx.Done():
	}
	return func() {}
}

// turnEnd returns what gives a place back, which happens by itself after turnLength.
func turnEnd(places chan struct{}) func() {
	free := sync.OnceFunc(func() { <-places })
	over := time.AfterFunc(turnLength, free)
	return func() {
		over.Stop()
		free()
	}
}

func (l *lanes) of(uid uuid.UUID) *lane {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.byUID == nil {
		l.byUID = make(map[uuid.UUID]*lane)
		l.quick = make(chan struct{}, quickSends)
		l.fresh = make(chan struct{}, quickSends)
	}
	found, ok := l.byUID[uid]
	if !ok {
		found = &lane{places: make(chan struct{}, perEndpoint)}
		l.byUID[uid] = found
	}
	return found
}

// idle lists subscriptions with held deliveries and nothing in flight here.
func (l *lanes) idle() []uuid.UUID {
	l.mu.Lock()
	defer l.mu.Unlock()
	var uids []uuid.UUID
	for uid, lane := range l.byUID {
		if lane.holding() && len(lane.places) == 0 {
			uids = append(uids, uid)
		}
	}
	return uids
}

// enter takes a place and reports whether it got one. It waits for one only
// where that is short: for an endpoint that answers fast, or, for a few, one
// that is not known yet.
func (l *lane) enter(ctx context.Context) bool {
	select {
	case l.places <- struct{}{}:
		return true
	default:
	}
	waiting := l.waiting.Add(1)
	defer l.waiting.Add(-1)
	mean := time.Duration(l.mean.Load())
	if mean > quickMean || mean == 0 && waiting > unknownWaiters {
		return false
	}
	timer := time.NewTimer(lanePatience)
	defer timer.Stop()
	select {
	case l.places <- struct{}{}:
		return true
	case <-timer.C:
		return false
	case <-ctx.Done():
		return false
	}
}

// cede gives a place back from which nothing was sent.
func (l *lane) cede() { <-l.places }

// leave gives the place back after an attempt that took a while.
func (l *lane) leave(took time.Duration) {
	mean := time.Duration(l.mean.Load())
	if mean == 0 {
		mean = took
	}
	l.mean.Store(int64(max((7*mean+took)/8, 1)))
	<-l.places
}

// holding tells that deliveries of the subscription may be held back.
func (l *lane) holding() bool { return l.holds.Load() != l.cleared.Load() }

// room is how many held deliveries should come back now: none while the lane is
// more than three quarters full, so that they come back in batches.
func (l *lane) room() int {
	if used := len(l.places); l.holding() && used <= perEndpoint*3/4 {
		return perEndpoint - used
	}
	return 0
}
